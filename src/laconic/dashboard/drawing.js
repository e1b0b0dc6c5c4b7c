// Drawing on canvases: as sharp as the screen, in the colours of the page.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = (name) => [1, 3, 5].map((k) => parseInt(css(name).slice(k, k + 2), 16));
const blend = (a, b, share) => a.map((v, k) => Math.round(v + share * (b[k] - v)));
// From what is well known to what is not, by way of sand: half of it is neither.
const warmth = (share) => (share < 0.5 ? blend(rgb("--calm"), SAND, 2 * share) : blend(SAND, rgb("--hot"), 2 * share - 1));
const SAND = [222, 190, 110];
const paint = (colour) => `rgb(${colour.join(" ")})`;
const isDark = () => (document.documentElement.dataset.theme
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

// The canvas is given its size only when that has changed: to set it anew at every frame costs more than to draw.
function prepare(canvas) {
  const sharp = Math.min(2, window.devicePixelRatio || 1), w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * sharp) || canvas.height !== Math.round(h * sharp)) {
    canvas.width = Math.round(w * sharp); canvas.height = Math.round(h * sharp);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  pen.clearRect(0, 0, w, h);
  return { pen, w, h };
}

const digits = (value) => (value === null || value === undefined ? "–" : value === 0 ? "0" : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(3)));
const amount = (bits) => (bits >= 1e9 ? `${digits(bits / 1e9)} Gbit` : bits >= 1e6 ? `${digits(bits / 1e6)} Mbit` : bits >= 1e3 ? `${digits(bits / 1e3)} kbit` : `${bits} bit`);
const grouped = (value) => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");

// A line through points [x, y]; each axis is a logarithm if asked for. `words` say what its ends are called.
function drawLine(canvas, points, { logX = false, logY = true, words = digits, mark = null }) {
  const { pen, w, h } = prepare(canvas), good = points.filter(([x, y]) => y !== null && (!logY || y > 0) && (!logX || x > 0));
  pen.font = "12px system-ui, sans-serif"; pen.fillStyle = css("--quiet");
  if (good.length < 2) { pen.fillText("nothing to draw yet", 4, 18); return; }
  const f = (v) => (logX ? Math.log(v) : v), g = (v) => (logY ? Math.log(v) : v);
  const xs = good.map(([x]) => f(x)), ys = good.map(([, y]) => g(y));
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const left = 52, top = 10, right = 8, bottom = 22;
  const X = (x) => left + (w - left - right) * (x1 > x0 ? (f(x) - x0) / (x1 - x0) : 0.5);
  const Y = (y) => top + (h - top - bottom) * (y1 > y0 ? (y1 - g(y)) / (y1 - y0) : 0.5);
  pen.strokeStyle = css("--line"); pen.lineWidth = 1; pen.textAlign = "right"; pen.textBaseline = "middle";
  for (let k = 0; k <= 3; k++) {
    const level = y0 + k / 3 * (y1 - y0), value = logY ? Math.exp(level) : level, y = Y(value);
    pen.beginPath(); pen.moveTo(left, y); pen.lineTo(w - right, y); pen.stroke(); pen.fillText(digits(value), left - 7, y);
  }
  pen.textBaseline = "alphabetic"; pen.textAlign = "left"; pen.fillText(words(good[0][0]), left, h - 5);
  pen.textAlign = "right"; pen.fillText(words(good.at(-1)[0]), w - right, h - 5);
  pen.strokeStyle = css("--calm"); pen.lineWidth = 2; pen.lineJoin = "round"; pen.beginPath();
  good.forEach(([x, y], k) => (k ? pen.lineTo(X(x), Y(y)) : pen.moveTo(X(x), Y(y))));
  pen.stroke();
  const [ex, ey] = mark && mark[1] !== null ? mark : good.at(-1);
  if (ey > 0 || !logY) { pen.fillStyle = css("--hot"); pen.beginPath(); pen.arc(X(ex), Y(ey), 4.5, 0, 7); pen.fill(); }
}

// Predictions (a line) and labels (dots) of one agent.
function drawTold(canvas, told) {
  const { pen, w, h } = prepare(canvas);
  pen.font = "12px system-ui, sans-serif"; pen.fillStyle = css("--quiet");
  if (told.length < 2) { pen.fillText("no predictions yet", 4, 18); return; }
  const all = told.flatMap(([, p, y]) => (y === null ? [p] : [p, y])), y0 = Math.min(...all), y1 = Math.max(...all);
  const left = 46, X = (k) => left + (w - left - 8) * k / (told.length - 1), Y = (v) => 18 + (h - 36) * (y1 > y0 ? (y1 - v) / (y1 - y0) : 0.5);
  pen.textAlign = "right"; pen.textBaseline = "middle"; pen.fillText(digits(y1), left - 7, Y(y1)); pen.fillText(digits(y0), left - 7, Y(y0));
  pen.textBaseline = "alphabetic"; pen.textAlign = "left"; pen.fillStyle = css("--calm"); pen.fillText("prediction", left, 11);
  pen.fillStyle = css("--hot"); pen.fillText("label", left + 72, 11);
  told.forEach(([, , y], k) => { if (y !== null) { pen.beginPath(); pen.arc(X(k), Y(y), 2.4, 0, 7); pen.fill(); } });
  pen.strokeStyle = css("--calm"); pen.lineWidth = 1.8; pen.beginPath();
  told.forEach(([, p], k) => (k ? pen.lineTo(X(k), Y(p)) : pen.moveTo(X(k), Y(p))));
  pen.stroke();
  pen.fillStyle = css("--quiet"); pen.fillText(`round ${grouped(told[0][0])}`, left, h - 3);
  pen.textAlign = "right"; pen.fillText(grouped(told.at(-1)[0]), w - 8, h - 3);
}
