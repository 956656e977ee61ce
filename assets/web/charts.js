/* Small SVG charts that follow the theme: lines with a cursor, columns, one split bar. */
(() => {
  "use strict";
  const PCG = window.PCG, { el, svg, fixed } = PCG;
  const nice = (low, high, n = 4) => {
    const raw = (high - low) / n || 1, unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].find((m) => m * unit >= raw) * unit, out = [];
    for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + 1e-9; v += step) out.push(Math.abs(v) < 1e-12 ? 0 : v);
    return out;
  };
  const show = (v) => (Math.abs(v) >= 100 ? v.toFixed(0) : String(Number(v.toPrecision(3))));

  /* options: { height, x: {label, min, max, format}, y: {...}, series: [{ name, colour, dash, shape, points: [[x, y, low, high]] }], cursor, onCursor } */
  PCG.lineChart = (node, options) => {
    let o = options;
    const box = el("div", { class: "chart" }), legend = el("ul", { class: "pcg-legend chart-legend" });
    PCG.clear(node).append(box, legend);
    function draw() {
      const W = box.clientWidth;
      if (!W) return;
      const H = o.height || 210, m = { l: 46, r: 14, t: 14, b: 38 };
      const points = o.series.flatMap((s) => s.points).filter((p) => Number.isFinite(p[1]));
      const xs = points.map((p) => p[0]), ys = points.flatMap((p) => [p[1], ...(p.length > 3 ? [p[2], p[3]] : [])]);
      const x0 = o.x.min ?? Math.min(...xs), x1 = o.x.max ?? Math.max(...xs);
      let y0 = o.y.min ?? Math.min(...ys), y1 = o.y.max ?? Math.max(...ys);
      if (!(y1 > y0)) { y0 -= 0.5; y1 += 0.5; }
      if (o.y.max === undefined) y1 += (y1 - y0) * 0.08;
      if (o.y.min === undefined) y0 -= (y1 - y0) * 0.08;
      m.l = Math.max(34, 14 + 7 * Math.max(...nice(y0, y1).map((v) => (o.y.format || show)(v).length)));
      const X = (v) => m.l + ((v - x0) / (x1 - x0 || 1)) * (W - m.l - m.r), Y = (v) => H - m.b - ((v - y0) / (y1 - y0)) * (H - m.t - m.b);
      const picture = svg("svg", { width: W, height: H, role: "img", "aria-label": o.label || `${o.y.label} against ${o.x.label}` });
      for (const v of nice(y0, y1)) picture.append(svg("path", { d: `M${m.l},${Y(v)}H${W - m.r}`, class: "chart-grid" }), svg("text", { x: m.l - 6, y: Y(v) + 4, "text-anchor": "end", class: "chart-tick", text: (o.y.format || show)(v) }));
      for (const v of nice(x0, x1, W < 420 ? 3 : 6)) picture.append(svg("text", { x: X(v), y: H - m.b + 16, "text-anchor": "middle", class: "chart-tick", text: (o.x.format || show)(v) }));
      picture.append(svg("text", { x: (m.l + W - m.r) / 2, y: H - 4, "text-anchor": "middle", class: "chart-name", text: o.x.label }));
      picture.append(svg("text", { x: m.l, y: 9, class: "chart-name chart-y", text: o.y.label }));
      for (const s of o.series) {
        const good = s.points.filter((p) => Number.isFinite(p[1])), colour = `var(--${s.colour})`;
        for (const p of good) if (p.length > 3 && Number.isFinite(p[2])) picture.append(svg("path", { d: `M${X(p[0])},${Y(p[2])}V${Y(p[3])}`, stroke: colour, "stroke-width": 1.5, opacity: 0.7 }));
        if (good.length > 1 && !s.dots) picture.append(svg("path", { d: "M" + good.map((p) => `${X(p[0]).toFixed(1)},${Y(p[1]).toFixed(1)}`).join("L"), fill: "none", stroke: colour, "stroke-width": 2.2, "stroke-dasharray": s.dash || null, "stroke-linejoin": "round" }));
        if (s.shape || s.dots || good.length === 1) for (const p of good) picture.append(svg("g", { transform: `translate(${X(p[0])},${Y(p[1])})` }, svg("path", { d: PCG.shapePath(s.shape || "exact", 4.5), fill: s.shape === "rejected" || s.open ? "var(--card)" : colour, stroke: colour, "stroke-width": 2 }), svg("title", { text: `${s.name}: ${show(p[0])}, ${show(p[1])}` })));
      }
      if (o.cursor !== undefined && o.cursor !== null) picture.append(svg("path", { d: `M${X(o.cursor)},${m.t + 6}V${H - m.b}`, class: "chart-cursor" }));
      if (o.onCursor) {
        const pick = (e) => { const r = picture.getBoundingClientRect(); o.onCursor(PCG.clamp(x0 + ((e.clientX - r.left - m.l) / (W - m.l - m.r)) * (x1 - x0), x0, x1)); };
        picture.addEventListener("pointerdown", pick); picture.addEventListener("pointermove", (e) => { if (e.buttons) pick(e); }); picture.style.cursor = "col-resize";
      }
      box.replaceChildren(picture);
      legend.replaceChildren(...(o.series.length > 1 || o.legend ? o.series : []).map((s) => el("li", {},
        svg("svg", { width: 22, height: 12, "aria-hidden": "true" }, s.dots ? svg("path", { d: PCG.shapePath(s.shape || "exact", 4), transform: "translate(11,6)", fill: s.open ? "none" : `var(--${s.colour})`, stroke: `var(--${s.colour})`, "stroke-width": 2 }) : svg("path", { d: "M0,6H22", stroke: `var(--${s.colour})`, "stroke-width": 2.4, "stroke-dasharray": s.dash || null })), s.name)));
    }
    PCG.onWidth(box, draw);
    draw();
    return { set(next) { o = { ...o, ...next }; draw(); } };
  };

  PCG.columnChart = (node, { labels, values, x, format, height = 170, colour = "t1" }) => {
    const box = el("div", { class: "chart" });
    PCG.clear(node).append(box);
    const draw = () => {
      const W = box.clientWidth, H = height, m = { t: 20, b: 36, l: 6, r: 6 };
      if (!W) return;
      const top = Math.max(1e-9, ...values), w = (W - m.l - m.r) / Math.max(1, values.length);
      box.replaceChildren(svg("svg", { width: W, height: H, role: "img", "aria-label": labels.map((l, i) => `${l}: ${(format || show)(values[i])}`).join(", ") },
        values.map((v, i) => { const h = (v / top) * (H - m.t - m.b); return [
          svg("rect", { x: m.l + i * w + w * 0.14, y: H - m.b - h, width: w * 0.72, height: Math.max(0, h), rx: 3, fill: `var(--${colour})` }),
          svg("text", { x: m.l + (i + 0.5) * w, y: H - m.b - h - 5, "text-anchor": "middle", class: "chart-tick", text: (format || show)(v) }),
          svg("text", { x: m.l + (i + 0.5) * w, y: H - m.b + 15, "text-anchor": "middle", class: "chart-tick", text: labels[i] })]; }),
        svg("text", { x: W / 2, y: H - 3, "text-anchor": "middle", class: "chart-name", text: x })));
    };
    PCG.onWidth(box, draw); draw();
  };

  PCG.splitBar = (node, parts) => {
    const total = parts.reduce((s, p) => s + (p.value || 0), 0);
    PCG.clear(node).append(
      el("div", { class: "split-bar", role: "img", "aria-label": parts.map((p) => `${p.name} ${PCG.percent(total ? p.value / total : 0)}`).join(", ") },
        parts.map((p) => el("i", { class: p.pattern || "", style: { width: `${total ? (100 * p.value) / total : 0}%`, "--c": `var(--${p.colour})` } }))),
      el("ul", { class: "pcg-legend" }, parts.map((p) => el("li", {}, el("i", { class: "split-key " + (p.pattern || ""), style: { "--c": `var(--${p.colour})` } }), `${p.name} ${total ? PCG.percent(p.value / total) : "–"} (${fixed(p.value, 2)} s)`))));
  };
})();
