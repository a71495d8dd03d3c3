// Draws the timeline of a trace on a canvas. `data` is what lanes.py writes, with `duration` and `window`, the
// part that is shown first, in ns.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("trace").textContent);
  const canvas = document.getElementById("timeline"), tip = document.getElementById("tip");
  const pen = canvas.getContext("2d");
  const gutter = 158, axis = 22, heading = 20, gap = 5, fields = 7;
  let [from, to] = data.window, over = null, drag = null;

  // Rows, from top to bottom, with their slices as objects in the order of time.
  const rows = [], headings = [];
  let height = axis, group = null;
  for (const lane of data.lanes) {
    if (lane.group !== group) {
      group = lane.group;
      height += gap;
      headings.push({ text: group, top: height });
      height += heading;
    }
    const many = lane.rows.length, each = many > 3 ? 6 : many > 1 ? 8 : 16;
    lane.rows.forEach((flat, i) => {
      const slices = [];
      for (let at = 0, begin = 0; at < flat.length; at += fields) {
        begin += flat[at];
        slices.push({ begin, end: begin + flat[at + 1], name: data.names[flat[at + 2]], bytes: flat[at + 3],
          count: flat[at + 4], peer: data.names[flat[at + 5]], operation: flat[at + 6] });
      }
      rows.push({ lane, slices, top: height, height: each, label: i === 0 ? lane.label : "",
        middle: height + (many * each) / 2 });
      height += each + 1;
    });
    height += gap - 1;
  }

  const span = () => canvas.clientWidth - gutter - 8;
  const toX = (time) => gutter + ((time - from) / (to - from)) * span();
  const toTime = (x) => from + ((x - gutter) / span()) * (to - from);
  const kind = (row, one) => (one.name === "computation" ? "computation" : row.lane.kind);

  function text(ns) {
    if (Math.abs(ns) >= 1e9) return (ns / 1e9).toPrecision(5) + " s";
    if (Math.abs(ns) >= 1e6) return (ns / 1e6).toPrecision(4) + " ms";
    return (ns / 1e3).toPrecision(4) + " µs";
  }
  function size(bytes) {
    for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
      if (bytes >= unit) return (bytes / unit).toPrecision(3) + " " + name;
    return bytes + " B";
  }

  // The first slice that ends after `time`.
  function after(slices, time) {
    let low = 0, high = slices.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (slices[middle].end <= time) low = middle + 1; else high = middle;
    }
    return low;
  }

  function drawAxis(width) {
    // As many as have room beside each other.
    const label = (at, step) => (at / 1e6).toFixed(Math.max(0, 6 - Math.floor(Math.log10(step) + 1e-9))) + " ms";
    const room = pen.measureText(label(to, (to - from) / 8)).width + 12;
    const most = Math.min(8, Math.max(1, Math.floor((width - gutter) / room)));
    const rough = (to - from) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    pen.fillStyle = "#444";
    pen.strokeStyle = "#e4e4e4";
    let end = -1, crowded = 0;
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = Math.round(toX(at)) + 0.5;
      pen.beginPath(); pen.moveTo(x, axis); pen.lineTo(x, height); pen.stroke();
      if (x >= width - 30) continue;
      pen.fillText(label(at, step), x - 14, 13);
      if (x - 14 < end) ++crowded;
      end = x - 14 + pen.measureText(label(at, step)).width;
    }
    canvas.dataset.crowded = crowded;  // labels that lie over the one before
  }

  function drawRow(row, width) {
    const last = { x: -1, color: "" };
    let drawn = 0;
    for (let i = after(row.slices, from); i < row.slices.length && row.slices[i].begin < to; ++i) {
      const one = row.slices[i], color = data.colors[kind(row, one)];
      const x = Math.max(gutter, toX(one.begin)), right = Math.min(width - 8, toX(one.end));
      if (right - x < 0.4 && Math.floor(x) === last.x && color === last.color) continue;
      last.x = Math.floor(x);
      last.color = color;
      pen.fillStyle = color;
      const wide = Math.max(right - x, 0.6);
      pen.fillRect(x, row.top, wide > 3 ? wide - 0.5 : wide, row.height);
      ++drawn;
      if (row.height > 12 && wide > 46) {
        pen.fillStyle = "#fff";
        const room = Math.floor((wide - 6) / 6), name = one.name.replace("MPI_", "");
        pen.fillText(name.length > room ? name.slice(0, room) : name, x + 3, row.top + 12);
      }
      if (over && over.operation && one.operation === over.operation) {
        pen.strokeStyle = "#111";
        pen.strokeRect(x + 0.5, row.top + 0.5, Math.max(wide - 1, 1), row.height - 1);
      }
    }
    return drawn;
  }

  function draw() {
    const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = height + "px";
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px sans-serif";
    drawAxis(width);
    let drawn = 0;
    for (const row of rows) drawn += drawRow(row, width);
    pen.fillStyle = "#fff";
    pen.fillRect(0, axis, gutter - 1, height);
    for (const row of rows) {
      pen.fillStyle = "#444";
      if (row.label) pen.fillText(row.label, 14, row.middle + 4);
    }
    pen.font = "bold 12px sans-serif";
    pen.fillStyle = "#111";
    for (const one of headings) pen.fillText(one.text, 2, one.top + 14);
    document.getElementById("span").textContent = text(from) + " to " + text(to) + ", " + text(to - from) + " in all";
    canvas.dataset.drawn = drawn;
    canvas.dataset.from = Math.round(from);
    canvas.dataset.to = Math.round(to);
  }

  function show(begin, end) {
    const least = 1000, length = Math.min(Math.max(end - begin, least), data.duration);
    from = Math.min(Math.max(0, begin), data.duration - length);
    to = from + length;
    draw();
  }
  function zoom(factor, at) {
    show(at - (at - from) * factor, at + (to - at) * factor);
  }

  function sliceAt(x, y) {
    const row = rows.find((one) => y >= one.top && y < one.top + one.height + 1);
    if (!row || x < gutter) return null;
    const slack = ((to - from) / span()) * 2, time = toTime(x);
    const one = row.slices[after(row.slices, time - slack)];
    return one && one.begin <= time + slack ? { row, one } : null;
  }

  function hover(event) {
    const box = canvas.getBoundingClientRect();
    const found = sliceAt(event.clientX - box.left, event.clientY - box.top);
    tip.hidden = !found;
    if (found) {
      const { row, one } = found;
      const lines = [one.name + (one.peer ? ", " + one.peer : ""), text(one.end - one.begin) + " from " + text(one.begin)];
      if (one.bytes) lines.push(size(one.bytes));
      if (one.count > 1) lines.push(one.count + " short ones");
      lines.push(row.lane.group + ": " + row.lane.label);
      tip.textContent = lines.join("\n");
      tip.style.left = Math.min(event.clientX + 14, window.innerWidth - 250) + "px";
      tip.style.top = event.clientY + 14 + "px";
    }
    const next = found ? found.one : null;
    if ((next && next.operation) !== (over && over.operation)) { over = next; draw(); } else over = next;
  }

  canvas.addEventListener("mousemove", (event) => {
    if (!drag) return hover(event);
    const moved = ((event.clientX - drag.x) / span()) * (drag.to - drag.from);
    show(drag.from - moved, drag.to - moved);
  });
  canvas.addEventListener("mousedown", (event) => { drag = { x: event.clientX, from, to }; });
  window.addEventListener("mouseup", () => { drag = null; });
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, toTime(event.clientX - canvas.getBoundingClientRect().left)));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const turned = event.deltaY || event.deltaX;
    zoom(turned > 0 ? 1.25 : 0.8, toTime(event.clientX - canvas.getBoundingClientRect().left));
  }, { passive: false });

  const actions = {
    in: () => zoom(0.5, (from + to) / 2),
    out: () => zoom(2, (from + to) / 2),
    left: () => show(from - (to - from) / 2, to - (to - from) / 2),
    right: () => show(from + (to - from) / 2, to + (to - from) / 2),
    all: () => show(0, data.duration),
    detail: () => show(data.window[0], data.window[1]),
  };
  for (const button of document.querySelectorAll("button[data-do]"))
    button.addEventListener("click", actions[button.dataset.do]);
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all" };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    actions[keys[event.key]]();
  });
  window.addEventListener("resize", draw);
  draw();
})();
