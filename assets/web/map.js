/* The map of the embedding table: Plotly's WebGL points, fetched with Plotly itself only when the tab opens.
   Value: { plotly, points, columns, n, theta, theta_min, theta_max, carrier, path, usage, digits }. */
(() => {
  "use strict";
  const PCG = window.PCG, { el, fixed } = PCG;
  let plotly = null;
  const loadPlotly = (url) => (plotly ||= new Promise((resolve, reject) => {
    if (window.Plotly) { resolve(); return; }
    const s = el("script", { src: url, onload: resolve, onerror: () => { plotly = null; reject(new Error("the drawing library did not load")); } });
    document.head.append(s);
  }));
  const SCALES = { light: [[0, "#cfd6e0"], [0.35, "#6fa8c9"], [0.7, "#0b6e78"], [1, "#5a2a83"]], dark: [[0, "#3a4553"], [0.35, "#3f83a8"], [0.7, "#5cc4cd"], [1, "#f3d27a"]] };
  const dark = () => document.body.classList.contains("dark");

  PCG.views.map = (root, api) => {
    let value = {}, columns = null, loaded = null, chosen = null, group = [], sizes = null, theta = 0, buffer = null, timer = null, asked = 0;
    const plot = el("div", { class: "map-plot", role: "img", "aria-label": "Map of the speech tokens; choose one by its number beside the map" });
    const blank = el("div", { class: "pcg-empty", text: "The map loads when this tab opens." });
    const colourBy = el("select", { class: "pcg-select", "aria-label": "Colour by", onchange: () => recolour() });
    const slider = el("input", { type: "range", step: 0.005, "aria-label": "theta", oninput: () => { theta = Number(slider.value); out.textContent = fixed(theta, 3); later(); } });
    const out = el("output");
    const find = el("input", { type: "number", min: 0, class: "pcg-select map-find", "aria-label": "Token number", placeholder: "token number" });
    const form = el("form", { class: "map-form", novalidate: "", onsubmit: (e) => { e.preventDefault(); if (find.value !== "") pick(Number(find.value)); } }, find, el("button", { type: "submit", class: "pcg-btn", text: "Show" }));
    const side = el("div", { class: "map-side", "aria-live": "polite" });
    const pathButton = el("button", { type: "button", class: "pcg-btn", text: "Play the utterance's path", onclick: () => (timer ? stopPath() : playPath()) });
    const body = el("div", { class: "map" },
      el("div", { class: "map-tools" }, el("label", { class: "map-label" }, "colour", colourBy), el("label", { class: "pcg-slider map-theta" }, el("span", { text: "theta" }), slider, out), form, pathButton),
      el("div", { class: "map-main" }, plot, side));
    root.append(blank, body);
    body.hidden = true;

    async function load() {
      if (!value.points) return;
      blank.textContent = "Fetching the points…";
      const began = performance.now();
      const [, data] = await Promise.all([loadPlotly(value.plotly.url), fetch(value.points.url).then((r) => r.arrayBuffer())]);
      const all = new Float32Array(data); columns = {};
      value.columns.forEach((c, i) => { columns[c.name] = all.subarray(i * value.n, (i + 1) * value.n); });
      colourBy.replaceChildren(...[...value.columns.filter((c) => c.label).map((c) => [c.name, c.label]), ["size", "group size at this theta"], ["usage", "use in the last utterance"]].map(([v, t]) => el("option", { value: v, text: t })));
      theta = value.theta; slider.min = value.theta_min; slider.max = value.theta_max; slider.value = theta; out.textContent = fixed(theta, 3);
      find.max = value.n - 1;
      blank.hidden = true; body.hidden = false;
      await draw();
      PCG.mapReady = performance.now() - began;
      say();
    }
    const shade = () => colourBy.value === "usage" ? usage() : colourBy.value === "size" ? sizes : columns[colourBy.value];
    function usage() { const u = new Float32Array(value.n); for (const id of (value.path && value.path.ids) || []) if (id < value.n) u[id] += 1; return u; }
    function traces() {
      const ids = group.map((m) => m.id), xs = columns.x, ys = columns.y, at = (list) => ({ x: list.map((i) => xs[i]), y: list.map((i) => ys[i]) });
      const big = value.n < 10000, colour = shade();
      const head = (value.path && timer) ? value.path.items.slice(Math.max(0, asked - 14), asked + 1) : [];
      const spec = (kind, colourName, symbol) => { const t = head.filter((h) => h.kind === kind && h.id < value.n).map((h) => h.id); return { type: "scattergl", mode: "markers", ...at(t), marker: { size: 13, symbol, color: PCG.colour(colourName), line: { width: 1.5, color: PCG.colour("card") } }, hoverinfo: "skip" }; };
      const trail = head.filter((h) => h.kind !== "rejected" && h.id < value.n).map((h) => h.id);
      return [
        { type: "scattergl", mode: "markers", x: xs, y: ys, marker: { size: big ? 5 : 3, color: colour || PCG.colour("muted"), colorscale: SCALES[dark() ? "dark" : "light"], opacity: ids.length ? 0.3 : 0.85, showscale: false }, hovertemplate: "s_%{pointNumber}<extra></extra>" },
        { type: "scattergl", mode: "markers", ...at(ids), marker: { size: 10, symbol: "hexagon", color: PCG.colour("v-group"), line: { width: 1, color: PCG.colour("card") } }, customdata: ids, hovertemplate: "s_%{customdata}<extra></extra>" },
        { type: "scattergl", mode: "markers", ...at(chosen === null ? [] : [chosen]), marker: { size: 17, symbol: "star", color: PCG.colour("v-residual"), line: { width: 1.5, color: PCG.colour("card") } }, hoverinfo: "skip" },
        { type: "scattergl", mode: "lines", ...at(trail), line: { color: PCG.colour("v-exact"), width: 2 }, hoverinfo: "skip" },
        spec("exact", "v-exact", "circle"), spec("group", "v-group", "hexagon"), spec("residual", "v-residual", "triangle-up"), spec("bonus", "v-bonus", "square"), spec("rejected", "v-rejected", "x"),
      ];
    }
    async function draw() {
      if (!columns || !PCG.visible(root)) return;
      const layout = { margin: { l: 0, r: 0, t: 0, b: 0 }, xaxis: { visible: false }, yaxis: { visible: false, scaleanchor: "x" }, dragmode: "pan", hovermode: "closest", uirevision: "keep", showlegend: false, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" };
      await window.Plotly.react(plot, traces(), layout, { displaylogo: false, scrollZoom: true, responsive: true, displayModeBar: false });
      if (!plot.bound) {
        plot.bound = true;
        plot.on("plotly_click", (e) => { const p = e.points.find((q) => q.curveNumber < 2); if (p) pick(p.curveNumber ? p.customdata : p.pointNumber); });
      }
    }
    async function recolour() {
      if (colourBy.value === "size") sizes = await fetchSizes();
      draw();
    }
    async function fetchSizes() {
      const reply = await api.server.group_sizes({ theta }).catch(() => null);
      if (!reply || reply.error) return null;
      const ints = new Uint16Array(Uint8Array.from(atob(reply.sizes), (c) => c.charCodeAt(0)).buffer);
      return Float32Array.from(ints, (v) => Math.log1p(v));
    }
    let wait = null;
    function later() { clearTimeout(wait); wait = setTimeout(() => { if (chosen !== null) pick(chosen, true); if (colourBy.value === "size") recolour(); }, 90); }
    async function pick(id, quiet = false) {
      if (!Number.isInteger(id) || id < 0 || id >= value.n) { side.replaceChildren(el("p", { class: "pcg-note bad", text: `There is no token ${id}: choose a number from 0 to ${value.n - 1}.` })); return; }
      const began = performance.now();
      chosen = id; find.value = id;
      const reply = await api.server.group_members({ id, theta }).catch(() => ({ error: "The server did not answer." }));
      if (chosen !== id) return;
      if (reply.error) { side.replaceChildren(el("p", { class: "pcg-note bad", text: reply.error })); return; }
      group = reply.members.filter((m) => m.id !== id);
      say(reply);
      await draw();
      PCG.mapAnswer = performance.now() - began;
      if (!quiet) hear(id);
    }
    async function hear(id) {
      const reply = await api.server.hear_token({ id }).catch(() => ({ error: "The server did not answer." }));
      const note = side.querySelector(".map-note");
      if (reply.error) { if (note) note.textContent = reply.error; return; }
      const b = PCG.fromInt16(reply.pcm, reply.sample_rate);
      PCG.playSlice(b, reply.from, reply.to, [reply.focus_from, reply.focus_to]);
    }
    function say(reply) {
      if (!reply) {
        side.replaceChildren(el("h2", { text: `${value.n.toLocaleString("en")} speech tokens` }), el("p", { class: "pcg-muted", text: "Each dot is one token of the target's embedding table, laid out so that similar tokens lie close. Click one, or enter its number, to light up its group and hear it." }));
        return;
      }
      const facts = value.columns.filter((c) => c.label && c.unit !== undefined).map((c) => [c.label, columns[c.name][chosen], c]);
      side.replaceChildren(
        el("h2", { text: `Token s_${chosen}` }), el("p", { class: "pcg-muted map-note", text: `Its group holds ${reply.size} token${reply.size === 1 ? "" : "s"} at theta ${fixed(theta, 3)}.` }),
        el("dl", { class: "pcg-dl" }, facts.map(([k, v, c]) => [el("dt", { text: k }), el("dd", { text: Number.isFinite(v) ? `${c.digits === 0 ? v.toFixed(0) : fixed(v, c.digits ?? 2)} ${c.unit}` : "–" })])),
        el("div", { class: "learn-nav" }, el("button", { type: "button", class: "pcg-btn primary", text: "Hear it", title: "Three times in a row, inside a stretch of a bundled voice", onclick: () => hear(chosen) }), el("button", { type: "button", class: "pcg-btn", text: "Clear", onclick: () => { chosen = null; group = []; say(); draw(); } })),
        el("ol", { class: "map-members", "aria-label": "Members by cosine" }, reply.members.slice(0, 60).map((m) => el("li", {},
          el("button", { type: "button", class: "map-hear", "aria-label": `Hear token ${m.id}`, onclick: () => hear(m.id), text: "▶" }),
          el("button", { type: "button", class: "map-go", onclick: () => pick(m.id), text: `s_${m.id}` }), el("i", { style: { width: `${Math.max(2, 100 * m.cos)}%` } }), el("b", { text: fixed(m.cos, 3) })))),
        reply.size > 60 ? el("p", { class: "pcg-muted", text: `and ${reply.size - 60} more` }) : null);
    }
    // ---- the utterance's path ----------------------------------------------------------------
    function stopPath() { clearInterval(timer); timer = null; pathButton.textContent = "Play the utterance's path"; draw(); }
    async function playPath() {
      if (!value.path || !value.path.items.length) { side.replaceChildren(el("p", { class: "pcg-note", text: "Run something in Compare first; its path over the map plays here." })); return; }
      pathButton.textContent = "Stop";
      buffer = value.path.file ? await PCG.loadAudio(value.path.file.url).catch(() => null) : null;
      const step = value.path.seconds, end = value.path.ids.length, began = performance.now();
      if (buffer) PCG.playSlice(buffer, 0, buffer.duration);
      asked = 0;
      timer = setInterval(() => {
        const place = (performance.now() - began) / 1000 / step;
        if (place >= end || !PCG.visible(root)) { stopPath(); return; }
        asked = value.path.items.findIndex((i) => i.at > place); if (asked < 0) asked = value.path.items.length - 1;
        draw();
      }, 100);
    }
    function update() {
      value = api.get() || {};
      if (value.error) { blank.hidden = false; blank.textContent = value.error; body.hidden = true; return; }
      if (!value.points) return;
      pathButton.disabled = !(value.path && value.path.items && value.path.items.length);
      if (loaded !== value.points.url) { loaded = value.points.url; load().catch((e) => { loaded = null; blank.hidden = false; blank.textContent = `The map could not be shown: ${e.message}.`; }); } else if (colourBy.value === "usage") draw();
    }
    PCG.onTheme(() => draw());
    PCG.onWidth(root, () => { if (columns) draw(); });
    api.watch("value", update);
    update();
  };
})();
