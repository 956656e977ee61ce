/* Watch: every token drafted, judged, kept or thrown away, on the utterance's own time axis.
   Value: { header, rounds, summary, file, live }; a round is { start, d, j, next, e, sec, trials, end }. */
(() => {
  "use strict";
  const PCG = window.PCG, { el, svg, fixed, prob } = PCG;
  const CW = 20, ROW = 24, GHOSTS = 3, WAVE = 64, BASE = GHOSTS * ROW + 20;
  const J = { pos: 0, token: 1, dp: 2, tp: 3, group: 4, size: 5, dc: 6, tc: 7, u: 8, ratio: 9, ok: 10, exact: 11, why: 12 };

  /* One round -> the tokens it puts on the axis: { at, kind, token, judgement, emitted }. */
  function marks(round, rule) {
    const out = [], kept = round.j.filter((j) => j[J.ok]).length;
    round.j.forEach((j) => {
      const kind = !j[J.ok] ? "rejected" : j[J.exact] ? "exact" : rule === "pcg" ? "group" : "relaxed";
      const shown = !j[J.ok] || j[J.pos] < round.e.length;
      out.push({ at: round.start + j[J.pos], kind: shown ? kind : "unjudged", token: j[J.token], j, emitted: j[J.ok] && shown });
    });
    for (let i = round.j.length; i < round.d.length; i++) out.push({ at: round.start + i, kind: "unjudged", token: round.d[i], j: null, emitted: false });
    if (round.e.length > kept) out.push({ at: round.start + kept, kind: round.next[1] === "bonus" ? "bonus" : "residual", token: round.next[0], j: null, next: round.next, emitted: true });
    return out;
  }
  PCG.marks = marks;

  PCG.views.timeline = (root, api) => {
    let value = {}, drawn = [], shown = 0, chosen = null, buffer = null, file = null, timer = null, follow = true, signature = "";
    const empty = el("div", { class: "pcg-empty", text: api.prop("empty") || "Nothing to watch yet." });
    const title = el("div", { class: "watch-title" });
    const wave = el("canvas", { class: "watch-wave", height: WAVE });
    const picture = svg("svg", { class: "watch-strip", tabindex: 0, role: "application", "aria-label": "Tokens along the utterance: arrow keys move, Enter plays", height: BASE + ROW });
    const inner = el("div", { class: "watch-inner" }, picture, wave);
    const scroll = el("div", { class: "watch-scroll" }, inner);
    const detail = el("div", { class: "watch-detail", "aria-live": "polite" });
    const scrub = el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "round", oninput: () => { pause(); goTo(Number(scrub.value)); } });
    const count = el("output", { class: "watch-count" });
    const playButton = el("button", { type: "button", class: "pcg-btn primary", text: "Replay", onclick: () => (timer ? pause() : play()) });
    const speed = el("select", { class: "pcg-select", "aria-label": "Replay speed" }, [["2", "2 rounds a second"], ["6", "6 rounds a second"], ["20", "20 rounds a second"], ["0", "as fast as it ran"]].map(([v, t]) => el("option", { value: v, text: t })));
    speed.value = "6";
    const bar = el("div", { class: "watch-bar" }, playButton,
      el("button", { type: "button", class: "pcg-btn", text: "‹ Step", onclick: () => { pause(); goTo(shown - 1); } }),
      el("button", { type: "button", class: "pcg-btn", text: "Step ›", onclick: () => { pause(); goTo(shown + 1); } }), speed, scrub, count);
    const charts = { pace: el("div"), lengths: el("div"), time: el("div") };
    const cap = (t, n) => el("header", { class: "pcg-cap" }, el("h2", { text: t }), el("p", { text: n }));
    const body = el("div", { class: "watch-body" }, title, PCG.legend(["exact", "group", "rejected", "residual", "bonus", "unjudged"]), scroll, bar, detail,
      el("div", { class: "watch-charts" },
        el("section", { class: "pcg-card" }, cap("Acceptance as it went", "Share of judged drafts kept, over the last 12 rounds and in all; the bonus token is not counted."), charts.pace),
        el("section", { class: "pcg-card" }, cap("Tokens a round", "How many rounds brought how many tokens, the bonus or replacement included."), charts.lengths),
        el("section", { class: "pcg-card" }, cap("Where the time went", "Wall time of the three parts of every round."), charts.time)));
    root.append(empty, body);

    // ---- the strip ---------------------------------------------------------------------------
    function drawRound(index) {
      const round = value.rounds[index], group = svg("g", { class: index % 2 ? "odd" : "even" });
      const items = marks(round, value.header.rule), columns = Math.max(1, round.e.length);
      group.append(svg("rect", { x: round.start * CW, y: 0, width: columns * CW, height: BASE + ROW, class: "band" }));
      for (const item of items) {
        const lane = item.emitted ? 0 : 1 + (item.kind === "rejected" ? 0 : Math.min(GHOSTS - 1, 1 + (index % 2)));
        const g = svg("g", { transform: `translate(${(item.at + 0.5) * CW},${BASE - lane * ROW})`, class: "mark" },
          svg("rect", { x: -CW / 2, y: -ROW / 2, width: CW, height: ROW, fill: "transparent" }), PCG.shape(item.kind, 6.5));
        item.node = g; item.round = index; item.lane = lane;
        g.addEventListener("pointerenter", () => { if (!timer) choose(item, false); });
        g.addEventListener("click", () => { choose(item, true); hear(item); });
        group.append(g);
      }
      picture.append(group);
      drawn.push({ group, items });
    }
    function reset() { drawn = []; PCG.clear(picture); chosen = null; shown = 0; PCG.clear(detail); }
    function goTo(n) {
      shown = PCG.clamp(n, 0, drawn.length);
      drawn.forEach(({ group }, i) => group.classList.toggle("ahead", i >= shown));
      scrub.value = shown;
      count.textContent = `round ${shown} of ${drawn.length}`;
      const last = drawn[shown - 1];
      if (last) {
        const x = last.items.reduce((m, i) => Math.max(m, i.at), 0) * CW;
        if (follow && (x > scroll.scrollLeft + scroll.clientWidth - 60 || x < scroll.scrollLeft)) scroll.scrollLeft = Math.max(0, x - scroll.clientWidth * 0.6);
        if (timer || !chosen || chosen.round >= shown) choose(last.items.find((i) => i.kind === "rejected") || last.items.find((i) => i.kind === "group") || last.items[0], false);
      }
    }
    function play() {
      if (!drawn.length) return;
      if (shown >= drawn.length) goTo(0);
      playButton.textContent = "Pause";
      const tick = () => {
        goTo(shown + 1);
        if (shown >= drawn.length) { pause(); return; }
        const rate = Number(speed.value), sec = value.rounds[shown].sec;
        timer = setTimeout(tick, rate ? 1000 / rate : Math.max(15, 1000 * (sec[0] + sec[1] + sec[2])));
      };
      timer = setTimeout(tick, 10);
    }
    function pause() { clearTimeout(timer); timer = null; playButton.textContent = "Replay"; }

    // ---- one token ---------------------------------------------------------------------------
    function sentence(item) {
      if (item.j) return item.j[J.why];
      if (item.kind === "unjudged") return "Drafted behind a token that was thrown away, so the target never judged it.";
      const [, kind] = item.next, round = value.rounds[item.round];
      if (kind === "bonus") return round.d.length ? "All drafts of this round were kept, so the target adds one token of its own." : "Drawn from the target itself; nothing was drafted here.";
      if (kind === "fallback") return "Drawn from the target itself: the remainder after the rejection had no mass to draw from.";
      return `Drawn from what the target still wants after the rejection${round.trials ? `, in ${round.trials} trial${round.trials === 1 ? "" : "s"} of thinning` : ""}.`;
    }
    const name = (t) => (t === value.header.n_codes ? "end of speech" : `s_${t}`);
    function pair(label, a, b) {
      const top = Math.max(a || 0, b || 0, 1e-12);
      const line = (text, v, cls) => el("div", { class: "watch-line" }, el("span", { text }), el("i", { class: cls, style: { width: `${Math.max(1, (100 * (v || 0)) / top)}%` } }), el("b", { text: prob(v) }));
      return el("div", { class: "watch-pair" }, el("h3", { text: label }), line("draft", a, "draft"), line("target", b, "target"));
    }
    function choose(item, scrollTo) {
      if (!item) return;
      if (chosen && chosen.node) chosen.node.classList.remove("on");
      chosen = item; item.node.classList.add("on");
      const j = item.j, v = PCG.VERDICTS[item.kind], hop = value.header.hop, rate = value.header.sample_rate;
      const seconds = hop && rate ? (item.at * hop) / rate : null;
      detail.replaceChildren(
        el("div", { class: "watch-what" },
          svg("svg", { viewBox: "-12 -12 24 24", width: 34, height: 34, "aria-hidden": "true" }, PCG.shape(item.kind, 9)),
          el("div", {}, el("b", { text: v.label }), el("span", { class: "pcg-muted", text: `  ${name(item.token)} · place ${item.at + 1}${seconds === null ? "" : ` · ${fixed(seconds, 2)} s`} · round ${item.round + 1}` }),
            el("p", { text: sentence(item) }))),
        j ? el("div", { class: "watch-numbers" },
          pair("This token", j[J.dp], j[J.tp]),
          j[J.group] === null ? null : pair(`Its sound: group of ${name(j[J.group])}, ${j[J.size]} token${j[J.size] === 1 ? "" : "s"}`, j[J.dc], j[J.tc]),
          el("div", { class: "watch-pair" }, el("h3", { text: "The test" }),
            el("p", { text: `u = ${fixed(j[J.u], 3)} ${j[J.ok] ? "<" : "≥"} ${fixed(Math.min(j[J.ratio], 9999), 3)}` }),
            el("p", { class: "pcg-muted", text: j[J.exact] ? "The exact test would keep it with this u." : "The exact test would throw it away with this u." })))
          : item.next && item.next[2] !== null ? el("div", { class: "watch-numbers" }, el("div", { class: "watch-pair" }, el("h3", { text: "Drawn with probability" }), el("p", { text: prob(item.next[2]) }))) : null,
        el("div", { class: "learn-nav" },
          el("button", { type: "button", class: "pcg-btn", text: "Hear this place", disabled: !buffer, onclick: () => hear(item) }),
          item.kind === "rejected" ? el("button", { type: "button", class: "pcg-btn", text: "Hear it with the rejected draft", onclick: () => hearRejected(item), disabled: !api.server || !hop }) : null,
          el("span", { class: "pcg-muted", id: "hear-note" })));
      if (scrollTo) scroll.scrollLeft = PCG.clamp(scroll.scrollLeft, item.at * CW - scroll.clientWidth + 60, Math.max(0, item.at * CW - 60));
      paintWave();
    }
    async function hear(item) {
      const url = value.file && value.file.url;
      if (!buffer && url) buffer = await PCG.loadAudio(url).catch(() => null);
      if (!buffer) return;
      const step = value.header.hop / value.header.sample_rate, t = item.at * step, side = Math.max(0, (0.3 - step) / 2);
      PCG.playSlice(buffer, t - side, t + step + side, [t, t + step]);
    }
    async function hearRejected(item) {
      const codes = value.rounds.flatMap((r) => r.e).filter((t) => t < value.header.n_codes);
      const from = Math.max(0, item.at - 25), window = codes.slice(from, item.at + 26);
      if (item.at - from >= window.length) return;
      window[item.at - from] = item.token;
      const reply = await api.server.hear_codes({ codes: window }).catch(() => ({ error: "The server did not answer." }));
      if (reply.error) { detail.querySelector("#hear-note").textContent = reply.error; return; }
      const heard = PCG.fromInt16(reply.pcm, reply.sample_rate), step = reply.hop / reply.sample_rate, t = (item.at - from) * step, side = Math.max(0, (0.3 - step) / 2);
      PCG.playSlice(heard, t - side, t + step + side, [t, t + step]);
    }
    picture.addEventListener("keydown", (e) => {
      const all = drawn.slice(0, shown).flatMap((r) => r.items);
      if (!all.length) return;
      const now = chosen || all[0];
      let next = null;
      if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
        const d = e.key === "ArrowRight" ? 1 : -1;
        next = all.filter((i) => i.emitted && (i.at - now.at) * d > 0).sort((a, b) => (a.at - b.at) * d)[0];
      } else if (e.key === "ArrowUp") next = all.filter((i) => i.at === now.at && i.lane > now.lane).sort((a, b) => a.lane - b.lane)[0];
      else if (e.key === "ArrowDown") next = all.filter((i) => i.at === now.at && i.lane < now.lane).sort((a, b) => b.lane - a.lane)[0];
      else if (e.key === "Enter") { hear(now); e.preventDefault(); return; } else return;
      e.preventDefault(); e.stopPropagation();
      if (next) choose(next, true);
    });

    // ---- the audio under it -------------------------------------------------------------------
    function paintWave() {
      const total = value.rounds ? value.rounds.reduce((n, r) => n + r.e.length, 0) : 0, W = Math.max(total, 1) * CW;
      if (!buffer) { wave.hidden = true; return; }
      const ratio = Math.min(window.devicePixelRatio || 1, 16000 / W);
      wave.style.width = W + "px"; wave.width = Math.round(W * ratio); wave.height = Math.round(WAVE * ratio); wave.hidden = false;
      const g = wave.getContext("2d"); g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, W, WAVE);
      if (chosen) { g.fillStyle = PCG.colour("accent-soft"); g.fillRect(chosen.at * CW, 0, CW, WAVE); }
      const width = Math.min(W, Math.round((buffer.duration * value.header.sample_rate / value.header.hop) * CW)), peaks = PCG.peaks(buffer, Math.max(1, width));
      g.fillStyle = PCG.colour("t1");
      for (let x = 0; x < width; x++) g.fillRect(x, WAVE / 2 - peaks[2 * x + 1] * WAVE * 0.48, 1, Math.max(1, (peaks[2 * x + 1] - peaks[2 * x]) * WAVE * 0.48));
    }
    wave.addEventListener("click", (e) => {
      const at = Math.floor((e.clientX - wave.getBoundingClientRect().left) / CW);
      const item = drawn.flatMap((r) => r.items).find((i) => i.at === at && i.emitted);
      if (item) { choose(item, false); hear(item); }
    });

    // ---- figures -----------------------------------------------------------------------------
    function figures() {
      const rounds = value.rounds, total = [], recent = []; let kept = 0, judged = 0; const counts = [], sec = [0, 0, 0], last = [];
      rounds.forEach((r, i) => {
        const k = r.j.filter((j) => j[J.ok]).length; kept += k; judged += r.j.length; last.push([k, r.j.length]); if (last.length > 12) last.shift();
        if (judged) total.push([i + 1, kept / judged]);
        const n = last.reduce((s, x) => s + x[1], 0); if (n) recent.push([i + 1, last.reduce((s, x) => s + x[0], 0) / n]);
        counts[r.e.length] = (counts[r.e.length] || 0) + 1; r.sec.forEach((s, c) => { sec[c] += s; });
      });
      if (total.length) PCG.lineChart(charts.pace, { x: { label: "round", min: 1, max: Math.max(2, rounds.length) }, y: { label: "acceptance", min: 0, max: 1 }, series: [{ name: "last 12 rounds", colour: "t3", points: recent, dash: "4 3" }, { name: "in all", colour: "t1", points: total }] });
      else charts.pace.replaceChildren(el("p", { class: "pcg-muted", text: "Nothing was drafted: the target spoke alone." }));
      const labels = Array.from({ length: Math.max(2, counts.length) - 1 }, (_, i) => i + 1);
      PCG.columnChart(charts.lengths, { labels, values: labels.map((n) => counts[n] || 0), x: "tokens a round" });
      PCG.splitBar(charts.time, [{ name: "draft", value: sec[0], colour: "t3", pattern: "hatch" }, { name: "verify", value: sec[1], colour: "t1" }, { name: "judge", value: sec[2], colour: "t4", pattern: "dots" }]);
    }
    function heading() {
      const h = value.header, s = value.summary || {};
      title.replaceChildren(el("b", { text: h.label || h.rule }), el("span", { class: "pcg-muted", text: h.text ? ` “${h.text}”` : "" }),
        el("span", { class: "watch-sum" }, [["acceptance", PCG.percent(s.acceptance_rate, 1)], ["tokens a round", fixed(s.tokens_per_round, 2)], ["rounds", s.rounds ?? drawn.length], ["tokens", s.tokens ?? "–"]].map(([k, v]) => el("span", {}, k + " ", el("b", { text: v })))));
    }
    let figureTimer = null, stale = false;
    function update() {
      if (!PCG.visible(root)) { stale = true; return; }     // a hidden tab costs nothing
      stale = false;
      const next = api.get() || {};
      const has = next.rounds && next.rounds.length && next.header;
      empty.hidden = !!has; body.hidden = !has;
      if (!has) { value = {}; reset(); return; }
      const mark = JSON.stringify([next.header.run, next.header.rule, next.header.seed, next.header.text]);
      const fresh = mark !== signature || next.rounds.length < drawn.length;
      value = next; signature = mark;
      if (fresh) { pause(); reset(); file = buffer = null; scroll.scrollLeft = 0; }
      const atEnd = shown >= drawn.length;
      for (let i = drawn.length; i < value.rounds.length; i++) drawRound(i);
      const last = value.rounds[value.rounds.length - 1], W = (last.start + Math.max(last.e.length, last.d.length) + 1) * CW;
      picture.setAttribute("width", W); inner.style.width = W + "px"; scrub.max = drawn.length;
      heading();
      if (fresh || atEnd) goTo(drawn.length); else goTo(shown);
      clearTimeout(figureTimer); figureTimer = setTimeout(figures, next.live ? 400 : 0);
      const url = next.file && next.file.url;
      if (url && url !== file) { file = url; PCG.loadAudio(url).then((b) => { if (file === url) { buffer = b; paintWave(); if (chosen) choose(chosen, false); } }, () => {}); }
      if (fresh || !next.live) paintWave();
    }
    scroll.addEventListener("pointerdown", () => { follow = false; }); scrub.addEventListener("pointerdown", () => { follow = true; });
    playButton.addEventListener("click", () => { follow = true; });
    PCG.onTheme(paintWave);
    PCG.onWidth(root, () => { if (stale) update(); });
    new IntersectionObserver(() => { if (stale) update(); }).observe(root);
    api.watch("value", update);
    update();
  };
})();
