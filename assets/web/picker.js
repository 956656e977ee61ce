/* Rules to compare, each with its own parameters, built from the registry. Value: [{ rule, params }]. */
(() => {
  "use strict";
  const PCG = window.PCG, { el } = PCG;
  PCG.views.picker = (root, api) => {
    const registry = api.prop("registry") || [], most = api.prop("most") || 9;
    const by = new Map(registry.map((r) => [r.name, r]));
    let rules = [], open = null;
    const list = el("div", { class: "picker-list" });
    const add = el("select", { class: "pcg-select", "aria-label": "Add a rule", onchange: () => {
      const spec = by.get(add.value); add.value = "";
      if (spec && rules.length < most) { rules.push({ rule: spec.name, params: defaults(spec) }); open = rules.length - 1; send(); }
    } });
    root.append(list, el("div", { class: "picker-add" }, add));
    const defaults = (spec) => Object.fromEntries((spec.parameters || []).map((p) => [p.name, p.default]));
    const send = () => { const copy = JSON.parse(JSON.stringify(rules)); api.set(copy); draw(); api.trigger("change", {}); };
    const shown = (spec, params) => (spec.parameters || []).map((p) => `${p.label || p.name} ${Number((params[p.name] ?? p.default)).toPrecision(3).replace(/\.?0+$/, "")}`).join(", ");
    function draw() {
      const focus = document.activeElement && root.contains(document.activeElement) ? document.activeElement.dataset.key : null;
      list.replaceChildren(...rules.map((item, i) => {
        const spec = by.get(item.rule) || { label: item.rule, parameters: [] }, parameters = spec.parameters || [];
        const body = open === i ? el("div", { class: "picker-body" }, el("p", { class: "pcg-muted", text: spec.description || "" }),
          spec.guarantee ? el("p", { class: "pcg-muted" }, el("b", { text: "Promise: " }), spec.guarantee) : null,
          parameters.map((p) => {
            const out = el("output", { text: String(item.params[p.name] ?? p.default) });
            return el("label", { class: "pcg-slider", title: p.help || null }, el("span", { text: p.label || p.name }),
              el("input", { type: "range", min: p.min, max: p.max, step: p.step || "any", value: item.params[p.name] ?? p.default, "data-key": `${i}-${p.name}`,
                oninput: (e) => { item.params[p.name] = Number(e.target.value); out.textContent = e.target.value; },
                onchange: () => send() }), out);
          })) : null;
        return el("div", { class: "picker-rule", style: { "--lane": `var(--t${(i % 9) + 1})` } },
          el("div", { class: "picker-head" },
            el("button", { type: "button", class: "picker-name", "aria-expanded": String(open === i), "data-key": `n${i}`, onclick: () => { open = open === i ? null : i; draw(); } },
              el("b", { text: spec.label || spec.name }), el("small", { text: shown(spec, item.params) })),
            el("button", { type: "button", class: "picker-x", "aria-label": `Remove ${spec.label}`, "data-key": `x${i}`, disabled: rules.length < 2, onclick: () => { rules.splice(i, 1); open = null; send(); }, text: "×" })), body);
      }));
      add.replaceChildren(el("option", { value: "", text: rules.length < most ? "Add a rule…" : `${most} rules at most` }),
        ...registry.map((r) => el("option", { value: r.name, text: r.label })));
      if (focus) root.querySelector(`[data-key="${focus}"]`)?.focus();
    }
    function update() {
      const next = api.get();
      if (Array.isArray(next) && JSON.stringify(next) !== JSON.stringify(rules)) { rules = JSON.parse(JSON.stringify(next)); open = null; draw(); }
    }
    api.watch("value", update);
    update(); draw();
  };
})();
/* Hear the chosen bundled voice. Value: its name, or "" for a visitor's own recording. */
(() => {
  "use strict";
  const PCG = window.PCG, { el } = PCG;
  PCG.views.voice = (root, api) => {
    const words = el("span", { class: "pcg-muted", "aria-live": "polite" });
    const button = el("button", { type: "button", class: "pcg-btn", text: "▶ Hear this voice", onclick: async () => {
      PCG.audio();
      const reply = await api.server.hear_voice({ name: api.get() }).catch(() => ({ error: "The server did not answer." }));
      if (reply.error) { words.textContent = reply.error; return; }
      words.textContent = reply.transcript ? `“${reply.transcript}”` : "";
      const heard = PCG.fromInt16(reply.pcm, reply.sample_rate);
      PCG.playSlice(heard, 0, heard.duration);
    } });
    root.append(el("div", { class: "voice-row" }, button, words));
    const update = () => { root.hidden = !api.get(); words.textContent = ""; };
    api.watch("value", update);
    update();
  };
})();
