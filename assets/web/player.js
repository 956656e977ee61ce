/* The board: one lane a rule, every lane on the same playhead. Switching is a 10 ms cross-fade between
   sources that all run, so nothing clicks and nothing drifts. Value: { tracks, live, note }. */
(() => {
  "use strict";
  const PCG = window.PCG, { el } = PCG;
  const FADE = 0.01, LANE_H = 58;
  const ICON = {
    play: "M7 4.5v15l12-7.5z", pause: "M7 5h3.6v14H7zM13.4 5H17v14h-3.6z",
    loop: "M17 4l3 3-3 3V8H8a3 3 0 0 0-3 3v1H3v-1a5 5 0 0 1 5-5h9zM7 20l-3-3 3-3v2h9a3 3 0 0 0 3-3v-1h2v1a5 5 0 0 1-5 5H7z",
  };
  const icon = (name) => PCG.svg("svg", { viewBox: "0 0 24 24", width: 22, height: 22, "aria-hidden": "true" },
    PCG.svg("path", { d: ICON[name], fill: "currentColor" }));

  /* All sources start together and loop together; `gains` decides which one is heard. */
  function engine(onEnd) {
    let tracks = [], active = null, running = null, offset = 0, region = null, looping = false;
    const longest = () => Math.max(0, ...tracks.map((t) => t.buffer.duration));
    const span = () => (region || [0, longest()]);
    function position() {
      if (!running) return offset;
      const p = running.offset + Math.max(0, PCG.audio().currentTime - running.at);
      if (!looping) return Math.min(p, longest());
      const [a, b] = span();
      return p < b ? p : a + ((p - a) % Math.max(0.05, b - a));
    }
    function stop() {
      if (!running) return;
      offset = position();
      const now = PCG.audio().currentTime;
      running.nodes.forEach(({ source, gain }) => {
        gain.gain.cancelScheduledValues(now);
        gain.gain.setTargetAtTime(0, now, FADE / 3);
        source.onended = null; source.stop(now + 3 * FADE);
      });
      running = null;
    }
    function padded(buffer) {               // equal lengths keep looped sources in step
      const n = Math.ceil(longest() * buffer.sampleRate);
      if (buffer.length >= n) return buffer;
      const out = PCG.audio().createBuffer(1, n, buffer.sampleRate);
      out.copyToChannel(buffer.getChannelData(0), 0);
      return out;
    }
    function start() {
      if (!tracks.length) return;
      const ctx = PCG.audio();
      let from = offset >= longest() - 0.02 ? 0 : offset;
      if (looping && (from < span()[0] || from >= span()[1] - 0.01)) from = span()[0];
      const at = ctx.currentTime + 0.03;
      const nodes = new Map(tracks.map((track) => {
        const source = ctx.createBufferSource(), gain = ctx.createGain();
        source.buffer = padded(track.buffer);
        if (looping) { source.loop = true; [source.loopStart, source.loopEnd] = span(); }
        source.connect(gain).connect(ctx.destination);
        gain.gain.value = 0;
        if (track.id === active) { gain.gain.setValueAtTime(0, at); gain.gain.linearRampToValueAtTime(1, at + FADE); }
        source.start(at, from);
        return [track.id, { source, gain }];
      }));
      running = { nodes, at, offset: from };
      const mine = running;
      const first = nodes.values().next().value;
      first.source.onended = () => { if (running === mine) { running = null; offset = 0; onEnd(); } };
    }
    const restart = (change) => { const was = !!running; stop(); change(); if (was) start(); };
    return {
      setTracks(list) {
        if (list.length === tracks.length && list.every((t, i) => t.buffer === tracks[i].buffer && t.id === tracks[i].id)) return;
        restart(() => { tracks = list; if (!tracks.some((t) => t.id === active)) active = tracks[0] ? tracks[0].id : null; });
      },
      choose(id) {
        if (!tracks.some((t) => t.id === id)) return;
        active = id;
        if (!running) return;
        const now = PCG.audio().currentTime;
        running.nodes.forEach(({ gain }, key) => {
          gain.gain.cancelScheduledValues(now);
          gain.gain.setValueAtTime(gain.gain.value, now);
          gain.gain.linearRampToValueAtTime(key === id ? 1 : 0, now + FADE);
        });
      },
      toggle() { if (running) stop(); else start(); },
      stop, seek: (s) => restart(() => { offset = PCG.clamp(s, 0, longest()); }),
      region: (r) => restart(() => { region = r; if (r) looping = true; }),
      loop: (on) => restart(() => { looping = on; if (!on) region = null; }),
      get state() { return { playing: !!running, position: position(), active, region, looping, duration: longest() }; },
    };
  }

  /* Preview chunks of the running rule, played one after the other as they arrive. */
  function liveVoice() {
    let track = null, next = 0, heard = 0, sources = [];
    return {
      feed(live, on) {
        if (!live || !live.chunks) return;
        if (live.track !== track) { track = live.track; heard = 0; }
        const fresh = live.chunks.slice(heard); heard = live.chunks.length;
        if (!on) return;
        const ctx = PCG.audio();
        for (const chunk of fresh) {
          const buffer = PCG.fromInt16(chunk, live.sample_rate), source = ctx.createBufferSource();
          source.buffer = buffer; source.connect(ctx.destination);
          next = Math.max(next, ctx.currentTime + 0.12);
          source.start(next); next += buffer.duration;
          PCG.firstSound ||= performance.now();
          sources.push(source); source.onended = () => { sources = sources.filter((s) => s !== source); };
        }
      },
      stop() { sources.forEach((s) => { try { s.stop(); } catch { /* ended */ } }); sources = []; next = 0; },
      get busy() { return sources.length > 0; },
    };
  }

  PCG.views.player = (root, api) => {
    const lanes = new Map(), live = liveVoice();
    const empty = api.prop("empty") || "Nothing to hear yet.";
    let value = {}, listen = true, frame = 0;
    const sound = engine(() => paint());
    const playButton = el("button", { type: "button", class: "pcg-btn primary round", "aria-label": "Play", onclick: () => toggle() }, icon("play"));
    const loopButton = el("button", { type: "button", class: "pcg-btn round", "aria-label": "Loop", "aria-pressed": "false", title: "Loop (L); drag over a waveform to loop a part", onclick: () => { sound.loop(!sound.state.looping); paint(); } }, icon("loop"));
    const time = el("span", { class: "board-time", text: "0:00.0" });
    const listenBox = el("label", { class: "board-listen" }, el("input", { type: "checkbox", checked: true, onchange: (e) => { listen = e.target.checked; if (!listen) live.stop(); } }), "listen while it speaks");
    if (api.prop("live") === false) listenBox.hidden = true;
    const bar = el("div", { class: "board-bar" }, playButton, loopButton, time, listenBox,
      el("span", { class: "pcg-muted board-keys", text: "keys: 1–9, space, L, ← →", title: "1–9 choose an output, space plays, L loops, arrows seek" }));
    const list = el("div", { class: "board-lanes", role: "radiogroup", "aria-label": "Outputs on one playhead" });
    const note = el("p", { class: "pcg-note", role: "status", hidden: true });
    const blank = el("div", { class: "pcg-empty", text: empty });
    root.classList.add("board");
    root.append(note, bar, list, blank);

    function toggle() { live.stop(); sound.toggle(); paint(); }
    function choose(id) { sound.choose(id); paint(); api.trigger("lane_chosen", { id }); }

    function lane(track, index) {
      const canvas = el("canvas", { class: "board-wave", height: LANE_H, "aria-hidden": "true" });
      const head = el("button", { type: "button", role: "radio", class: "board-name", "aria-checked": "false", onclick: () => choose(track.id) });
      const stats = el("dl", { class: "board-stats" }), state = el("p", { class: "board-state" }), progress = el("div", { class: "board-progress" }, el("i"));
      const node = el("article", { class: "board-lane", style: { "--lane": `var(--t${(index % 9) + 1})` } }, head, el("div", { class: "board-mid" }, canvas, progress, state), stats);
      const item = { node, canvas, head, stats, state, progress, track: null, buffer: null, file: null, peaks: null, index };
      let from = null;
      const at = (e) => { const box = canvas.getBoundingClientRect(); return PCG.clamp((e.clientX - box.left) / box.width, 0, 1) * sound.state.duration; };
      canvas.addEventListener("pointerdown", (e) => { if (!item.buffer) return; canvas.setPointerCapture(e.pointerId); from = { s: at(e), x: e.clientX }; });
      canvas.addEventListener("pointermove", (e) => { if (from && Math.abs(e.clientX - from.x) > 6) { const s = at(e); item.drag = [Math.min(from.s, s), Math.max(from.s, s)]; paint(); } });
      canvas.addEventListener("pointerup", (e) => {
        if (!from) return;
        if (item.drag && item.drag[1] - item.drag[0] > 0.06) { sound.region(item.drag); sound.seek(item.drag[0]); } else { sound.seek(at(e)); }
        item.drag = null; from = null; choose(track.id);
      });
      canvas.addEventListener("pointercancel", () => { from = null; item.drag = null; });
      PCG.onWidth(canvas, () => { item.peaks = null; paint(); });
      return item;
    }
    function fillLane(item, track, index) {
      item.track = track;
      item.head.replaceChildren(el("kbd", { text: index + 1 }), el("span", {}, el("b", { text: track.label }), track.detail ? el("small", { text: track.detail }) : null));
      item.stats.replaceChildren(...(track.stats || []).map((s) => el("div", { title: s.help || null, class: s.main ? "main" : "" }, el("dt", { text: s.label }), el("dd", { text: s.value }))));
      item.state.textContent = track.message || { waiting: "waiting for its turn", running: "speaking…", error: "could not be made" }[track.state] || "";
      item.state.classList.toggle("bad", track.state === "error");
      item.progress.hidden = track.state !== "running";
      item.progress.firstChild.style.width = `${Math.round(100 * (track.progress || 0))}%`;
      item.node.dataset.state = track.state;
      const url = track.file && track.file.url;
      if (url && url !== item.file) {
        item.file = url;
        PCG.loadAudio(url).then((buffer) => { if (item.file === url) { item.buffer = buffer; item.peaks = null; refresh(); } },
          (error) => { item.state.textContent = "The audio could not be fetched: " + error.message + "."; });
      }
      if (!url && item.file) { item.file = item.buffer = item.peaks = null; }
    }
    function refresh() {
      sound.setTracks([...lanes.values()].filter((i) => i.buffer).map((i) => ({ id: i.track.id, buffer: i.buffer })));
      paint();
    }
    function update() {
      value = api.get() || {};
      const tracks = value.tracks || [];
      for (const id of [...lanes.keys()]) if (!tracks.some((t) => t.id === id)) { lanes.get(id).node.remove(); lanes.delete(id); }
      tracks.forEach((track, i) => {
        if (!lanes.has(track.id)) { const item = lane(track, i); lanes.set(track.id, item); list.append(item.node); }
        fillLane(lanes.get(track.id), track, i);
      });
      note.hidden = !value.note; note.textContent = value.note || ""; note.classList.toggle("bad", value.kind === "error");
      blank.hidden = tracks.length > 0; bar.hidden = list.hidden = tracks.length === 0;
      refresh();
      if (PCG.visible(root)) live.feed(value.live, listen && !sound.state.playing);
    }
    function paint() {
      if (!PCG.visible(root)) return;
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(draw);
    }
    function drawLane(item, s) {
      const { canvas } = item, ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = LANE_H;
      if (!w) return;
      if (canvas.width !== Math.round(w * ratio)) { canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); item.peaks = null; }
      const g = canvas.getContext("2d"); g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, w, h);
      const region = item.drag || (s.region && s.looping ? s.region : null), x = (t) => (s.duration ? (t / s.duration) * w : 0);
      const style = getComputedStyle(item.node), on = s.active === item.track.id;
      if (region) { g.fillStyle = PCG.colour("accent-soft"); g.fillRect(x(region[0]), 0, Math.max(2, x(region[1]) - x(region[0])), h); }
      if (item.buffer) {
        const width = Math.max(1, Math.round(x(item.buffer.duration)));
        if (!item.peaks || item.peaks.width !== width) item.peaks = { width, data: PCG.peaks(item.buffer, width) };
        const colour = style.getPropertyValue("--lane").trim() || "#888";
        for (let i = 0; i < width; i++) {
          const low = item.peaks.data[2 * i], high = item.peaks.data[2 * i + 1];
          g.globalAlpha = (on ? 1 : 0.5) * (i <= x(s.position) && on ? 1 : 0.62);
          g.fillStyle = colour; g.fillRect(i, h / 2 - Math.max(0.5, high * h * 0.48), 1, Math.max(1, (high - low) * h * 0.48));
        }
        g.globalAlpha = 1;
      }
      if (s.duration) { g.fillStyle = PCG.colour("ink"); g.fillRect(x(s.position) - 0.75, 0, 1.5, h); }
    }
    function draw() {
      const s = sound.state;
      PCG.playhead = s.position;
      for (const item of lanes.values()) {
        const on = s.active === item.track.id;
        item.head.setAttribute("aria-checked", String(on)); item.head.disabled = !item.buffer;
        item.node.classList.toggle("on", on);
        drawLane(item, s);
      }
      playButton.replaceChildren(icon(s.playing ? "pause" : "play"));
      playButton.setAttribute("aria-label", s.playing ? "Pause" : "Play"); playButton.disabled = !s.duration;
      loopButton.setAttribute("aria-pressed", String(s.looping)); loopButton.disabled = !s.duration;
      time.textContent = `${PCG.clock(s.position)} / ${PCG.clock(s.duration)}`;
      root.dispatchEvent(new CustomEvent("pcg-playhead", { detail: s }));
      if (s.playing) frame = requestAnimationFrame(draw);
    }
    document.addEventListener("keydown", (e) => {
      if (!PCG.visible(root) || PCG.typing(e) || e.ctrlKey || e.metaKey || e.altKey || !lanes.size) return;
      const focus = document.activeElement, elsewhere = focus && focus.closest(".pcg-root") && !root.contains(focus);
      if (elsewhere && e.key !== " ") return;
      if (/^[1-9]$/.test(e.key)) { const item = [...lanes.values()][Number(e.key) - 1]; if (item && item.buffer) choose(item.track.id); }
      else if (e.key === " " && !(focus && /^(BUTTON|A|SUMMARY|INPUT)$/.test(focus.tagName) && !root.contains(focus))) {
        if (focus && (focus === playButton || focus === loopButton)) return;
        if (focus && focus.getAttribute && focus.getAttribute("role") === "tab") return;
        e.preventDefault(); toggle();
      } else if (e.key.toLowerCase() === "l" && (!elsewhere)) { sound.loop(!sound.state.looping); paint(); }
      else if ((e.key === "ArrowLeft" || e.key === "ArrowRight") && (root.contains(focus) || focus === document.body)) {
        e.preventDefault(); sound.seek(sound.state.position + (e.key === "ArrowLeft" ? -1 : 1) * (e.shiftKey ? 0.1 : 0.5)); paint();
      }
    });
    /* Another component may ask this board to play from a moment. */
    root.pcgPlayer = { seek: (s) => { sound.seek(s); paint(); }, choose, toggle, get state() { return sound.state; } };
    PCG.onTheme(paint);
    new ResizeObserver(paint).observe(root);
    new IntersectionObserver(() => { if (!PCG.visible(root) && sound.state.playing) { sound.stop(); live.stop(); paint(); } }).observe(root);
    api.watch("value", update);
    update();
  };
})();
