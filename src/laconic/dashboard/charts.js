// Charts: some lines over one axis, and one agent's predictions against its labels.

const LANES = [{ colour: "--calm", dash: [] }, { colour: "--other", dash: [7, 4] }];

// Values for the ticks of an axis: of a logarithm 1, 2 and 5 times powers of ten, fewer where there are too many.
// Loops count, since adding a step below the spacing of floats would never reach the end of an axis.
const POWERS_OF_FLOATS = [-324, 308];
function ticks(low, high, log, most) {
  if (log) {
    const lowest = Math.max(POWERS_OF_FLOATS[0], Math.floor(Math.log10(low))), highest = Math.min(POWERS_OF_FLOATS[1], Math.ceil(Math.log10(high)));
    for (const steps of [[1, 2, 5], [1, 3], [1]]) for (const jump of steps.length > 1 ? [1] : [1, 2, 3, 5]) {
      const found = [];
      for (let power = lowest; power <= highest; power++) {
        if (power % jump === 0) for (const step of steps) { const v = +`${step}e${power}`; if (v >= low * 0.999 && v <= high * 1.001) found.push(v); }
      }
      if (found.length <= most && found.length > 1) return found;
    }
  }
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) || 1, first = Math.ceil(low / step) * step;
  const found = Array.from({ length: Math.floor(most) + 1 }, (_, k) => first + k * step).filter((v) => v <= high);
  return [...new Set(found.map((v) => +v.toPrecision(12)))];
}

// Lines through points [x, y], one for each lane; `marks` are points of a moment that is looked back to.
function drawLines(canvas, lines, { logX = false, logY = true, words = grouped, levels = digits, marks = null, missing = "Nothing to draw yet." }) {
  const { pen, w, h } = prepare(canvas);
  const good = lines.map((points) => points.filter(([x, y]) => y !== null && y !== undefined && (!logY || y > 0) && (!logX || x > 0)));
  const all = good.flat();
  pen.font = `12px ${FONT}`; pen.fillStyle = css("--quiet");
  canvas.parentElement.classList.toggle("bare", all.length < 2);
  if (all.length < 2) { pen.fillText(missing, 4, 18); return; }
  const f = logX ? Math.log : (v) => v, g = logY ? Math.log : (v) => v;
  let [low, high] = [Infinity, -Infinity], [left, right] = [Infinity, -Infinity];
  for (const [x, y] of all) { low = Math.min(low, y); high = Math.max(high, y); left = Math.min(left, x); right = Math.max(right, x); }
  if (logY) { low *= 0.9; high *= 1.1; } else { const rim = 0.06 * (high - low || 1); low -= rim; high += rim; }
  const rim = { left: 50, top: 8, right: 12, bottom: 22 };
  const X = (x) => rim.left + (w - rim.left - rim.right) * (right > left ? (f(x) - f(left)) / (f(right) - f(left)) : 0.5);
  const Y = (y) => rim.top + (h - rim.top - rim.bottom) * (g(high) - g(y)) / (g(high) - g(low));
  pen.strokeStyle = css("--line"); pen.lineWidth = 1; pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const value of ticks(low, high, logY, 5)) {
    const y = Math.round(Y(value)) + 0.5;
    pen.beginPath(); pen.moveTo(rim.left, y); pen.lineTo(w - rim.right, y); pen.stroke(); pen.fillText(levels(value), rim.left - 8, y);
  }
  pen.textBaseline = "alphabetic"; pen.textAlign = "center";
  let free = -Infinity;  // no label runs into the one before it
  for (const value of ticks(left, right, logX, Math.max(3, Math.floor(w / 75)))) {
    const text = words(value), half = pen.measureText(text).width / 2, x = Math.max(half, Math.min(w - half, X(value)));
    if (x - half > free) { pen.fillText(text, x, h - 5); free = x + half + 10; }
  }
  pen.lineJoin = "round";
  good.forEach((points, k) => {
    if (!points.length) return;
    pen.strokeStyle = pen.fillStyle = css(LANES[k].colour); pen.lineWidth = 2; pen.setLineDash(LANES[k].dash); pen.beginPath();
    points.forEach(([x, y], j) => (j ? pen.lineTo(X(x), Y(y)) : pen.moveTo(X(x), Y(y))));
    pen.stroke(); pen.setLineDash([]);
    const mark = marks && marks[k], [ex, ey] = mark && mark[1] > 0 ? mark : points.at(-1);
    if (mark) { pen.globalAlpha = 0.5; pen.lineWidth = 1; pen.beginPath(); pen.moveTo(X(ex), rim.top); pen.lineTo(X(ex), h - rim.bottom); pen.stroke(); pen.globalAlpha = 1; }
    pen.beginPath(); pen.arc(X(ex), Y(ey), 4.5, 0, 7); pen.fill();
    pen.strokeStyle = css("--card"); pen.lineWidth = 1.5; pen.stroke();
  });
}

// Predictions (a line for each lane) and labels (dots) of one agent, by round.
function drawTold(canvas, told) {
  const { pen, w, h } = prepare(canvas), some = told.filter((one) => one.length > 1);
  pen.font = `12px ${FONT}`; pen.fillStyle = css("--quiet");
  if (!some.length) { pen.fillText("No predictions yet.", 4, 18); return; }
  const all = some.flatMap((one) => one.flatMap(([, p, y]) => (y === null ? [p] : [p, y]))), low = Math.min(...all), high = Math.max(...all);
  const first = Math.min(...some.map((one) => one[0][0])), last = Math.max(...some.map((one) => one.at(-1)[0]));
  const left = 50, X = (t) => left + (w - left - 8) * (last > first ? (t - first) / (last - first) : 0.5), Y = (v) => 26 + (h - 48) * (high > low ? (high - v) / (high - low) : 0.5);
  pen.textAlign = "right"; pen.textBaseline = "middle"; pen.fillText(digits(high), left - 8, Y(high)); pen.fillText(digits(low), left - 8, Y(low));
  pen.textBaseline = "alphabetic"; pen.textAlign = "left";
  pen.beginPath(); pen.fillStyle = css("--hot"); pen.arc(left + 4, 8, 3, 0, 7); pen.fill(); pen.fillStyle = css("--quiet"); pen.fillText("label", left + 12, 12);
  pen.fillRect(left + 56, 7, 14, 2); pen.fillText("predicted before it was seen", left + 76, 12);
  pen.fillStyle = css("--hot");
  for (const [t, , y] of some[0]) if (y !== null) { pen.beginPath(); pen.arc(X(t), Y(y), 2.5, 0, 7); pen.fill(); }
  told.forEach((one, k) => {
    pen.strokeStyle = css(LANES[k].colour); pen.lineWidth = 1.8; pen.setLineDash(LANES[k].dash); pen.lineJoin = "round"; pen.beginPath();
    one.forEach(([t, p], j) => (j ? pen.lineTo(X(t), Y(p)) : pen.moveTo(X(t), Y(p))));
    pen.stroke();
  });
  pen.setLineDash([]);
  pen.fillStyle = css("--quiet"); pen.fillText(`round ${grouped(first)}`, left, h - 4);
  pen.textAlign = "right"; pen.fillText(grouped(last), w - 8, h - 4);
}
