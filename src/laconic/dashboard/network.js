// The network: edges at rest, edges that glow, messages on their way, agents by their error.

const FADE = 0.6, FLIGHT = 0.45, NAMED = 40;  // seconds until an edge is dark again, and of a message's way; agents whose names have room
const errorsOf = (lane) => { const point = at(lane); return point ? point.errors : lane.rows.map((row) => row[column.error]); };

function places(w, h) {
  const xs = data.places.map(([x]) => x), ys = data.places.map(([, y]) => y);
  const wide = Math.max(...xs) || 0.001, high = Math.max(...ys) || 0.001, rim = n > NAMED ? 16 : 40;
  // A tall network lies down on a wide screen, and a long one stands up on a phone.
  const turn = (wide > 1.2 * high && h > w) || (high > 1.2 * wide && w > h);
  const [pw, ph] = turn ? [high, wide] : [wide, high];
  const below = n > NAMED ? 0 : 16, above = nLanes > 1 ? 0 : 14;  // room for names, and for that of the learner
  const free = [(w - 2 * rim) / pw, (h - 2 * rim - below - above) / ph];
  const least = Math.min(...free), scale = free.map((one) => Math.min(one, 2 * least));  // a little out of shape is no harm
  const spare = [(w - scale[0] * pw) / 2, (h + below - above - scale[1] * ph) / 2];
  return data.places.map(([x, y]) => { const [a, b] = turn ? [y, x] : [x, y]; return [spare[0] + scale[0] * a, h - spare[1] - scale[1] * b]; });
}

// Agents that would lie on each other, or on each other's names, move aside; all others stay where they are.
function spread(spots, radius, w, h) {
  const name = n > NAMED ? 0 : 20, wide = 2.2 * radius, rim = radius + 6, high = wide + name, TURNS = 24;
  const order = spots.map((_, k) => k);
  for (let turn = 0, moved = true; moved && turn < TURNS; turn++) {
    moved = false;
    order.sort((a, b) => spots[a][0] - spots[b][0]);
    for (let i = 0; i < n; i++) for (let j = i + 1; j < n && spots[order[j]][0] - spots[order[i]][0] < wide; j++) {
      const a = spots[order[i]], b = spots[order[j]], dx = b[0] - a[0] || 0.01, dy = b[1] - a[1];
      const far = Math.hypot(dx / wide, dy / high);
      if (far >= 1) continue;
      const push = 0.5 * (1 - far) / Math.max(far, 0.05);
      moved = true;
      a[0] -= push * dx; b[0] += push * dx; a[1] -= push * dy; b[1] += push * dy;
    }
    for (const spot of spots) { spot[0] = Math.max(rim, Math.min(w - rim, spot[0])); spot[1] = Math.max(rim, Math.min(h - rim - name, spot[1])); }
  }
  return spots;
}

const shade = (error) => {
  if (error === null || error === undefined || error <= 0) return null;
  const [low, high] = view.range;
  return high > low ? Math.max(0, Math.min(1, Math.log(error / low) / Math.log(high / low))) : 0.5;
};

// Two layers keep what does not move: edges at rest, drawn anew when the picture has another size or other colours, and
// agents, when they have changed. A frame then costs two copies and the edges that glow.
lanes.forEach((lane, k) => { lane.canvas = byId(`network${k}`); lane.layers = { edges: document.createElement("canvas"), agents: document.createElement("canvas"), key: "" }; });
function onLayer(layer, canvas, draw) {
  layer.width = canvas.width; layer.height = canvas.height;
  const pen = layer.getContext("2d"), sharp = canvas.width / canvas.clientWidth;
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  draw(pen);
}
function strokeEdges(lane, pen, edges, wanted) {
  pen.beginPath();
  let some = false;
  for (let j = 0; j < edges.length; j++) if (wanted(j)) {
    const [a, b] = edges[j], from = lane.spots[a], to = lane.spots[b];
    some = true; pen.moveTo(from[0], from[1]); pen.lineTo(to[0], to[1]);
  }
  if (some) pen.stroke();
}

