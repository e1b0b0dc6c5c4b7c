// The network with its messages, replayed: rounds pass by a logarithmic clock, so that the first can be watched.

const nRounds = data.moments.at(-1);
const nearby = Array.from({ length: nAgents }, () => []);
for (const [a, b] of data.edges) { nearby[a].push(b); nearby[b].push(a); }

// All messages of a view, [round, sender, bits, receivers], by round; and running totals.
function readTraffic(traffic) {
  const rounds = Array.from({ length: nRounds + 1 }, () => []);
  for (const [round, ...rest] of traffic.events) rounds[round].push(rest);
  const bytes = Uint8Array.from(atob(traffic.masks), (c) => c.charCodeAt(0));
  for (let t = 0; 2 * t < bytes.length; t++) {
    const mask = bytes[2 * t] | (bytes[2 * t + 1] << 8);
    for (let k = 0; k < nAgents; k++) if (mask >> k & 1) rounds[t + 1].push([k, traffic.size, nearby[k]]);
  }
  const messages = new Float64Array(nRounds + 1), bits = new Float64Array(nRounds + 1);
  for (let t = 1; t <= nRounds; t++) {
    messages[t] = messages[t - 1] + rounds[t].length;
    bits[t] = bits[t - 1] + rounds[t].reduce((sum, [, size]) => sum + size, 0);
  }
  return { rounds, messages, bits };
}
for (const view of data.views) view.said = readTraffic(view.traffic);

const replay = { view: data.views[0], share: 0, playing: false, round: 1, glow: new Map(), dots: [], last: 0 };
const roundAt = (share) => Math.max(1, Math.round(Math.exp(share * Math.log(nRounds))));
const LENGTH = 26, FLIGHT = 0.42, FADE = 0.5;  // seconds of the whole, of a message's way, and until an edge is dark again

function jump(share) {
  replay.share = share; replay.round = roundAt(share); replay.dots = []; replay.glow.clear();
}

function pass(now) {
  const seconds = Math.min(0.1, (now - replay.last) / 1000);
  replay.last = now;
  if (replay.playing) {
    replay.share = Math.min(1, replay.share + seconds / LENGTH);
    const round = roundAt(replay.share);
    for (let t = replay.round + 1; t <= round; t++) for (const [from, size, to] of replay.view.said.rounds[t]) for (const end of to) {
      const key = Math.min(from, end) * nAgents + Math.max(from, end);
      replay.glow.set(key, Math.min(1.6, (replay.glow.get(key) || 0) + 0.7));
      if (replay.dots.length < 160) replay.dots.push({ from, to: end, size, age: 0 });
    }
    replay.round = round;
    if (replay.share >= 1) replay.playing = false;
  }
  for (const [key, level] of replay.glow) {
    if (level < 0.02) replay.glow.delete(key); else replay.glow.set(key, level * Math.exp(-seconds / FADE));
  }
  for (const dot of replay.dots) dot.age += seconds / FLIGHT;
  replay.dots = replay.dots.filter((dot) => dot.age < 1);
}

const mix = (a, b, share) => `rgb(${a.map((v, k) => Math.round(v + share * (b[k] - v))).join(" ")})`;
const rgb = (name) => {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
};

// What an agent knows at a moment, painted once and kept.
const thumbnails = new Map();
function thumbnail(view, moment, agent) {
  const key = `${view.name} ${moment} ${agent}`;
  if (!thumbnails.has(key)) thumbnails.set(key, paint(heights(view, moment, agent)));
  return thumbnails.get(key);
}

function drawNetwork(canvas) {
  const { pen, w, h } = prepare(canvas), hot = rgb("--hot"), calm = rgb("--calm"), ink = rgb("--ink"), card = rgb("--card");
  // On a narrow screen the grid stands upright, as a phone does.
  const upright = h > w, [nWide, nHigh] = upright ? [data.rows, data.columns] : [data.columns, data.rows];
  const place = (k) => {
    const cell = [k % data.columns, Math.floor(k / data.columns)], [column, row] = upright ? cell.reverse() : cell;
    return [(column + 0.5) * w / nWide, (row + 0.54) * h / nHigh];
  };
  const across = 0.76 * w / nWide, down = across * high / wide, rim = Math.max(2, across / 50);
  const edge = card.map((c, k) => c + 0.2 * (ink[k] - c)), moment = momentAt(replay.round);
  pen.lineCap = "round";
  for (const [a, b] of data.edges) {
    const glow = Math.min(1, replay.glow.get(a * nAgents + b) || 0);
    pen.strokeStyle = mix(edge, hot, glow); pen.lineWidth = 1.5 + 3.5 * glow;
    pen.beginPath(); pen.moveTo(...place(a)); pen.lineTo(...place(b)); pen.stroke();
  }
  pen.imageSmoothingQuality = "high";
  for (let k = 0; k < nAgents; k++) {
    const [x, y] = place(k), known = knowledge(replay.view.errors[moment][k]);
    const box = [x - across / 2, y - down / 2, across, down];
    pen.save();
    pen.beginPath(); pen.roundRect(...box, 3 * rim);
    pen.clip(); pen.drawImage(thumbnail(replay.view, moment, k), ...box);
    const tw = across / data.columns, th = down / data.rows;
    pen.strokeStyle = "rgb(255 255 255 / .9)"; pen.lineWidth = 1.2;
    pen.strokeRect(box[0] + k % data.columns * tw + 1, box[1] + Math.floor(k / data.columns) * th + 1, tw - 2, th - 2);
    pen.restore();
    pen.beginPath(); pen.roundRect(...box, 3 * rim);
    pen.strokeStyle = mix(hot, calm, known); pen.lineWidth = rim; pen.stroke();
    pen.font = `600 ${Math.max(11, Math.min(15, across / 9))}px system-ui, sans-serif`;
    pen.textAlign = "left"; pen.textBaseline = "bottom"; pen.fillStyle = mix(hot, calm, known);
    pen.fillText(k, box[0] + 2, box[1] - rim);
  }
  pen.fillStyle = mix(hot, hot, 0); pen.strokeStyle = mix(card, card, 0); pen.lineWidth = 1.2;
  for (const { from, to, size, age } of replay.dots) {
    const [ax, ay] = place(from), [bx, by] = place(to), s = age * age * (3 - 2 * age);
    pen.beginPath(); pen.arc(ax + s * (bx - ax), ay + s * (by - ay), (2.4 + Math.sqrt(size) / 17) * Math.min(1, 0.5 + w / 1600), 0, 7);
    pen.fill(); pen.stroke();
  }
}

// From 0 at the error of knowing nothing to 1 at a thousandth of it.
const nothing = truth.reduce((sum, z) => sum + z * z, 0) / nPoints;
const knowledge = (error) => Math.max(0, Math.min(1, Math.log(nothing / error) / Math.log(300)));

function momentAt(round) {
  let at = 0;
  while (at + 1 < data.moments.length && data.moments[at + 1] <= round) at++;
  return at;
}
