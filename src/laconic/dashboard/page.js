// A live page: it hears what changed, keeps a past to go back to, and draws when there is something new.

const data = JSON.parse(document.getElementById("data").textContent), n = data.names.length;
const byId = (id) => document.getElementById(id);
const column = Object.fromEntries(data.numbers.map((name, k) => [name, k]));
const KEPT = 600, FADE = 0.6, NAMED = 40;  // points of the past; seconds until an edge is dark again; agents whose names have room

const live = { here: new Uint8Array(n), rows: Array.from({ length: n }, () => data.numbers.map((name) => (name === "error" ? null : 0))), version: 0 };
const view = { chosen: null, moment: null, past: [], told: [], glow: new Float32Array(data.edges.length), moved: 0, stale: true, frames: 0, updates: 0, range: [1, 1] };
const touching = Array.from({ length: n }, () => []);
data.edges.forEach(([a, b], e) => { touching[a].push(e); touching[b].push(e); });

// Hearing --------------------------------------------------------------------------------------------------------------

const nothingYet = document.querySelector("#events .none");
let socket = null, patience = 250;
function connect() {
  const address = new URL("changes" + location.search, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(address);
  socket.onopen = () => { patience = 250; state("live", "live"); watch(); };
  socket.onmessage = (event) => hear(JSON.parse(event.data));
  socket.onclose = () => {
    state("lost", "connection lost, trying again");
    setTimeout(connect, patience);
    patience = Math.min(5000, 2 * patience);
  };
}
function state(kind, words) { byId("link").dataset.state = kind; byId("link").textContent = words; }
function watch() { if (socket && socket.readyState === 1) socket.send(JSON.stringify({ watch: view.chosen === null ? null : data.names[view.chosen] })); }

function hear(said) {
  if (said.past) {  // a new connection tells all there is: what was kept here is in it, or was of another run
    view.past = said.past; byId("events").replaceChildren(nothingYet); view.stale = true; return;
  }
  view.updates++;
  const spoke = [];
  for (const [k, here, ...row] of said.agents) {
    const before = live.rows[k][column.sends];
    if (live.version && row[column.sends] > before) spoke.push(k);
    live.here[k] = here; live.rows[k] = row;
  }
  live.version = said.version;
  if (view.moment === null) spoke.forEach(light);
  if (said.predictions && said.watched === (view.chosen === null ? null : data.names[view.chosen])) view.told = said.predictions;
  for (const event of said.events) tell(...event);
  remember();
  view.stale = true;
}

function light(k) { for (const e of touching[k]) view.glow[e] = 1; }

// A point of the past each second or so; where there are too many, every other one goes.
function remember() {
  const now = Date.now() / 1000, last = view.past.at(-1);
  if (last && now - last.time < (view.stride || 1)) return;
  const whole = summary();
  if (!whole.here) return;
  view.past.push({ time: now, round: whole.round, error: whole.error, bits: whole.bits, sends: whole.sends, errors: live.rows.map((row) => row[column.error]), spoken: live.rows.map((row) => row[column.sends]) });
  if (view.past.length > KEPT) { view.past = view.past.filter((_, k) => k % 2); view.stride = 2 * (view.stride || 1); if (view.moment !== null) view.moment >>= 1; }
}

function summary() {
  const rows = live.rows.filter((_, k) => live.here[k]), errors = rows.map((row) => row[column.error]).filter((e) => e !== null);
  const total = (name) => live.rows.reduce((sum, row) => sum + row[column[name]], 0);
  return {
    here: rows.length, round: rows.length ? Math.min(...rows.map((row) => row[column.round])) : 0,
    error: errors.length ? errors.reduce((a, b) => a + b) / errors.length : null,
    bits: total("bits"), sends: total("sends"), censored: total("censored"),
  };
}

const clock = (time) => new Date(1000 * time).toLocaleTimeString([], { hour12: false });
function tell(time, name, kind, words) {
  const list = byId("events"), item = document.createElement("li"), when = document.createElement("time"), what = document.createElement("span");
  list.querySelector(".none")?.remove();
  when.textContent = clock(time); what.textContent = words; item.className = kind;
  item.append(when, what); list.prepend(item);
  while (list.children.length > 200) list.lastChild.remove();
}

// Drawing --------------------------------------------------------------------------------------------------------------

const at = () => (view.moment === null ? null : view.past[view.moment]);
const errorsNow = () => (at() ? at().errors : live.rows.map((row) => row[column.error]));

function places(w, h) {
  const xs = data.places.map(([x]) => x), ys = data.places.map(([, y]) => y);
  const wide = Math.max(...xs) || 0.001, high = Math.max(...ys) || 0.001, rim = n > NAMED ? 14 : 34;
  // A tall network lies down on a wide screen, and a long one stands up on a phone.
  const turn = (wide > 1.2 * high && h > w) || (high > 1.2 * wide && w > h);
  const [pw, ph] = turn ? [high, wide] : [wide, high];
  const below = n > NAMED ? 0 : 16, free = [(w - 2 * rim) / pw, (h - 2 * rim - below) / ph];  // room for names
  const least = Math.min(...free), scale = free.map((one) => Math.min(one, 1.6 * least));  // a little out of shape is no harm
  const spare = [(w - scale[0] * pw) / 2, (h + below - scale[1] * ph) / 2];
  return data.places.map(([x, y]) => { const [a, b] = turn ? [y, x] : [x, y]; return [spare[0] + scale[0] * a, h - spare[1] - scale[1] * b]; });
}

const shade = (error) => {
  if (error === null || error === undefined || error <= 0) return null;
  const [low, high] = view.range;
  return high > low ? Math.max(0, Math.min(1, Math.log(error / low) / Math.log(high / low))) : 0.5;
};

// Two layers keep what does not move: edges at rest, drawn anew when the picture has another size or other colours, and
// agents, when they have changed. A frame then costs two copies and the edges that glow.
const layers = { edges: document.createElement("canvas"), agents: document.createElement("canvas"), key: "" };
function onLayer(layer, canvas, draw) {
  layer.width = canvas.width; layer.height = canvas.height;
  const pen = layer.getContext("2d"), sharp = canvas.width / canvas.clientWidth;
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  draw(pen);
}
function strokeEdges(pen, wanted) {
  pen.beginPath();
  let some = false;
  for (let e = 0; e < data.edges.length; e++) if (wanted(e)) {
    const [a, b] = data.edges[e], from = view.spots[a], to = view.spots[b];
    some = true; pen.moveTo(from[0], from[1]); pen.lineTo(to[0], to[1]);
  }
  if (some) pen.stroke();
}

function drawNetwork(seconds) {
  const canvas = byId("network"), { pen, w, h } = prepare(canvas), hot = rgb("--hot"), ink = rgb("--ink"), card = rgb("--card");
  const many = n > 200, thin = many ? 0.6 : 1.4, quiet = blend(card, ink, many ? 0.1 : 0.2), key = `${canvas.width} ${canvas.height} ${quiet}`;
  if (layers.key !== key) {
    layers.key = key; view.stale = true;
    view.spots = places(w, h); view.radius = Math.max(2.5, Math.min(19, (n > NAMED ? 0.15 : 0.3) * Math.sqrt(w * h / n)));
    onLayer(layers.edges, canvas, (under) => { under.strokeStyle = paint(quiet); under.lineWidth = thin; strokeEdges(under, () => true); });
  }
  if (view.stale) onLayer(layers.agents, canvas, drawAgents);
  pen.drawImage(layers.edges, 0, 0, w, h);
  // Edges are lit by how brightly they glow: a few strokes, however many edges.
  const levels = many ? 2 : 4;
  for (let level = 1; level <= levels; level++) {
    pen.strokeStyle = paint(blend(quiet, hot, level / levels)); pen.lineWidth = thin + (many ? 0.5 : 2.8) * level / levels;
    strokeEdges(pen, (e) => Math.ceil(levels * view.glow[e]) === level);
  }
  for (let e = 0; e < view.glow.length; e++) view.glow[e] = view.glow[e] < 0.04 ? 0 : view.glow[e] * Math.exp(-seconds / FADE);
  pen.drawImage(layers.agents, 0, 0, w, h);
}

function drawAgents(pen) {
  const ink = rgb("--ink"), card = rgb("--card"), errors = errorsNow(), { spots, radius } = view;
  const shades = Array.from({ length: 33 }, (_, k) => paint(warmth(k / 32))), gone = paint(blend(card, ink, 0.25)), unknown = paint(blend(card, ink, 0.45));
  for (let k = 0; k < n; k++) {
    const share = shade(errors[k]), [x, y] = spots[k], away = !live.here[k] && !at();
    pen.fillStyle = away ? gone : share === null ? unknown : shades[Math.round(32 * share)];
    pen.beginPath(); pen.arc(x, y, radius, 0, 7); pen.fill();
    if (away && radius > 6) { pen.strokeStyle = css("--quiet"); pen.lineWidth = 1.5; pen.setLineDash([3, 3]); pen.stroke(); pen.setLineDash([]); }
  }
  if (n <= NAMED) {
    pen.font = "600 13px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "top"; pen.fillStyle = css("--ink");
    pen.strokeStyle = css("--card"); pen.lineWidth = 4; pen.lineJoin = "round";
    spots.forEach(([x, y], k) => { pen.strokeText(data.names[k], x, y + radius + 4); pen.fillText(data.names[k], x, y + radius + 4); });
  }
  if (view.chosen !== null) {
    const [x, y] = spots[view.chosen];
    pen.strokeStyle = css("--ink"); pen.lineWidth = 2.5; pen.beginPath(); pen.arc(x, y, radius + 4, 0, 7); pen.stroke();
  }
}

function drawPanels() {
  const whole = summary(), moment = at(), past = view.past;
  const seen = errorsNow().filter((e) => e !== null && e > 0).sort((a, b) => a - b);
  if (seen.length) {
    const means = past.map((point) => point.error).filter((e) => e > 0);
    view.range = [Math.min(seen[0], ...means), Math.max(seen[Math.floor(0.95 * (seen.length - 1))], ...means)];
  }
  byId("here").textContent = `${whole.here} of ${n}`;
  byId("round").textContent = grouped(moment ? moment.round : whole.round);
  byId("error").textContent = digits(moment ? moment.error : whole.error);
  byId("bits").textContent = amount(moment ? moment.bits : whole.bits);
  byId("silence").textContent = whole.sends + whole.censored ? `${(100 * whole.censored / (whole.sends + whole.censored)).toFixed(1)}%` : "–";
  const recent = past.filter((point) => point.time > past.at(-1).time - 10);
  const [first, last] = [recent[0], recent.at(-1)];
  byId("pace").textContent = recent.length > 1 && last.time > first.time ? digits(Math.max(0, (last.round - first.round) / (last.time - first.time))) : "–";
  byId("good").textContent = digits(view.range[0]); byId("bad").textContent = digits(view.range[1]);
  drawLine(byId("cost"), past.map((point) => [point.bits, point.error]), { logX: true, words: amount, mark: moment && [moment.bits, moment.error] });
  drawLine(byId("course"), past.map((point) => [point.time, point.error]), { words: clock, mark: moment && [moment.time, moment.error] });
  const slider = byId("time");
  slider.max = Math.max(0, past.length - 1);
  slider.value = view.moment === null ? slider.max : view.moment;
  byId("when").textContent = moment ? clock(moment.time) : "now";
  byId("pause").textContent = view.moment === null ? "❚❚" : "▶";
  byId("pause").setAttribute("aria-label", view.moment === null ? "Pause" : "Back to now");
  drawChosen();
}

function drawChosen() {
  const k = view.chosen;
  byId("hint").hidden = k !== null; byId("facts").hidden = k === null; byId("told").style.visibility = k === null ? "hidden" : "visible";
  byId("name").textContent = k === null ? "Nobody chosen" : data.names[k];
  if (k === null) return;
  const row = live.rows[k], number = (name) => row[column[name]], rounds = number("sends") + number("censored");
  const facts = {
    state: live.here[k] ? "here" : "does not answer", round: grouped(number("round")), "mean square error": digits(at() ? at().errors[k] : number("error")),
    sent: amount(number("bits")), messages: grouped(number("sends")), "rounds silent": rounds ? `${(100 * number("censored") / rounds).toFixed(1)}%` : "–",
    repairs: grouped(number("repairs")), alerts: grouped(number("alerts")), neighbours: touching[k].length,
  };
  byId("facts").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => {
    const [term, what] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name; what.textContent = value;
    return [term, what];
  }));
  drawTold(byId("told"), view.told);
}

