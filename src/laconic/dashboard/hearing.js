// What is heard: rows of numbers for each lane, a past to go back to, events, and who spoke to whom.

const data = JSON.parse(byId("data").textContent), n = data.names.length, nLanes = data.lanes.length;
const column = Object.fromEntries(data.numbers.map((name, k) => [name, k]));
const KEPT = 600;  // points of the past
const lanes = data.lanes.map(({ name, tree }) => ({
  name, tree, here: new Uint8Array(n), rows: Array.from({ length: n }, () => data.numbers.map((what) => (what === "error" ? null : 0))),
  version: 0, past: [], told: [], glow: new Float32Array(data.edges.length), dots: [],
}));
const view = { chosen: null, moment: null, stale: true, frames: 0, updates: 0, range: [1, 1], over: 0 };
const touching = Array.from({ length: n }, () => []), edgeOf = new Map();
data.edges.forEach(([a, b], e) => { touching[a].push(e); touching[b].push(e); edgeOf.set(a * n + b, e); edgeOf.set(b * n + a, e); });
// Where waves run, whoever speaks does so along the tree.
for (const lane of lanes) {
  lane.branches = lane.tree.map(([child, parent]) => edgeOf.get(child * n + parent)).filter((e) => e !== undefined);
  const branch = new Set(lane.branches);
  lane.touching = lane.tree.length ? touching.map((edges) => edges.filter((e) => branch.has(e))) : touching;
}

const nothingYet = document.querySelector("#events .none");
let socket = null, patience = 250;
function connect() {
  const address = new URL("changes" + location.search, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(address);
  socket.onopen = () => { patience = 250; state("live", "live"); watch(); };
  socket.onmessage = (event) => hear(JSON.parse(event.data));
  socket.onclose = () => {
    state("lost", view.over >= nLanes ? "over; what you see stays" : "connection lost, trying again");
    setTimeout(connect, patience);
    patience = Math.min(5000, 2 * patience);
  };
}
function state(kind, words) { if (byId("link").textContent !== words) { byId("link").dataset.state = kind; byId("link").textContent = words; } }
const watched = () => (view.chosen === null ? null : data.names[view.chosen]);
function watch() { if (socket && socket.readyState === 1) socket.send(JSON.stringify({ watch: watched() })); }

function hear(said) {
  view.updates++;
  if (said.lanes[0].past) {  // a new connection tells all there is: what was kept here is in it, or was of another run
    byId("events").replaceChildren(nothingYet); view.over = 0;
  }
  said.lanes.forEach((part, k) => hearLane(lanes[k], part, said.watched));
  // Events of two lanes come in the order of time.
  const events = said.lanes.flatMap((part, k) => part.events.map((event) => [...event, k]));
  for (const event of events.sort((a, b) => a[0] - b[0])) tell(...event);
  if (view.over >= nLanes) state("over", "finished");
  view.stale = true;
}

function hearLane(lane, said, whom) {
  const fresh = Boolean(said.past);
  if (fresh) { lane.past = said.past; }
  const spoke = [];
  for (const [k, here, ...row] of said.agents) {
    if (!fresh && row[column.sends] > lane.rows[k][column.sends]) spoke.push(k);
    lane.here[k] = here; lane.rows[k] = row;
  }
  lane.version = said.version;
  if (view.moment === null) {
    const links = said.links || [];
    if (links.length) links.forEach(([from, to]) => fly(lane, from, edgeOf.get(from * n + to)));
    else for (const k of spoke) for (const e of lane.touching[k]) fly(lane, k, e);
  }
  if (said.predictions && whom === watched()) lane.told = said.predictions;
  lane.past.push(...(said.points || []));
  if (lane.past.length > KEPT) lane.past = lane.past.filter((_, k) => k % 2);
}

// A message on its way: the edge glows, and of not too many a dot runs along it.
const MOST_DOTS = 240;
function fly(lane, from, e) {
  if (e === undefined) return;
  lane.glow[e] = 1;
  if (n <= 150 && lane.dots.length < MOST_DOTS / (n > NAMED ? 4 : 1) && !still.matches) lane.dots.push({ from, to: data.edges[e][0] === from ? data.edges[e][1] : data.edges[e][0], age: 0 });
}

function tell(time, name, kind, words, k) {
  const list = byId("events"), item = document.createElement("li"), when = document.createElement("time"), what = document.createElement("span");
  list.querySelector(".none")?.remove();
  if (kind === "done" || (kind === "fault" && data.rounds)) view.over++;
  when.textContent = clock(time); what.textContent = nLanes > 1 && kind === "wave" ? `${lanes[k].name}: ${words}` : words;
  what.className = "what"; item.className = kind;
  item.append(when, what); list.prepend(item);
  while (list.children.length > 200) list.lastChild.remove();
}

// The last point that is not after a moment, of which lanes need not have the same.
function at(lane) {
  if (view.moment === null) return null;
  let found = lane.past[0] || null;
  for (const point of lane.past) if (point.time <= view.moment + 1e-6) found = point;
  return found;
}
function summary(lane) {
  const rows = lane.rows.filter((_, k) => lane.here[k]), errors = rows.map((row) => row[column.error]).filter((e) => e !== null);
  const total = (name) => lane.rows.reduce((sum, row) => sum + row[column[name]], 0), last = lane.past.at(-1);
  return {
    here: rows.length, round: rows.length ? rows.reduce((least, row) => Math.min(least, row[column.round]), Infinity) : 0,
    error: errors.length ? errors.reduce((a, b) => a + b) / errors.length : null,
    bits: total("bits"), sends: total("sends"), censored: total("censored"), disagreement: last ? last.disagreement : null,
  };
}
