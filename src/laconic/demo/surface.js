// What a model knows, drawn: heights over the unit square from weights and features, as a shaded map with contours.

const data = JSON.parse(document.getElementById("data").textContent);
const wide = data.wide, high = data.high, nPoints = wide * high;

// Rows of 16-bit numbers, each with a scale of its own.
function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.codes), (c) => c.charCodeAt(0));
  const codes = new DataView(bytes.buffer), length = bytes.length / 2 / packed.scales.length;
  return packed.scales.map((scale, row) =>
    Float32Array.from({ length }, (_, k) => scale * codes.getInt16(2 * (row * length + k), true)));
}

const truth = unpack(data.truth)[0];
const lowest = Math.min(...truth), highest = Math.max(...truth);

// phi at every point of the grid: cosines, sines, and with a scaling behind them the scaled inputs and a one.
function featuresOnGrid(map) {
  const inputs = map.centre ? 4 : 2, n = map.frequencies.length / inputs;
  const size = 2 * n + (map.linear ? 3 : 0), phi = new Float32Array(nPoints * size);
  for (let p = 0; p < nPoints; p++) {
    const x = [((p % wide) + 0.5) / wide, 1 - (Math.floor(p / wide) + 0.5) / high];
    const u = map.centre ? x.map((v, k) => (v - map.centre[k]) / map.scale[k]) : x;
    const seen = map.centre ? [...u.map(Math.asinh), ...u] : x;
    const at = p * size, norm = 1 / Math.sqrt(n);
    for (let l = 0; l < n; l++) {
      let phase = 0;
      for (let k = 0; k < inputs; k++) phase += map.frequencies[l * inputs + k] * seen[k];
      phi[at + l] = norm * Math.cos(phase);
      phi[at + n + l] = norm * Math.sin(phase);
    }
    if (map.linear) {
      const most = map.most === null ? Infinity : map.most;
      for (let k = 0; k < 2; k++) phi[at + 2 * n + k] = Math.max(-most, Math.min(most, u[k])) / Math.SQRT2;
      phi[at + 2 * n + 2] = 1;
    }
  }
  return { phi, size };
}
const grids = data.maps.map(featuresOnGrid);
const nAgents = data.rows * data.columns;
for (const view of data.views) view.weights = unpack(view.models);

function heights(view, moment, agent) {
  const { phi, size } = grids[view.map], weights = view.weights[moment * nAgents + agent];
  const z = new Float32Array(nPoints);
  for (let p = 0; p < nPoints; p++) {
    let sum = view.centre;
    for (let k = 0, at = p * size; k < size; k++) sum += phi[at + k] * weights[k];
    z[p] = sum;
  }
  return z;
}

const stops = [[8, 29, 72], [18, 78, 138], [27, 131, 150], [92, 174, 136], [190, 206, 118], [243, 214, 122], [255, 245, 214]];
function colour(share) {
  const s = Math.max(0, Math.min(1, share)) * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(s));
  return stops[k].map((c, i) => c + (s - k) * (stops[k + 1][i] - c));
}

// A canvas as sharp as the screen is; sizes below are in CSS pixels.
function prepare(canvas) {
  const box = canvas.getBoundingClientRect(), sharp = Math.min(3, window.devicePixelRatio || 1);
  canvas.width = Math.round(box.width * sharp);
  canvas.height = Math.round(box.height * sharp);
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  return { pen, w: box.width, h: box.height };
}

// The surface, a pixel a point, coloured by height and lit from the north-west.
function paint(z) {
  const small = document.createElement("canvas");
  small.width = wide; small.height = high;
  const image = new ImageData(wide, high);
  for (let p = 0; p < nPoints; p++) {
    const col = p % wide, row = Math.floor(p / wide);
    const east = z[p + (col < wide - 1 ? 1 : 0)] - z[p - (col > 0 ? 1 : 0)];
    const north = z[p - (row > 0 ? wide : 0)] - z[p + (row < high - 1 ? wide : 0)];
    const light = Math.max(-0.2, Math.min(0.2, north - east)), end = light > 0 ? 255 : 0;
    colour((z[p] - lowest) / (highest - lowest)).forEach((c, i) => {
      image.data[4 * p + i] = c + Math.abs(light) * (end - c);
    });
    image.data[4 * p + 3] = 255;
  }
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

function drawSurface(canvas, z, agent, numbered) {
  const { pen, w, h } = prepare(canvas);
  if (!w) return;
  pen.imageSmoothingEnabled = true; pen.imageSmoothingQuality = "high";
  pen.drawImage(paint(z), 0, 0, w, h);
  drawContours(pen, z, w / wide, h / high);
  drawTiles(pen, w, h, agent, numbered);
}

// Marching squares: lines of equal height, a quarter of a unit apart.
function drawContours(pen, z, dx, dy) {
  pen.beginPath();
  for (let level = Math.ceil(lowest * 4) / 4; level < highest; level += 0.25) {
    for (let row = 0; row < high - 1; row++) for (let col = 0; col < wide - 1; col++) {
      const p = row * wide + col, corner = [z[p], z[p + 1], z[p + wide + 1], z[p + wide]], cuts = [];
      for (let side = 0; side < 4; side++) {
        const a = corner[side] - level, b = corner[(side + 1) % 4] - level;
        if (a < 0 === b < 0) continue;
        const s = a / (a - b);
        cuts.push([[s, 0], [1, s], [1 - s, 1], [0, 1 - s]][side]);
      }
      for (let k = 0; k + 1 < cuts.length; k += 2) {
        pen.moveTo((col + 0.5 + cuts[k][0]) * dx, (row + 0.5 + cuts[k][1]) * dy);
        pen.lineTo((col + 0.5 + cuts[k + 1][0]) * dx, (row + 0.5 + cuts[k + 1][1]) * dy);
      }
    }
  }
  pen.strokeStyle = "rgb(6 24 44 / .28)"; pen.lineWidth = 0.8; pen.stroke();
}

function drawTiles(pen, w, h, agent, numbered) {
  const tw = w / data.columns, th = h / data.rows;
  pen.strokeStyle = "rgb(255 255 255 / .38)"; pen.lineWidth = 1;
  pen.beginPath();
  for (let k = 1; k < data.columns; k++) { pen.moveTo(k * tw, 0); pen.lineTo(k * tw, h); }
  for (let k = 1; k < data.rows; k++) { pen.moveTo(0, k * th); pen.lineTo(w, k * th); }
  pen.stroke();
  if (numbered) {
    pen.font = "600 14px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "middle";
    pen.shadowColor = "rgb(0 0 0 / .6)"; pen.shadowBlur = 4; pen.fillStyle = "#fff";
    for (let k = 0; k < nAgents; k++) pen.fillText(k, (k % data.columns + 0.5) * tw, (Math.floor(k / data.columns) + 0.5) * th);
    pen.shadowBlur = 0;
  }
  const x = agent % data.columns * tw, y = Math.floor(agent / data.columns) * th;
  pen.lineWidth = 4.5; pen.strokeStyle = "rgb(0 0 0 / .4)"; pen.strokeRect(x + 2.5, y + 2.5, tw - 5, th - 5);
  pen.lineWidth = 2.5; pen.strokeStyle = "#ff8a2a"; pen.strokeRect(x + 2.5, y + 2.5, tw - 5, th - 5);
}
