(() => {
  const data = JSON.parse(document.getElementById("curves").textContent);
  const place = document.getElementById("plots");
  document.documentElement.classList.add("plotted");
  const ink = getComputedStyle(document.body).color, line = "rgba(128,128,128,0.25)";
  const charts = [];
  let zooming = false;
  function zoomed(from) {
    if (zooming) return;
    zooming = true;
    const {min, max} = from.scales.x;
    charts.forEach(c => c !== from && c.setScale("x", {min, max}));
    zooming = false;
  }
  function marked(u) {
    const {ctx, bbox} = u;
    ctx.save();
    ctx.lineWidth = 1;
    data.marks.forEach(mark => {
      const x = u.valToPos(mark.t_s, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.strokeStyle = mark.color;
      ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    });
    ctx.restore();
  }
  const shown = v => v == null ? "–" : Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-4) ?
    v.toExponential(3) : String(+v.toPrecision(5));
  function draw(panel, box, log) {
    box.querySelector(".uplot")?.remove();
    const curve = c => ({
      label: c.label, stroke: c.color === "#000000" ? ink : c.color, width: 1.25, dash: c.dashed ? [5, 4] : undefined,
      spanGaps: !c.dashed,  // most rows of a slow device have no reading
      points: {show: false}, paths: panel.steps ? uPlot.paths.stepped({align: 1}) : undefined,
      value: (u, v) => panel.steps ? (v == null ? "–" : v % 1 > 0.5 ? "on" : "off") : shown(v),
    });
    const axis = {stroke: ink, grid: {stroke: line, width: 1}, ticks: {stroke: line, width: 1}};
    const chart = new uPlot({
      width: place.clientWidth, height: panel.steps ? Math.max(90, 22 * panel.curves.length + 60) : 200,
      scales: {x: {time: false}, y: log ? {distr: 4, asinh: 1e-3} : {}},
      axes: [{...axis, size: 34}, {...axis, size: 64, label: panel.label, labelSize: 18}],
      series: [{label: "time [s]", value: (u, v) => v == null ? "–" : v.toFixed(4)},
               ...panel.curves.map(curve)],
      cursor: {sync: {key: "run"}, drag: {x: true, y: false}},
      legend: {live: true},
      hooks: {draw: [marked], setScale: [(u, key) => key === "x" && charts.length && zoomed(u)]},
    }, [data.t_s, ...panel.curves.map(c => c.values)], box);
    return chart;
  }
  data.panels.forEach((panel, i) => {
    const box = place.appendChild(document.createElement("div"));
    box.className = "panel";
    charts[i] = draw(panel, box, false);
    if (panel.steps) return;
    const button = box.appendChild(document.createElement("button"));
    let log = false;
    button.textContent = "log";
    button.title = "logarithmic or linear axis";
    button.addEventListener("click", () => {
      log = !log;
      button.textContent = log ? "linear" : "log";
      const {min, max} = charts[i].scales.x;
      charts[i].destroy();
      charts[i] = draw(panel, box, log);
      charts[i].setScale("x", {min, max});
      box.append(button);
    });
  });
  addEventListener("resize", () => charts.forEach(c => c.setSize({width: place.clientWidth, height: c.height})));
})();
