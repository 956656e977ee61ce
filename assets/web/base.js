/* Shared helpers of the page: DOM building, numbers, theme, one Web Audio context, the verdict shapes. */
(() => {
  "use strict";
  const PCG = (window.PCG = window.PCG || { views: {} });

  // ---- DOM -----------------------------------------------------------------------------------
  const SVG_NS = "http://www.w3.org/2000/svg";
  function fill(node, attrs, children) {
    for (const [key, value] of Object.entries(attrs || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "text") node.textContent = value;
      else if (key === "style" && typeof value === "object") {
        for (const [name, v] of Object.entries(value)) node.style.setProperty(name, v);
      } else node.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return node;
  }
  /* Text always becomes a text node: nothing a visitor typed is ever parsed as HTML. */
  PCG.el = (tag, attrs, ...children) => fill(document.createElement(tag), attrs, children);
  PCG.svg = (tag, attrs, ...children) =>
    fill(document.createElementNS(SVG_NS, tag), attrs, children);
  PCG.clear = (node) => { node.replaceChildren(); return node; };

  // ---- numbers -------------------------------------------------------------------------------
  PCG.fixed = (x, digits = 2) => (x === null || x === undefined || !Number.isFinite(x)
    ? "–" : x.toFixed(digits).replace(/^-(?=0(\.0*)?$)/, ""));
  PCG.percent = (x, digits = 0) =>
    (x === null || x === undefined || !Number.isFinite(x) ? "–" : (100 * x).toFixed(digits) + " %");
  PCG.prob = (x) => {
    if (x === null || x === undefined || !Number.isFinite(x)) return "–";
    if (x === 0) return "0";
    return x < 0.001 ? x.toExponential(1) : x.toFixed(3);
  };
  PCG.clock = (s) => `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, "0")}`;
  PCG.clamp = (x, low, high) => Math.min(high, Math.max(low, x));

  // ---- theme ---------------------------------------------------------------------------------
  const themed = new Set();
  PCG.colour = (name) => getComputedStyle(document.body).getPropertyValue("--" + name).trim();
  PCG.onTheme = (callback) => { themed.add(callback); return () => themed.delete(callback); };
  function watchTheme() {
    let dark = document.body.classList.contains("dark");
    new MutationObserver(() => {
      const now = document.body.classList.contains("dark");
      if (now !== dark) { dark = now; themed.forEach((f) => f()); }
    }).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  }
  if (document.body) watchTheme(); else document.addEventListener("DOMContentLoaded", watchTheme);
  PCG.toggleTheme = () => {
    const dark = document.body.classList.toggle("dark");
    try { localStorage.setItem("pcg-theme", dark ? "dark" : "light"); } catch { /* private mode */ }
    return dark;
  };
  PCG.restoreTheme = () => {
    let kept = null;
    try { kept = localStorage.getItem("pcg-theme"); } catch { /* private mode */ }
    if (!kept || new URLSearchParams(location.search).has("__theme")) return;
    document.body.classList.toggle("dark", kept === "dark");
  };

  // ---- audio ---------------------------------------------------------------------------------
  let context = null;
  PCG.audio = () => {
    if (!context) context = new (window.AudioContext || window.webkitAudioContext)();
    if (context.state === "suspended") context.resume();
    return context;
  };
  /* Buffers are decoded once for each address; an OfflineAudioContext needs no gesture. */
  const decoded = new Map();
  PCG.loadAudio = (url) => {
    if (!decoded.has(url)) {
      if (decoded.size > 40) decoded.delete(decoded.keys().next().value);
      decoded.set(url, fetch(url).then((r) => {
        if (!r.ok) throw new Error("the audio is no longer on the server");
        return r.arrayBuffer();
      }).then((data) => new OfflineAudioContext(1, 1, 48000).decodeAudioData(data)));
    }
    return decoded.get(url);
  };
  PCG.fromInt16 = (base64, rate) => {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const ints = new Int16Array(bytes.buffer, 0, bytes.length >> 1);
    const buffer = new OfflineAudioContext(1, 1, 48000).createBuffer(1, Math.max(1, ints.length), rate);
    const out = buffer.getChannelData(0);
    for (let i = 0; i < ints.length; i++) out[i] = ints[i] / 32768;
    return buffer;
  };
  let snippet = null;
  /* Play [start, end) seconds of a buffer with 8 ms fades, `focus` = [from, to] kept at full level. */
  PCG.playSlice = (buffer, start, end, focus = null) => {
    const ctx = PCG.audio();
    if (snippet) { try { snippet.stop(); } catch { /* ended */ } }
    const from = PCG.clamp(start, 0, buffer.duration);
    const length = Math.max(0.02, Math.min(end, buffer.duration) - from);
    const source = ctx.createBufferSource();
    const gain = ctx.createGain();
    source.buffer = buffer;
    source.connect(gain).connect(ctx.destination);
    const now = ctx.currentTime + 0.01;
    const side = focus ? 0.45 : 1;
    gain.gain.setValueAtTime(0, now);
    gain.gain.linearRampToValueAtTime(side, now + 0.008);
    if (focus) {
      const a = now + Math.max(0.01, focus[0] - from), b = now + Math.max(0.015, focus[1] - from);
      gain.gain.setValueAtTime(side, Math.max(now + 0.008, a - 0.005));
      gain.gain.linearRampToValueAtTime(1, a);
      gain.gain.setValueAtTime(1, b);
      gain.gain.linearRampToValueAtTime(side, b + 0.005);
    }
    gain.gain.setValueAtTime(side, Math.max(now + 0.009, now + length - 0.008));
    gain.gain.linearRampToValueAtTime(0, now + length);
    source.start(now, from, length + 0.01);
    snippet = source;
    PCG.lastSnippet = { from, length };
    return source;
  };
  PCG.peaks = (buffer, width) => {
    const data = buffer.getChannelData(0), out = new Float32Array(width * 2);
    for (let x = 0; x < width; x++) {
      const a = Math.floor((x * data.length) / width);
      const b = Math.max(a + 1, Math.floor(((x + 1) * data.length) / width));
      let low = 0, high = 0;
      for (let i = a; i < b; i++) { if (data[i] < low) low = data[i]; if (data[i] > high) high = data[i]; }
      out[2 * x] = low; out[2 * x + 1] = high;
    }
    return out;
  };

  // ---- verdicts: a shape and a colour each ----------------------------------------------------
  PCG.VERDICTS = {
    exact: { label: "kept by exact test", colour: "v-exact", help: "Plain speculative decoding would have kept it with the same random number." },
    group: { label: "kept thanks to its group", colour: "v-group", help: "The exact test would have thrown it away; the target agrees with its sound." },
    relaxed: { label: "kept by leniency", colour: "v-group", help: "The exact test would have thrown it away; this rule let it pass." },
    rejected: { label: "thrown away", colour: "v-rejected", help: "The target disagrees too much." },
    residual: { label: "replacement", colour: "v-residual", help: "Drawn anew after a rejection." },
    bonus: { label: "bonus", colour: "v-bonus", help: "Drawn from the target itself, free of charge." },
    unjudged: { label: "never judged", colour: "v-unjudged", help: "Drafted after a rejected token, so dropped unseen." },
    drafted: { label: "drafted", colour: "v-unjudged", help: "Proposed by the draft model, not judged yet." },
  };
  const polygon = (n, r, turn = -90) => Array.from({ length: n }, (_, i) => {
    const a = ((turn + (360 * i) / n) * Math.PI) / 180;
    return `${(r * Math.cos(a)).toFixed(2)},${(r * Math.sin(a)).toFixed(2)}`;
  });
  /* A path centred on 0,0: circle, hexagon, cross, triangle, square, ring. */
  PCG.shapePath = (kind, r) => {
    switch (kind) {
      case "exact": return `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`;
      case "group": case "relaxed": return "M" + polygon(6, r * 1.15).join("L") + "Z";
      case "rejected": { const s = r * 0.85; return `M${-s},${-s}L${s},${s}M${-s},${s}L${s},${-s}`; }
      case "residual": return "M" + polygon(3, r * 1.3).join("L") + "Z";
      case "bonus": { const s = r * 0.88; return `M${-s},${-s}H${s}V${s}H${-s}Z`; }
      default: { const s = r * 0.7; return `M${-s},0a${s},${s} 0 1,0 ${2 * s},0a${s},${s} 0 1,0 ${-2 * s},0Z`; }
    }
  };
  PCG.shape = (kind, r = 7, attrs = {}) => {
    const line = kind === "rejected" || kind === "unjudged" || kind === "drafted";
    const colour = `var(--${(PCG.VERDICTS[kind] || PCG.VERDICTS.drafted).colour})`;
    return PCG.svg("path", {
      d: PCG.shapePath(kind, r), fill: line ? "none" : colour,
      stroke: colour, "stroke-width": kind === "rejected" ? 2.6 : line ? 1.4 : 0,
      "stroke-linecap": "round", "stroke-dasharray": kind === "unjudged" ? "2 2" : null, ...attrs,
    });
  };
  PCG.legend = (kinds) => PCG.el("ul", { class: "pcg-legend", "aria-label": "What the shapes mean" },
    kinds.map((kind) => PCG.el("li", { title: PCG.VERDICTS[kind].help },
      PCG.svg("svg", { viewBox: "-10 -10 20 20", width: 16, height: 16, "aria-hidden": "true" },
        PCG.shape(kind, 6.5)), PCG.VERDICTS[kind].label)));

  // ---- mounting ------------------------------------------------------------------------------
  /* Each component registers PCG.views[name] = (root, api) => void. api: get(), set(v), trigger, watch, server. */
  PCG.mount = (name, element, props, trigger, watch, server) => {
    const root = element.querySelector(".pcg-root");
    const api = {
      get: () => props.value,
      set: (value) => { props.value = value; },
      prop: (key) => props[key],
      trigger, server,
      watch: (keys, callback) => watch(keys, callback),
    };
    try { PCG.views[name](root, api); } catch (error) {
      root.textContent = "This part of the page could not start: " + error.message;
      throw error;
    }
  };
  PCG.visible = (node) => node.isConnected && node.offsetParent !== null;
  PCG.typing = (event) => {
    const t = event.target;
    return t && (t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName)) && t.type !== "range"
      && t.type !== "checkbox" && t.type !== "radio";
  };
  /* Call back when the node gets a new width (also when its tab is opened). */
  PCG.onWidth = (node, callback) => {
    let width = 0;
    const seen = new ResizeObserver(() => {
      const now = Math.round(node.clientWidth);
      if (now && now !== width) { width = now; callback(now); }
    });
    seen.observe(node);
  };
  PCG.random = (seed) => {              // mulberry32: one visible seed, the same stream for every rule
    let a = seed >>> 0;
    return () => {
      a = (a + 0x6d2b79f5) >>> 0;
      let t = a;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  };
})();
