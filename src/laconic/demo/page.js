// What the page does when somebody touches it.

const byId = (id) => document.getElementById(id);
const grouped = (value) => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
const [silent, ...talkers] = data.views;
const state = { agent: 0, talker: talkers.find((view) => view.name === data.hero) || talkers.at(-1), line: null };

// Three moments: before most has been said, after a word or two, at the end.
const shown = [5, 30, nRounds].map(momentAt);

function choices(holder, views, current, pick) {
  holder.replaceChildren(...views.map((view) => {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = view.name;
    button.setAttribute("aria-pressed", view === current());
    button.onclick = () => { pick(view); choices(holder, views, current, pick); };
    return button;
  }));
}

function fillRow(row) {
  row.replaceChildren(...shown.map((moment) => {
    const figure = document.createElement("figure"), canvas = document.createElement("canvas");
    canvas.dataset.moment = moment; canvas.setAttribute("role", "img");
    figure.append(canvas, document.createElement("figcaption"));
    return figure;
  }));
}

function drawRow(name, view) {
  byId(`${name}-name`).textContent = view.name;
  for (const figure of document.querySelectorAll(`[data-row="${name}"] figure`)) {
    const canvas = figure.firstChild, moment = +canvas.dataset.moment, round = data.moments[moment];
    const error = view.errors[moment][state.agent], sent = view.said.bits[round] / nAgents;
    drawSurface(canvas, heights(view, moment, state.agent), state.agent, false);
    const [when, what] = [document.createElement("b"), document.createTextNode("")];
    when.textContent = `after ${grouped(round)} round${round > 1 ? "s" : ""}`;
    what.textContent = `: off by ${+error.toPrecision(error < 1e-3 ? 1 : 2)}, ${sent ? `${(sent / 1000).toPrecision(2)} kbit` : "nothing"} sent`;
    figure.lastChild.replaceChildren(when, what);
    canvas.setAttribute("aria-label", `What agent ${state.agent} knows ${when.textContent}${what.textContent}`);
  }
}

function drawKnowledge() {
  drawSurface(document.querySelector('[data-surface="truth"]'), truth, state.agent, true);
  drawRow("alone", silent);
  drawRow("talker", state.talker);
  byId("agent").value = state.agent;
}

function drawScale() {
  const { pen, w, h } = prepare(byId("scale"));
  for (let x = 0; x < w; x++) { pen.fillStyle = `rgb(${colour(x / w).map(Math.round).join(" ")})`; pen.fillRect(x, 0, 1.5, h); }
  byId("low").textContent = lowest.toFixed(1).replace("-", "\u2212"); byId("high").textContent = highest.toFixed(1);
}

function drawNames() {
  byId("names").replaceChildren(...data.curves.map(({ name }) => {
    const button = document.createElement("button"), dot = document.createElement("i");
    button.type = "button"; dot.className = "dot"; dot.style.setProperty("--c", inkOf(name));
    button.append(dot, name);
    button.setAttribute("aria-pressed", state.line === name);
    button.onclick = () => { state.line = state.line === name ? null : name; drawCost(); };
    return button;
  }));
  for (const dot of document.querySelectorAll("td .dot, th .dot")) dot.style.setProperty("--c", inkOf(dot.dataset.name));
}
function drawCost() { drawChart(byId("chart"), state.line); drawNames(); }

function drawTraffic() {
  drawNetwork(byId("network"));
  const { said, errors } = replay.view, now = errors[momentAt(replay.round)];
  byId("round").textContent = grouped(replay.round);
  byId("messages").textContent = grouped(said.messages[replay.round]);
  byId("bits").textContent = grouped(said.bits[replay.round] / 1000);
  byId("error").textContent = +(now.reduce((a, b) => a + b) / nAgents).toPrecision(2);
  byId("time").value = 1000 * replay.share;
  byId("play").textContent = replay.playing ? "❚❚" : "▶";
  byId("play").setAttribute("aria-label", replay.playing ? "Pause" : "Play");
}

// Frames are drawn only while something moves.
function frame(now) {
  pass(now);
  drawTraffic();
  if (replay.playing || replay.dots.length || replay.glow.size) requestAnimationFrame(frame); else replay.idle = true;
}
function wake() { if (replay.idle !== false) { replay.idle = false; replay.last = performance.now(); requestAnimationFrame(frame); } }

byId("play").onclick = () => {
  if (!replay.playing && replay.share >= 1) jump(0);
  replay.playing = !replay.playing;
  wake();
};
byId("time").oninput = (event) => { replay.playing = false; jump(event.target.value / 1000); drawTraffic(); };
byId("agent").replaceChildren(...Array.from({ length: nAgents }, (_, k) => new Option(k, k)));
byId("agent").onchange = (event) => { state.agent = +event.target.value; drawKnowledge(); };
byId("knowledge").addEventListener("click", (event) => {
  if (!event.target.matches("canvas[data-surface], .row canvas")) return;
  const column = Math.floor(event.offsetX / event.target.clientWidth * data.columns);
  const row = Math.floor(event.offsetY / event.target.clientHeight * data.rows);
  state.agent = Math.max(0, Math.min(nAgents - 1, row * data.columns + column));
  drawKnowledge();
});
byId("theme").onclick = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; drawAll(); };
for (const pre of document.querySelectorAll("#next pre")) {
  const button = document.createElement("button");
  button.type = "button"; button.className = "copy"; button.textContent = "copy";
  button.onclick = async () => {
    try { await navigator.clipboard.writeText(pre.firstChild.textContent); button.textContent = "copied"; }
    catch { getSelection().selectAllChildren(pre.firstChild); button.textContent = "selected"; }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
  pre.append(button);
}

function drawAll() { drawKnowledge(); drawScale(); drawCost(); drawTraffic(); }

for (const row of document.querySelectorAll(".row")) fillRow(row);
choices(document.querySelector('[data-choice="talker"]'), talkers, () => state.talker, (view) => { state.talker = view; drawKnowledge(); });
replay.view = state.talker;
choices(document.querySelector('[data-choice="network"]'), talkers, () => replay.view, (view) => { replay.view = view; replay.playing = true; jump(0); wake(); });
jump(0);
drawAll();
let width = window.innerWidth;
addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; drawAll(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
// It plays by itself the first time it is seen, unless somebody has asked for less motion.
if ("IntersectionObserver" in window && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
  const watch = new IntersectionObserver(([entry]) => {
    if (entry.isIntersecting && !replay.share) { replay.playing = true; wake(); watch.disconnect(); }
  }, { threshold: 0.6 });
  watch.observe(byId("network"));
}

// For those who open the console.
globalThis.laconic = { data, heights, truth, replay, state };
