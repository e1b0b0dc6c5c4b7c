// The page: numbers, charts and one agent, when there is something new; and what people touch.

function drawPanels() {
  const marks = lanes.map(at), back = view.moment !== null;
  const seen = lanes.flatMap((lane) => errorsOf(lane).filter((e) => e > 0)).sort((a, b) => a - b);
  if (seen.length) {
    const means = lanes.flatMap((lane) => lane.past.map((point) => point.error).filter((e) => e > 0));
    const [low, high] = [Math.min(seen[0], ...means), Math.max(seen[Math.floor(0.95 * (seen.length - 1))], ...means)];
    view.range = high > 1.5 * low ? [low, high] : [low / 1.25, high * 1.25];
  }
  lanes.forEach((lane, k) => drawNumbers(lane, k, marks[k]));
  byId("empty").hidden = lanes.some((lane) => lane.past.length || lane.here.some(Boolean));
  const [low, high] = view.range;
  byId("ticks").replaceChildren(...(seen.length ? [low, Math.sqrt(low * high), high] : []).map((value) => { const tick = document.createElement("span"); tick.textContent = digits(value); return tick; }));
  const line = (f) => lanes.map((lane) => lane.past.map(f)), marked = (f) => (back ? marks.map((point) => point && f(point)) : null);
  const when = data.rounds ? "round" : "time", course = { logX: Boolean(data.rounds), words: data.rounds ? grouped : clock };
  drawLines(byId("cost"), line((p) => [p.bits, p.error]), { logX: true, words: amount, marks: marked((p) => [p.bits, p.error]), missing: "Nothing has been sent yet." });
  drawLines(byId("course"), line((p) => [p[when], p.error]), { ...course, marks: marked((p) => [p[when], p.error]) });
  drawLines(byId("agreement"), line((p) => [p[when], p.disagreement]), { ...course, levels: percent, marks: marked((p) => [p[when], p.disagreement]), missing: "Not known yet." });
  const past = longest().past, slider = byId("time"), index = back ? past.findLastIndex((p) => p.time <= view.moment + 1e-6) : past.length - 1;
  slider.max = Math.max(0, past.length - 1); slider.value = Math.max(0, index);
  const words = !back ? "now" : data.rounds ? `round ${grouped(past[Math.max(0, index)]?.round ?? 0)}` : clock(view.moment);
  byId("when").textContent = words; slider.setAttribute("aria-valuetext", words);
  byId("pause").toggleAttribute("data-held", back);
  byId("pause").setAttribute("aria-label", back ? "Back to now" : "Pause");
  drawChosen(marks);
}
const longest = () => lanes.reduce((a, b) => (b.past.length > a.past.length ? b : a));

function drawNumbers(lane, k, moment) {
  const whole = moment || summary(lane), spoken = whole.sends + whole.censored;
  const put = (id, words) => { byId(`${id}${k}`).textContent = words; };
  const { here } = summary(lane);
  put("here", here === n ? `all ${grouped(n)}` : `${grouped(here)} of ${grouped(n)}`);
  put("round", grouped(whole.round));
  put("error", digits(whole.error));
  put("bits", amount(whole.bits));
  put("silence", spoken ? `${(100 * whole.censored / spoken).toFixed(1)}%` : "–");
  put("apart", percent(whole.disagreement));
  byId("apart0").parentElement.hidden = lanes.every((one) => (one.past.at(-1)?.disagreement ?? null) === null);
  const end = moment ? moment.time : lane.past.length ? lane.past.at(-1).time : 0;
  const recent = lane.past.filter((point) => point.time > end - (data.rounds ? 3 : 10) && point.time <= end), [first, last] = [recent[0], recent.at(-1)];
  put("pace", recent.length > 1 && last.time > first.time ? digits(Math.max(0, (last.round - first.round) / (last.time - first.time))) : "–");
}

// With nobody chosen, those with the largest errors: who is worth a look. Rows stay, what is in them changes, so that
// whoever has come to one by the keyboard is not thrown off it.
const RANKED = 8;
function drawRanks() {
  const errors = lanes.map(errorsOf), worst = errors[0].map((error, k) => [Math.max(error ?? -1, errors[1]?.[k] ?? -1), k]);
  const first = worst.filter(([error]) => error >= 0).sort((a, b) => b[0] - a[0]).slice(0, RANKED), body = byId("ranks").querySelector("tbody");
  while (body.rows.length > first.length) body.deleteRow(-1);
  while (body.rows.length < first.length) {
    const row = body.insertRow(), button = document.createElement("button");
    button.type = "button"; button.append(document.createElement("i"), document.createElement("span"));
    button.onclick = () => choose(+row.dataset.agent);
    row.insertCell().append(button); lanes.forEach(() => row.insertCell());
  }
  first.forEach(([error, k], j) => {
    const row = body.rows[j], share = shade(error);
    row.dataset.agent = k; row.querySelector("span").textContent = data.names[k];
    row.querySelector("i").style.background = share === null ? "var(--faint)" : paint(warmth(share));
    lanes.forEach((_, lane) => { row.cells[lane + 1].textContent = digits(errors[lane][k]); });
  });
}

