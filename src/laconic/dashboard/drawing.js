// Drawing on canvases: as sharp as the screen, in the colours of the page.

const byId = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = (name) => [1, 3, 5].map((k) => parseInt(css(name).slice(k, k + 2), 16));
const blend = (a, b, share) => a.map((v, k) => Math.round(v + share * (b[k] - v)));
// From what is well known to what is not, by way of sand: half of it is neither.
const SAND = [222, 190, 110];
const warmth = (share) => (share < 0.5 ? blend(rgb("--calm"), SAND, 2 * share) : blend(SAND, rgb("--hot"), 2 * share - 1));
const paint = (colour) => `rgb(${colour.join(" ")})`;
const isDark = () => (document.documentElement.dataset.theme
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const still = matchMedia("(prefers-reduced-motion: reduce)");
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

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

const POWERS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
function digits(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0 || (Math.abs(value) < 1e5 && Math.abs(value) >= 1e-3)) return String(+value.toPrecision(3));
  const [front, power] = value.toExponential(1).split("e");
  return `${+front === 1 ? "" : `${+front}·`}10${[...String(+power)].map((c) => POWERS[c]).join("")}`;
}
const amount = (bits) => (bits >= 1e9 ? `${digits(bits / 1e9)} Gbit` : bits >= 1e6 ? `${digits(bits / 1e6)} Mbit` : bits >= 1e3 ? `${digits(bits / 1e3)} kbit` : `${digits(bits)} bit`);
const grouped = (value) => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (share) => (share === null || share === undefined ? "–" : `${+(100 * share).toPrecision(share < 0.1 ? 2 : 3)}%`);
const clock = (time) => new Date(1000 * time).toLocaleTimeString([], { hour12: false });
