// Distance from the truth against bits, both by powers of ten, a line for each learner.

const inks = {
  light: ["#8a8f94", "#5a6066", "#56a0c9", "#9a6fb0", "#0b6ea8", "#b5478a", "#d55e00", "#1b8a5a", "#b8860b"],
  dark: ["#8b959d", "#b9c2c9", "#7fc4ea", "#c3a0d8", "#3f9fe0", "#ea83bd", "#ff8a3d", "#4fcf95", "#e6bd45"],
};
const isDark = () => (document.documentElement.dataset.theme
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const inkOf = (name) => inks[isDark() ? "dark" : "light"][data.curves.findIndex((curve) => curve.name === name)];

function node(kind, attributes, text) {
  const made = document.createElementNS("http:" + "//www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const inWords = (bits) => (bits >= 1e6 ? `${bits / 1e6} Mbit` : bits >= 1e3 ? `${bits / 1e3} kbit` : `${bits} bit`);

function drawChart(holder, chosen) {
  const w = Math.max(300, holder.clientWidth), narrow = w < 640, h = narrow ? 400 : 470;
  const left = 44, right = narrow ? 14 : 96, top = 14, bottom = 46;
  const spoken = data.curves.filter((curve) => curve.bits.at(-1) > 0);
  const all = data.curves.flatMap((curve) => curve.errors);
  const x0 = 3, x1 = Math.log10(Math.max(...spoken.map((curve) => curve.bits.at(-1)))) + 0.08;
  const y0 = Math.log10(Math.min(...all)) - 0.12, y1 = Math.log10(Math.max(...all)) + 0.04;
  const X = (bits) => left + (w - left - right) * (Math.log10(Math.max(bits, 10 ** x0)) - x0) / (x1 - x0);
  const Y = (error) => top + (h - top - bottom) * (y1 - Math.log10(error)) / (y1 - y0);
  const svg = node("svg", { viewBox: `0 0 ${w} ${h}`, width: w, height: h });

  for (let e = Math.ceil(x0); e <= x1; e++) {
    svg.append(node("line", { class: "axis", x1: X(10 ** e), x2: X(10 ** e), y1: top, y2: h - bottom }));
    svg.append(node("text", { x: X(10 ** e), y: h - bottom + 19, "text-anchor": "middle" }, inWords(10 ** e)));
  }
  for (let e = -6; e <= 2; e++) for (const digit of y1 - y0 > 2 ? [1] : [1, 2, 5]) {
    const level = digit * 10 ** e;
    if (Math.log10(level) < y0 || Math.log10(level) > y1) continue;
    svg.append(node("line", { class: "axis", x1: left, x2: w - right, y1: Y(level), y2: Y(level) }));
    svg.append(node("text", { x: left - 8, y: Y(level) + 4, "text-anchor": "end" }, +level.toPrecision(1)));
  }
  svg.append(node("text", { x: w - right, y: h - 6, "text-anchor": "end" }, "sent by all agents together"));

  const faded = (name) => (chosen && chosen !== name ? " dim" : "");
  const labels = [];
  for (const curve of data.curves) {
    const ink = inkOf(curve.name), silent = !curve.bits.at(-1);
    if (silent) {
      const y = Y(curve.errors.at(-1));
      svg.append(node("line", { class: `line${faded(curve.name)}`, stroke: ink, "stroke-dasharray": "1 7", x1: left, x2: w - right, y1: y, y2: y }));
      const above = curve.errors.at(-1) === Math.max(...data.curves.filter((other) => !other.bits.at(-1)).map((other) => other.errors.at(-1)));
      const text = `${curve.name}, silent`;
      labels.push({ name: curve.name, text, ink, x: w - right - text.length * 7.4, y: y + (above ? -7 : 17) });
      continue;
    }
    const points = curve.bits.flatMap((bits, k) => (bits >= 10 ** x0 ? [[X(bits), Y(curve.errors[k])]] : []));
    svg.append(node("polyline", { class: `line${faded(curve.name)}`, stroke: ink, points: points.map((p) => p.map((v) => v.toFixed(1)).join()).join(" ") }));
    const [x, y] = points.at(-1);
    svg.append(node("circle", { class: `line${faded(curve.name)}`, cx: x, cy: y, r: 5, style: `fill:${ink}`, stroke: "var(--paper)" }));
    labels.push({ name: curve.name, text: curve.name, ink, x: x + 9, y: y + 4 });
  }
  // Names keep out of each other's way: each is pushed up until it is free; in a narrow picture the chips name the lines.
  labels.sort((a, b) => b.y - a.y);
  const placed = [];
  for (const label of labels) {
    if (narrow && chosen !== label.name) continue;
    const span = label.text.length * 7.4;
    if (narrow && label.x + span > w) label.x = w - span;
    while (placed.some((other) => Math.abs(other.y - label.y) < 15 && label.x < other.x + other.span && other.x < label.x + span)) label.y -= 3;
    placed.push({ ...label, span });
    svg.append(node("text", { class: `name${faded(label.name)}`, x: label.x, y: label.y, style: `fill:${label.ink}` }, label.text));
  }
  holder.replaceChildren(svg);
}