function drawChosen(marks) {
  const k = view.chosen;
  byId("ranks").hidden = k !== null; byId("facts").hidden = k === null; byId("told").hidden = k === null;
  byId("name").textContent = k === null ? "Farthest off" : data.names[k];
  byId("agents").value = k === null ? "" : k;
  if (k === null) return drawRanks();
  const rows = [["state", (lane) => (lane.here[k] ? "here" : "away")], ["round", (lane, number) => grouped(number("round"))],
    ["mean square error", (lane, number, moment) => digits(moment ? moment.errors[k] : number("error"))],
    ["sent", (lane, number) => amount(number("bits"))],
    ["messages", (lane, number, moment) => grouped(moment ? moment.spoken[k] : number("sends"))],
    ["rounds silent", (lane, number) => (number("sends") + number("censored") ? `${(100 * number("censored") / (number("sends") + number("censored"))).toFixed(1)}%` : "–")]];
  if (!data.rounds) rows.push(["repairs", (lane, number) => grouped(number("repairs"))], ["alerts", (lane, number) => grouped(number("alerts"))]);
  if (lanes.some((lane) => lane.rows[k][column.waves])) rows.push(["waves", (lane, number) => grouped(number("waves"))]);
  rows.push(["neighbours", () => touching[k].length]);
  rows.push(["last prediction", (lane) => digits(lane.told.at(-1)?.[1])], ["and its label", (lane) => digits(lane.told.at(-1)?.[2])]);
  byId("facts").tBodies[0].replaceChildren(...rows.map(([words, value]) => {
    const row = document.createElement("tr"), head = document.createElement("th");
    head.scope = "row"; head.textContent = words; row.append(head);
    lanes.forEach((lane, j) => { row.insertCell().textContent = value(lane, (name) => lane.rows[k][column[name]], marks[j]); });
    return row;
  }));
  drawTold(byId("told"), lanes.map((lane) => lane.told));
}

function drawScale() {
  const { pen, w, h } = prepare(byId("scale"));
  for (let x = 0; x < w; x++) { pen.fillStyle = paint(warmth(x / w)); pen.fillRect(x, 0, 1.5, h); }
}

// Panels are drawn at most five times a second, the network while something moves: thirty frames a second, or of many
// agents fifteen.
let lastFrame = 0, lastPanels = 0;
function frame(now) {
  requestAnimationFrame(frame);
  const moving = lanes.some((lane) => lane.dots.length || lane.glow.some((level) => level > 0));
  if ((view.stale || moving) && now - lastFrame > (n * nLanes > 200 ? 60 : 32)) {
    const panels = view.stale && now - lastPanels > 200;
    if (panels) { drawPanels(); lastPanels = now; }
    const seconds = Math.min(0.2, (now - lastFrame) / 1000);
    for (const lane of lanes) drawNetwork(lane, seconds);
    lastFrame = now; view.frames++;
    if (panels) view.stale = false;
  }
}

// Touching -------------------------------------------------------------------------------------------------------------

function redraw() { view.stale = true; lastPanels = 0; }
function choose(k) { view.chosen = k; for (const lane of lanes) lane.told = []; watch(); redraw(); }
function freeze(moment) { view.moment = moment; for (const lane of lanes) { lane.glow.fill(0); lane.dots = []; } redraw(); }
function dress(theme) { document.documentElement.dataset.theme = theme; drawScale(); redraw(); }

for (const lane of lanes) lane.canvas.addEventListener("click", (event) => {
  const [near] = (lane.spots || []).map(([x, y], k) => [Math.hypot(x - event.offsetX, y - event.offsetY), k]).sort((a, b) => a[0] - b[0]);
  choose(near && near[0] < lane.radius + 12 ? near[1] : null);
});
byId("agents").append(...data.names.map((name, k) => new Option(name, k)));
byId("agents").onchange = (event) => choose(event.target.value === "" ? null : +event.target.value);
byId("pause").onclick = () => freeze(view.moment === null ? (longest().past.at(-1)?.time ?? null) : null);
byId("time").oninput = (event) => { const past = longest().past, k = +event.target.value; freeze(k >= past.length - 1 ? null : past[k].time); };
byId("theme").onclick = () => dress(isDark() ? "light" : "dark");
addEventListener("keydown", (event) => {
  if (event.target.matches("input, button, select, .log") || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step) choose(view.chosen === null ? (step > 0 ? 0 : n - 1) : (view.chosen + step + n) % n);
  else if (event.key === " ") byId("pause").click();
  else if (event.key === "Escape") choose(null);
  else return;
  event.preventDefault();
});
addEventListener("resize", () => { drawScale(); redraw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawScale(); redraw(); });
// Paper is white.
let worn;
addEventListener("beforeprint", () => { worn = document.documentElement.dataset.theme; dress("light"); drawPanels(); for (const lane of lanes) drawNetwork(lane, 0); });
addEventListener("afterprint", () => { if (worn) dress(worn); else { delete document.documentElement.dataset.theme; drawScale(); redraw(); } });

for (const head of document.querySelectorAll("#chosen thead")) head.hidden = nLanes < 2;
byId("agreement").parentElement.hidden = n > 100 && !data.rounds;  // so many agents are not asked for their models
if (data.rounds) {
  byId("round0").parentElement.firstElementChild.textContent = `round of ${grouped(data.rounds)}`;
  byId("over-time").textContent = "Error over rounds";
}
document.querySelector(".told.tree").hidden = !lanes.some((lane) => lane.tree.length);
drawScale();
connect();
requestAnimationFrame(frame);
globalThis.laconic = { data, lanes, view };
