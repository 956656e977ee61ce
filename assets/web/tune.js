/* Tune theta: one slider over figures that Python computed once; every read-out follows at once. */
(() => {
  "use strict";
  const PCG = window.PCG, { el, fixed } = PCG;
  PCG.views.tune = (root, api) => {
    let value = {}, theta = 0;
    const blank = el("div", { class: "pcg-empty", text: "Loading the groups…" });
    const slider = el("input", { type: "range", step: 0.005, "aria-label": "theta", oninput: () => { theta = Number(slider.value); paint(); } });
    const shown = el("output");
    const read = el("dl", { class: "tune-read" });
    const hearButton = el("button", { type: "button", class: "pcg-btn primary", text: "Hear it here", onclick: () => api.trigger("hear_theta", { theta }) });
    const note = el("p", { class: "pcg-muted", "aria-live": "polite" });
    const nodes = { sizes: el("div"), alpha: el("div"), speed: el("div"), quality: el("div") }, charts = {};
    const cards = {};
    const card = (key, title, text) => (cards[key] = el("section", { class: "pcg-card" }, el("header", { class: "pcg-cap" }, el("h2", { text: title }), el("p", { text })), nodes[key]));
    const body = el("div", { class: "tune" },
      el("section", { class: "pcg-card" }, el("label", { class: "pcg-slider tune-slider" }, el("span", { text: "theta" }), slider, shown),
        el("div", { class: "tune-ends" }, el("span", { text: "wide groups, more kept" }), el("span", { text: "narrow groups, the exact test" })), read, el("div", { class: "learn-nav" }, hearButton, note)),
      el("div", { class: "tune-grid" },
        card("alpha", "Drafts kept, expected", "From the probability rows of your last utterance; no model runs."),
        card("speed", "Speed-up, expected", "Over the target alone, with the draft and verify costs measured on this machine."),
        card("sizes", "Tokens in a group", "Mean over all speech tokens."),
        card("quality", "What it costs", "Measured over a set of sentences, with 95 % intervals.")));
    root.append(blank, body);
    const near = (list) => {                 // linear between the two thetas around the slider
      if (!list) return null;
      const t = value.thetas, i = Math.max(1, t.findIndex((x) => x >= theta) < 0 ? t.length - 1 : t.findIndex((x) => x >= theta));
      const w = PCG.clamp((theta - t[i - 1]) / (t[i] - t[i - 1]), 0, 1);
      return list[i - 1] === null || list[i] === null ? null : list[i - 1] * (1 - w) + list[i] * w;
    };
    const set = (t) => { theta = t; slider.value = t; paint(); };
    const line = (y) => value.thetas.map((t, i) => [t, y[i]]);
    const flat = (v) => [[value.thetas[0], v], [value.thetas[value.thetas.length - 1], v]];
    function paint() {
      if (!value.thetas) return;
      shown.textContent = fixed(theta, 3);
      const last = value.last || {}, size = near(value.sizes);
      const rows = [["mean group size", size === null ? "–" : fixed(size, 1)], ["drafts kept, expected", PCG.percent(near(last.alpha), 1)],
        ["tokens a round, expected", fixed(near(last.tokens), 2)], ["speed-up, expected", last.speedup ? fixed(near(last.speedup), 2) + "×" : "–"]];
      read.replaceChildren(...rows.map(([k, v]) => el("div", {}, el("dt", { text: k }), el("dd", { text: v }))));
      for (const c of Object.values(charts)) c.set({ cursor: theta });
      PCG.tunePainted = performance.now();
    }
    function build() {
      const last = value.last || {}, x = { label: "theta", min: value.thetas[0], max: value.thetas[value.thetas.length - 1] };
      const rivals = (key) => [["sd", "SD", "t2", "7 4"], ["ssd", last.ssd_label || "SSD", "t3", "2 4"]].filter(([k]) => last[k] && Number.isFinite(last[k][key])).map(([k, name, colour, dash]) => ({ name, colour, dash, points: flat(last[k][key]) }));
      const make = (key, options) => { charts[key] = PCG.lineChart(nodes[key], { x, cursor: theta, onCursor: set, ...options }); };
      if (last.alpha) {
        make("alpha", { y: { label: "acceptance", min: 0, max: 1 }, series: [{ name: "PCG", colour: "t1", points: line(last.alpha) }, ...rivals("alpha")] });
        if (last.speedup) make("speed", { y: { label: "times as fast", min: 0 }, series: [{ name: "PCG", colour: "t1", points: line(last.speedup) }, ...rivals("speedup")] });
        else nodes.speed.replaceChildren(el("p", { class: "pcg-muted", text: "The costs of this model have not been measured on this machine yet." }));
      } else for (const k of ["alpha", "speed"]) nodes[k].replaceChildren(el("div", { class: "pcg-empty", text: "Run something in Compare first: these curves come from your own utterance." }));
      if (value.sizes) make("sizes", { y: { label: "tokens", min: 0 }, series: [{ name: "mean size", colour: "t1", points: line(value.sizes) }] });
      const q = value.quality;
      if (!q || !q.length) cards.quality.remove();
      if (q && q.length) make("quality", { y: { label: "" }, series: q, legend: true });
      note.textContent = last.label ? `Curves from: ${last.label}.` : "";
    }
    function update() {
      value = api.get() || {};
      const has = !!(value.thetas && value.thetas.length);
      blank.hidden = has; body.hidden = !has;
      blank.textContent = value.error || "Loading the groups…";
      if (!has) return;
      slider.min = value.thetas[0]; slider.max = value.thetas[value.thetas.length - 1];
      if (!theta || value.reset) theta = value.theta;
      slider.value = theta;
      build(); paint();
    }
    api.watch("value", update);
    update();
  };

  /* A set of charts and one table. Value: { charts: [{ title, note, x, y, series }], table: { head, rows }, note }. */
  PCG.views.chartset = (root, api) => {
    function update() {
      const value = api.get() || {}, charts = value.charts || [];
      root.replaceChildren();
      root.classList.add("chartset");
      if (value.note) root.append(el("p", { class: "pcg-note" + (value.kind === "error" ? " bad" : ""), role: "status", text: value.note }));
      if (!charts.length && !value.table && !value.note && api.prop("empty")) root.append(el("div", { class: "pcg-empty", text: api.prop("empty") }));
      const grid = el("div", { class: "tune-grid" });
      if (charts.length) root.append(grid);
      for (const c of charts) {
        const node = el("div");
        grid.append(el("section", { class: "pcg-card" }, el("header", { class: "pcg-cap" }, el("h2", { text: c.title }), c.note ? el("p", { text: c.note }) : null), node));
        PCG.lineChart(node, { x: c.x, y: c.y, series: c.series, legend: true });
      }
      if (value.table) root.append(el("div", { class: "pcg-card pcg-scroll", tabindex: 0, role: "region", "aria-label": value.table.title || "Figures" }, el("table", { class: "pcg-table" },
        el("thead", {}, el("tr", {}, value.table.head.map((h) => el("th", { scope: "col", text: h })))),
        el("tbody", {}, value.table.rows.map((r) => el("tr", {}, r.map((c, i) => el(i ? "td" : "th", { text: c }))))))));
    }
    api.watch("value", update);
    update();
  };
})();