function drawScale() {
  const { pen, w, h } = prepare(byId("scale"));
  for (let x = 0; x < w; x++) { pen.fillStyle = paint(warmth(x / w)); pen.fillRect(x, 0, 1.5, h); }
}

// Panels are drawn at most five times a second, the network while something moves: thirty frames a second, or of many
// agents fifteen.
let lastFrame = 0, lastPanels = 0;
function frame(now) {
  const glowing = view.glow.some((level) => level > 0);
  if ((view.stale || glowing) && now - lastFrame > (n > 200 ? 60 : 32)) {
    const panels = view.stale && now - lastPanels > 200;
    if (panels) { drawPanels(); lastPanels = now; }
    drawNetwork(Math.min(0.2, (now - lastFrame) / 1000)); lastFrame = now; view.frames++;
    if (panels) view.stale = false;
  }
  requestAnimationFrame(frame);
}

// Touching -------------------------------------------------------------------------------------------------------------

function choose(k) { view.chosen = k; view.told = []; watch(); view.stale = true; lastPanels = 0; }
function freeze(moment) { view.moment = moment; view.stale = true; lastPanels = 0; }

byId("network").addEventListener("click", (event) => {
  const [near] = (view.spots || []).map(([x, y], k) => [Math.hypot(x - event.offsetX, y - event.offsetY), k]).sort((a, b) => a[0] - b[0]);
  choose(near && near[0] < view.radius + 12 ? near[1] : null);
});
byId("pause").onclick = () => freeze(view.moment === null ? Math.max(0, view.past.length - 1) : null);
byId("time").oninput = (event) => freeze(+event.target.value >= view.past.length - 1 ? null : +event.target.value);
byId("theme").onclick = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; drawScale(); view.stale = true; lastPanels = 0; };
addEventListener("keydown", (event) => {
  if (event.target.matches("input, button, select")) return;
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step) choose(view.chosen === null ? (step > 0 ? 0 : n - 1) : (view.chosen + step + n) % n);
  else if (event.key === " ") byId("pause").click();
  else if (event.key === "Escape") choose(null);
  else return;
  event.preventDefault();
});
addEventListener("resize", () => { drawScale(); view.stale = true; lastPanels = 0; });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawScale(); view.stale = true; lastPanels = 0; });

drawScale();
connect();
requestAnimationFrame(frame);
globalThis.laconic = { data, live, view };
