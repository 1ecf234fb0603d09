"use strict";
// Draws the page's charts with uPlot, and sorts its tables. Colours come from the page's style, so dark mode is theirs.
(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const faint = (name, part) => {
    const hex = colour(name);
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${r},${g},${b},${part})`;
  };
  const MINUTE_S = 60, HOUR_S = 3600, BAND_TEXT_PX = 16, FLAG_PX = 5, MARK_PX = 2;
  // Minutes and seconds, or hours and minutes where a chart is longer than two hours.
  const clock = (s, span) => {
    const unit = span[1] - span[0] > 2 * HOUR_S ? [HOUR_S, MINUTE_S, "h"] : [MINUTE_S, 1, "min"];
    const whole = Math.round(s), small = Math.floor((whole % unit[0]) / unit[1]);
    return [`${Math.floor(whole / unit[0])}:${String(small).padStart(2, "0")}`, unit[2]];
  };
  const plain = (value) =>
    value == null ? "" : Math.abs(value) >= 10000 ? `${value / 1000}k` : Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
  const powers = ([low, top]) => {
    const at = [];
    for (let value = low; value <= top * 1.001; value *= 10) at.push(value);
    return at;
  };
  const withUnit = (text, unit, shown) => (shown ? `${text} ${unit}` : text);
  const font = () => `12px ${getComputedStyle(document.body).fontFamily}`;

  const axis = (more) => ({
    stroke: colour("soft"), font: font(), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, ...more,
  });

  // A marked span lies behind the lines; its name stands above the plot, where no line can cover it.
  const bands = (chart) => (u) => {
    const { ctx } = u, { left, top, width, height } = u.bbox, ratio = devicePixelRatio;
    ctx.save();
    for (const band of chart.bands) {
      const from = Math.max(left, u.valToPos(band.from, "x", true));
      const to = Math.min(left + width, u.valToPos(band.to, "x", true));
      if (to < left || from > left + width) continue;
      const wide = Math.max(to - from, MARK_PX * ratio);
      ctx.fillStyle = band.lack ? faint("lack", 0.16) : colour("band");
      ctx.fillRect(from, top, wide, height);
      if (band.lack) {
        ctx.fillStyle = colour("lack");
        ctx.fillRect(from, top, wide, FLAG_PX * ratio);
      }
      if (band.name) {
        ctx.fillStyle = colour("soft");
        ctx.font = `${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
        ctx.textAlign = "center";
        ctx.textBaseline = "bottom";
        ctx.fillText(band.name, from + wide / 2, top - 2 * ratio);
      }
    }
    ctx.restore();
  };

  const triangles = (u, seriesIndex) => {
    const { ctx } = u, size = 5 * devicePixelRatio;
    ctx.save();
    ctx.fillStyle = u.series[seriesIndex].stroke();
    u.data[seriesIndex].forEach((value, at) => {
      if (value == null) return;
      const x = u.valToPos(u.data[0][at], "x", true), y = u.valToPos(value, "y", true);
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(x - size, y + 1.6 * size);
      ctx.lineTo(x + size, y + 1.6 * size);
      ctx.fill();
    });
    ctx.restore();
    return false;
  };

  const series = (chart, line) => {
    const own = colour(line.role), top = chart.range[1];
    const made = {
      label: line.name, stroke: own, width: 1.75, points: { show: false },
      value: (u, v) => (v == null ? "" : `${plain(line.fromTop ? top - v : v)} ${chart.unit}`),
    };
    if (line.shape === "stairs") made.paths = uPlot.paths.stepped({ align: -1 });
    if (line.filled) made.fill = faint(line.role, 0.28);
    if (line.fromTop) Object.assign(made, { fillTo: () => top, width: 1 });
    if (line.shape === "dots")
      Object.assign(made, { paths: () => null, points: { show: true, size: 4, width: 0, fill: faint(line.role, 0.6) } });
    if (line.shape === "triangles") Object.assign(made, { paths: () => null, points: { show: triangles } });
    return made;
  };

  let drawn = [];
  const whole = (u, chart) => u.setScale("x", { min: chart.span[0], max: chart.span[1] });
  const wholeGroup = (group) => drawn.filter((d) => d.chart.group === group).forEach((d) => whole(d.plot, d.chart));

  const lines = (box, chart) => {
    const top = chart.range[1];
    const data = [chart.x, ...chart.lines.map((l) => (l.fromTop ? l.y.map((v) => (v == null ? v : top - v)) : l.y))];
    const named = chart.bands.some((band) => band.name);
    const many = box.clientWidth > 640;
    return new uPlot({
      width: box.clientWidth, height: many ? 230 : 190, padding: [named ? BAND_TEXT_PX + 4 : 8, chart.clock ? 32 : 22, 0, 0],
      cursor: {
        sync: { key: chart.group, setSeries: false }, drag: { x: true, y: false }, points: { size: 7 },
        bind: { dblclick: () => () => wholeGroup(chart.group) },
      },
      scales: {
        x: { time: false, min: chart.span[0], max: chart.span[1], range: (u, from, to) => [from, to] },
        y: chart.log ? { distr: 3, range: () => chart.range } : { range: () => chart.range },
      },
      axes: [
        axis({ size: 26, gap: 4, space: chart.clock ? 72 : 56, values: (u, at) => at.map((v, n) => withUnit(...(chart.clock ? clock(v, chart.span) : [plain(v), "s"]), n === at.length - 1)),
          ...(chart.clock ? { incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400] } : {}) }),
        axis({ size: 60, gap: 4, space: 26,
          ...(chart.log ? { splits: () => powers(chart.range) } : {}),
          filter: (u, at) => at, values: (u, at) => at.map((v, n) => withUnit(plain(v), chart.unit, n === at.length - 1)) }),
      ],
      series: [{ label: "at", value: (u, v) => (v == null ? "" : chart.clock ? clock(v, chart.span).join(" ") : `${v.toFixed(1)} s`) },
        ...chart.lines.map((line) => series(chart, line))],
      hooks: { drawClear: [bands(chart)] },
    }, data, box);
  };

  // Names beside their dots; one that would cover another or leave the plot goes to the other side, then down.
  const names = (chart) => (u) => {
    u.over.querySelectorAll(".dot,.dotname").forEach((node) => node.remove());
    const taken = [];
    const free = (r) => !taken.some((o) => r.x < o.x + o.w && o.x < r.x + r.w && r.y < o.y + o.h && o.y < r.y + r.h);
    const spots = chart.dots.map((dot) => ({ dot, x: u.valToPos(dot.x, "x"), y: u.valToPos(dot.y, "y") }));
    spots.forEach(({ x, y }) => taken.push({ x: x - 7, y: y - 7, w: 14, h: 14 }));
    for (const { dot, x, y } of spots.sort((a, b) => b.dot.best - a.dot.best || a.y - b.y)) {
      const mark = document.createElement("div"), name = document.createElement("div");
      mark.className = dot.best ? "dot best" : "dot";
      mark.style.left = `${x}px`;
      mark.style.top = `${y}px`;
      mark.title = `${dot.name}: ${plain(dot.y)} %, ${plain(dot.x)}`;
      name.className = dot.best ? "dotname best" : "dotname";
      name.textContent = dot.label;
      u.over.append(mark, name);
      if (!dot.label) continue;
      const w = name.offsetWidth, h = 15, away = [0, 14, -14, 28, -28, 42, -42, 56, -56, 70, 84, 98];
      const places = away.flatMap((d) => [{ x: x + 10, y: y + d - 8 }, { x: x - w - 10, y: y + d - 8 }]);
      const fits = (p) => p.x >= 0 && p.x + w <= u.over.clientWidth && p.y >= -8 && p.y + h <= u.over.clientHeight + 4;
      const place = places.find((p) => fits(p) && free({ ...p, w, h })) || places.find(fits) || places[0];
      taken.push({ ...place, w, h });
      name.style.left = `${place.x}px`;
      name.style.top = `${place.y}px`;
    }
  };

  // The dots of a curve come from left to right.
  const curves = (chart) => (u) => {
    u.ctx.save();
    u.ctx.strokeStyle = colour("soft");
    u.ctx.lineWidth = devicePixelRatio;
    for (const curve of new Set(chart.dots.map((dot) => dot.curve).filter(Boolean))) {
      u.ctx.beginPath();
      chart.dots.filter((dot) => dot.curve === curve)
        .forEach((dot) => u.ctx.lineTo(u.valToPos(dot.x, "x", true), u.valToPos(dot.y, "y", true)));
      u.ctx.stroke();
    }
    u.ctx.restore();
  };

  const scatter = (box, chart) => {
    const most = Math.max(...chart.dots.map((dot) => dot.x), 1);
    return new uPlot({
      width: box.clientWidth, height: box.clientWidth > 640 ? 340 : 380, padding: [10, 14, 0, 0],
      legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, distr: 4, asinh: 1, range: () => [-0.3, most * 1.6] }, y: { range: () => [0, 100] } },
      axes: [
        axis({ size: 24, gap: 4, label: chart.xLabel, labelSize: 18, labelFont: font(),
          splits: () => [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6].filter((v) => v <= most * 1.6), filter: (u, at) => at,
          values: (u, at) => at.map((v) => (v >= 1000 ? `${v / 1000}k` : String(v))) }),
        axis({ size: 50, gap: 4, values: (u, at) => at.map((v) => `${v} %`) }),
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [curves(chart), names(chart)] },
    }, [chart.dots.map((dot) => dot.x), chart.dots.map((dot) => dot.y)], box);
  };

  const charts = JSON.parse(document.getElementById("charts").textContent);
  const boxes = [...document.querySelectorAll("[data-chart]")];
  const draw = () => {
    drawn.forEach(({ plot }) => plot.destroy());
    drawn = boxes.map((box) => {
      const chart = charts[Number(box.dataset.chart)];
      return { chart, plot: (chart.kind === "scatter" ? scatter : lines)(box, chart) };
    });
  };
  let width = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth !== width) {
      width = document.body.clientWidth;
      draw();
    }
  }).observe(document.body);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", draw);

  // A column sorts by its cells' numbers where they have one; what has none stays last.
  const key = (row, at) => row.cells[at].dataset.sort;
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  const sort = (table, at, rising) => {
    const rows = [...table.tBodies[0].rows];
    const known = rows.filter((row) => key(row, at) !== undefined);
    known.sort((a, b) => (rising ? 1 : -1) * compare(key(a, at), key(b, at)));
    table.tBodies[0].append(...known, ...rows.filter((row) => key(row, at) === undefined));
    [...table.tHead.rows[0].cells].forEach((cell, n) => {
      if (n === at) cell.setAttribute("aria-sort", rising ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    });
  };
  document.querySelectorAll(".table table").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells];
    const can = heads.map((head, at) => [...table.tBodies[0].rows].some((row) => key(row, at) !== undefined));
    if (!can.some(Boolean)) return;
    const label = document.createElement("label"), select = document.createElement("select");
    heads.forEach((head, at) => {
      if (!can[at]) return;
      const button = document.createElement("button");
      button.textContent = head.textContent;
      button.onclick = () => sort(table, at, head.getAttribute("aria-sort") === "descending");
      head.replaceChildren(button);
      select.add(new Option(button.textContent, at));
    });
    label.className = "sorter";
    label.append("sorted by ", select);
    select.onchange = () => sort(table, Number(select.value), false);
    table.before(label);
  });
})();