function drawNetwork(lane, seconds) {
  const { canvas, layers, glow } = lane, { pen, w, h } = prepare(canvas), hot = rgb("--hot"), ink = rgb("--ink"), card = rgb("--card"), calm = rgb("--calm");
  if (!w || !h) return;
  const many = n > 200, thin = many ? 0.6 : 1.3, quiet = blend(card, ink, many ? 0.1 : 0.18), key = `${canvas.width} ${canvas.height} ${quiet}`;
  if (layers.key !== key) {
    layers.key = key; view.stale = true;
    lane.radius = Math.max(2.5, Math.min(19, (n > NAMED ? 0.15 : 0.3) * Math.sqrt(w * h / n)));
    lane.spots = spread(places(w, h), lane.radius, w, h);
    onLayer(layers.edges, canvas, (under) => {
      under.strokeStyle = paint(quiet); under.lineWidth = thin; strokeEdges(lane, under, data.edges, () => true);
      under.strokeStyle = paint(blend(card, calm, 0.45)); under.lineWidth = many ? 0.9 : 2.2; strokeEdges(lane, under, lane.tree, () => true);
    });
  }
  if (view.stale) onLayer(layers.agents, canvas, (over) => drawAgents(lane, over));
  pen.drawImage(layers.edges, 0, 0, w, h);
  // Edges are lit by how brightly they glow: a few strokes, however many edges. Where nearly all do, each does less.
  const levels = many ? 2 : 4;
  let lit = 0;
  for (let e = 0; e < glow.length; e++) if (glow[e] > 0.3) lit++;
  const light = n > 40 ? Math.max(0.3, 1 - lit / glow.length) : 1;
  pen.lineCap = n > NAMED ? "butt" : "round";
  for (let level = 1; level <= levels; level++) {
    pen.strokeStyle = paint(blend(quiet, hot, light * level / levels)); pen.lineWidth = thin + (many ? 0.5 : 2.4) * light * level / levels;
    strokeEdges(lane, pen, data.edges, (e) => Math.ceil(levels * glow[e]) === level);
  }
  for (let e = 0; e < glow.length; e++) glow[e] = glow[e] < 0.04 ? 0 : glow[e] * Math.exp(-seconds / FADE);
  pen.fillStyle = paint(hot); pen.strokeStyle = paint(card); pen.lineWidth = 1.2;
  for (const dot of lane.dots) {
    const [ax, ay] = lane.spots[dot.from], [bx, by] = lane.spots[dot.to], s = dot.age * dot.age * (3 - 2 * dot.age);
    pen.beginPath(); pen.arc(ax + s * (bx - ax), ay + s * (by - ay), Math.max(2.2, lane.radius / 4.5), 0, 7); pen.fill(); pen.stroke();
    dot.age += seconds / FLIGHT;
  }
  lane.dots = lane.dots.filter((dot) => dot.age < 1);
  pen.drawImage(layers.agents, 0, 0, w, h);
}

function drawAgents(lane, pen) {
  const ink = rgb("--ink"), card = rgb("--card"), errors = errorsOf(lane), { spots, radius } = lane, past = view.moment !== null;
  const shades = Array.from({ length: 33 }, (_, k) => paint(warmth(k / 32))), gone = paint(blend(card, ink, 0.12)), unknown = paint(blend(card, ink, 0.4));
  pen.lineWidth = radius > 6 ? 1.5 : 0.6;
  for (let k = 0; k < n; k++) {
    const share = shade(errors[k]), [x, y] = spots[k], away = !lane.here[k] && !past;
    pen.fillStyle = away ? gone : share === null ? unknown : shades[Math.round(32 * share)];
    pen.beginPath(); pen.arc(x, y, radius, 0, 7); pen.fill();
    if (away) { pen.strokeStyle = css("--quiet"); pen.setLineDash(radius > 6 ? [3, 3] : []); pen.stroke(); pen.setLineDash([]); }
    else if (radius > 4) { pen.strokeStyle = paint(card); pen.stroke(); }
  }
  if (n <= NAMED) {
    pen.font = `600 13px ${FONT}`; pen.textAlign = "center"; pen.textBaseline = "top"; pen.fillStyle = css("--ink");
    pen.strokeStyle = css("--card"); pen.lineWidth = 4; pen.lineJoin = "round";
    spots.forEach(([x, y], k) => { pen.strokeText(data.names[k], x, y + radius + 5); pen.fillText(data.names[k], x, y + radius + 5); });
  }
  if (view.chosen !== null) {
    const [x, y] = spots[view.chosen];
    pen.strokeStyle = css("--ink"); pen.lineWidth = 2.5; pen.beginPath(); pen.arc(x, y, radius + 4.5, 0, 7); pen.stroke();
  }
}
