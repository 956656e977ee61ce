/* Learn: an eight-token world with draggable distributions and groups, a stepper, and exact laws beside draws. */
(() => {
  "use strict";
  const PCG = window.PCG, { el, svg, toy, fixed } = PCG;
  const { N, range } = toy, NAMES = "ABCDEFGH";
  const RULES = [["sd", "SD", "exact test"], ["ssd", "SSD", "lenient test"], ["pcg", "PCG", "group test"]];
  const cap = (title, note) => el("header", { class: "pcg-cap" }, el("h2", { text: title }), note && el("p", { text: note }));
  const button = (text, onclick, extra = {}) => el("button", { type: "button", class: "pcg-btn", onclick, text, ...extra });

  PCG.views.learn = (root, api) => {
    const state = { lesson: 0, at: 0, stage: 0, seed: 5, tab: "token", naive: false, drawn: null, selected: null, tally: null };
    const world = {};
    const use = (w) => { Object.assign(world, { draft: w.draft.slice(), target: w.target.slice(), angles: w.angles.slice(), theta: w.theta, beta: w.beta });
      world.links = toy.fromTheta(world.angles, world.theta); };
    const parts = {};

    // ---- lesson text -------------------------------------------------------------------------
    function lessonCard() {
      const tabs = el("div", { class: "pcg-seg", role: "group", "aria-label": "Lessons" },
        [...PCG.lessons.map((l, i) => [i, `${i + 1}. ${l.title}`]), [-1, "Free play"]].map(([i, text]) =>
          el("button", { type: "button", "aria-pressed": String(state.lesson === i), onclick: () => go(i, 0), text })));
      const lesson = PCG.lessons[state.lesson];
      const body = lesson
        ? el("div", { class: "learn-lesson" },
          el("p", { class: "learn-text", "aria-live": "polite", text: lesson.steps[state.at].text }),
          el("div", { class: "learn-nav" },
            button("Back", () => go(state.lesson, state.at - 1), { disabled: state.at === 0 }),
            el("span", { class: "pcg-muted", text: `${state.at + 1} of ${lesson.steps.length}` }),
            state.at + 1 < lesson.steps.length
              ? button("Next", () => go(state.lesson, state.at + 1), { class: "pcg-btn primary" })
              : button(state.lesson + 1 < PCG.lessons.length ? "Next lesson" : "Play freely",
                () => go(state.lesson + 1 < PCG.lessons.length ? state.lesson + 1 : -1, 0), { class: "pcg-btn primary" })))
        : el("p", { class: "learn-text", text: "Everything below moves: drag a bar, turn a token round the circle, join two tokens by clicking one and then the other, move theta or beta. All numbers follow at once." });
      parts.lesson.replaceChildren(tabs, body);
    }
    function go(lesson, at) {
      state.lesson = lesson; state.at = Math.max(0, at); state.drawn = null; state.tally = null;
      const step = lesson >= 0 ? PCG.lessons[lesson].steps[state.at] : null;
      if (step) {
        let setup = step.world;
        for (let i = state.at; !setup && i >= 0; i--) setup = PCG.lessons[lesson].steps[i].world;
        use(setup); state.stage = step.stage || 0; state.naive = !!step.naive;
        if (step.seed) state.seed = step.seed;
        if (step.tab) state.tab = step.tab;
      }
      redraw(true);
      for (const [name, node] of Object.entries(parts)) node.classList.toggle("learn-look", !!step && step.look === name);
    }

    // ---- distributions -----------------------------------------------------------------------
    const H = 216;
    function setProb(which, i, value) {
      const probs = world[which], v = PCG.clamp(value, 0, 0.98), rest = 1 - probs[i];
      for (let j = 0; j < N; j++) if (j !== i) probs[j] = rest > 1e-9 ? (probs[j] * (1 - v)) / rest : (1 - v) / (N - 1);
      probs[i] = v;
      changed();
    }
    function bar(which, i) {
      const name = which === "draft" ? "draft" : "target";
      const node = el("div", {
        class: `learn-bar ${which}`, role: "slider", tabindex: 0, "aria-orientation": "vertical",
        "aria-label": `${name} probability of token ${NAMES[i]}`, "aria-valuemin": 0, "aria-valuemax": 100,
      }, el("i"));
      const move = (event) => {
        const box = node.getBoundingClientRect();
        setProb(which, i, (box.bottom - event.clientY) / box.height * 0.6);
      };
      node.addEventListener("pointerdown", (e) => { node.setPointerCapture(e.pointerId); move(e); });
      node.addEventListener("pointermove", (e) => { if (e.buttons) move(e); });
      node.addEventListener("keydown", (e) => {
        const d = { ArrowUp: 0.02, ArrowRight: 0.02, ArrowDown: -0.02, ArrowLeft: -0.02, PageUp: 0.1, PageDown: -0.1 }[e.key];
        if (d) { e.preventDefault(); setProb(which, i, world[which][i] + d); }
      });
      return node;
    }
    const bars = range(N).map((i) => ({ draft: bar("draft", i), target: bar("target", i), note: el("small") }));
    function drawBars() {
      bars.forEach(({ draft, target, note }, i) => {
        for (const [node, v] of [[draft, world.draft[i]], [target, world.target[i]]]) {
          node.firstChild.style.height = `${Math.min(100, (v / 0.6) * 100)}%`;
          node.setAttribute("aria-valuenow", Math.round(v * 100));
          node.setAttribute("aria-valuetext", PCG.percent(v, 1));
        }
        note.textContent = `${fixed(world.draft[i], 2)} · ${fixed(world.target[i], 2)}`;
      });
    }

    // ---- groups ------------------------------------------------------------------------------
    const board = svg("svg", { viewBox: "-130 -130 260 260", class: "learn-circle", role: "group", "aria-label": "Tokens on the circle of embeddings" });
    const theta = el("input", { type: "range", min: -1, max: 1, step: 0.01, "aria-label": "theta", oninput: () => {
      world.theta = Number(theta.value); world.links = toy.fromTheta(world.angles, world.theta); changed(); } });
    const thetaOut = el("output"), groupNote = el("p", { class: "pcg-muted" });
    const at = (i, r = 96) => { const a = ((world.angles[i] - 90) * Math.PI) / 180; return [r * Math.cos(a), r * Math.sin(a)]; };
    function join(i) {
      if (state.selected === null || state.selected === i) { state.selected = state.selected === i ? null : i; drawGroups(); return; }
      const j = state.selected, on = !world.links[i][j];
      world.links[i][j] = world.links[j][i] = on; state.selected = null; changed();
    }
    function drawGroups() {
      const focus = document.activeElement && board.contains(document.activeElement) ? document.activeElement.dataset.i : null;
      PCG.clear(board);
      board.append(svg("circle", { r: 96, class: "learn-rim" }));
      for (let i = 0; i < N; i++) for (let j = i + 1; j < N; j++) if (world.links[i][j]) {
        const [x, y] = at(i), [u, v] = at(j);
        board.append(svg("path", { d: `M${x},${y}Q${(x + u) * 0.36},${(y + v) * 0.36} ${u},${v}`, class: "learn-link" }));
      }
      range(N).forEach((i) => {
        const [x, y] = at(i), chosen = state.selected;
        const node = svg("g", { transform: `translate(${x},${y})`, class: "learn-node" + (chosen === i ? " on" : chosen !== null && world.links[chosen][i] ? " near" : ""),
          tabindex: 0, role: "button", "data-i": i, "aria-pressed": String(chosen === i),
          "aria-label": `token ${NAMES[i]}, group ${toy.members(world.links, i).map((t) => NAMES[t]).join(" ")}` },
        svg("circle", { r: 15 }), svg("text", { "text-anchor": "middle", dy: "0.35em", text: NAMES[i] }));
        let moved = false;
        node.addEventListener("pointerdown", (e) => { moved = false; board.setPointerCapture(e.pointerId); board.onpointermove = (m) => {
          if (!m.buttons) return;
          const box = board.getBoundingClientRect(), X = m.clientX - box.left - box.width / 2, Y = m.clientY - box.top - box.height / 2;
          const angle = Math.round(((Math.atan2(Y, X) * 180) / Math.PI + 450) % 360);
          if (!moved && Math.abs(((angle - world.angles[i] + 540) % 360) - 180) < 4) return;
          moved = true; world.angles[i] = angle; world.links = toy.fromTheta(world.angles, world.theta); changed();
        }; board.onpointerup = () => { board.onpointermove = board.onpointerup = null; if (!moved) join(i); }; });
        node.addEventListener("keydown", (e) => {
          if (e.key === "Enter" || e.key === " ") { e.preventDefault(); e.stopPropagation(); join(i); }
          const d = { ArrowRight: 4, ArrowLeft: -4 }[e.key];
          if (d) { e.preventDefault(); world.angles[i] = (world.angles[i] + d + 360) % 360; world.links = toy.fromTheta(world.angles, world.theta); changed(); }
        });
        board.append(node);
      });
      if (focus !== null) board.querySelector(`[data-i="${focus}"]`)?.focus();
      theta.value = world.theta; thetaOut.textContent = fixed(world.theta, 2);
      const sizes = range(N).map((k) => toy.members(world.links, k).length);
      groupNote.textContent = `Mean group size ${fixed(toy.sum(sizes) / N, 1)}. ` + (state.selected === null
        ? "Click a token, then another, to join or part them; drag a token round the circle."
        : `G(${NAMES[state.selected]}) = { ${toy.members(world.links, state.selected).map((t) => NAMES[t]).join(", ")} }. Click another token to join or part.`);
    }

    // ---- split -------------------------------------------------------------------------------
    const splitTable = el("div", { class: "pcg-scroll", tabindex: 0, role: "region", "aria-label": "Group probabilities" });
    function drawSplit() {
      const even = !state.naive, pc = toy.coarse(world.draft, world.links, even), qc = toy.coarse(world.target, world.links, even);
      const row = (head, cells, total) => el("tr", {}, el("th", { scope: "row" }, head), cells.map((c) => el("td", { text: c })), el("td", { class: "total", text: total }));
      splitTable.replaceChildren(el("table", { class: "pcg-table" },
        el("thead", {}, el("tr", {}, el("th", { text: "group of" }), range(N).map((i) => el("th", { scope: "col", text: NAMES[i] })), el("th", { text: "sum" }))),
        el("tbody", {},
          row("members", range(N).map((k) => toy.members(world.links, k).map((t) => NAMES[t]).join("")), ""),
          row(even ? "weight 1/|S(t)|" : "weight", range(N).map((k) => even ? `1/${toy.members(world.links, k).length}` : "1"), ""),
          row("P_c", pc.map((x) => fixed(x, 3)), fixed(toy.sum(pc), 3)),
          row("Q_c", qc.map((x) => fixed(x, 3)), fixed(toy.sum(qc), 3)))));
      for (const b of parts.split.querySelectorAll("[data-naive]")) b.setAttribute("aria-pressed", String((b.dataset.naive === "1") === state.naive));
    }

    // ---- one draw, three rules ----------------------------------------------------------------
    const columns = el("div", { class: "learn-columns" });
    const stageNames = ["Draft a token", "Draw its label", "Test the ratio", "Keep or replace"];
    function draw() {
      const random = PCG.random(state.seed * 7919);
      const t = toy.pick(world.draft, random()), u = random();
      return { t, u, steps: RULES.map(([rule]) => toy.step(rule, world, t, u, PCG.random(state.seed * 7919 + 1))) };
    }
    function another() { state.seed += 1; state.stage = Math.max(state.stage, 4);
      state.tally ||= { n: 0, sd: 0, ssd: 0, pcg: 0 };
      const d = draw(); state.tally.n++; d.steps.forEach((s) => { state.tally[s.rule] += s.accepted ? 1 : 0; }); drawSteps(); }
    function explain(s, d) {
      const name = NAMES[d.t], lines = [];
      lines.push([1, `t = ${name}, drawn from P with P(${name}) = ${fixed(s.p, 3)}`]);
      lines.push([2, s.rule === "pcg"
        ? `k uniform from S(${name}) = {${s.owners.map((k) => NAMES[k]).join(", ")}}: k = ${NAMES[s.label]}`
        : "no label: the token itself is judged"]);
      if (s.rule === "sd") lines.push([3, `u < Q/P?  ${fixed(d.u, 3)} ${s.accepted ? "<" : "≥"} ${fixed(s.q, 3)} / ${fixed(s.p, 3)} = ${fixed(s.q / s.p, 3)}`]);
      if (s.rule === "ssd") lines.push([3, `u < min(1, Q/P) + β?  ${fixed(d.u, 3)} ${s.accepted ? "<" : "≥"} ${fixed(s.bar, 3)}`]);
      if (s.rule === "pcg") lines.push([3, `u · P_c(k) < Q_c(k)?  ${fixed(d.u, 3)} · ${fixed(s.pc, 3)} = ${fixed(d.u * s.pc, 3)} ${s.accepted ? "<" : "≥"} ${fixed(s.qc, 3)}`]);
      lines.push([4, s.accepted ? `kept: ${name}` : s.rule === "pcg"
        ? `replaced by ${NAMES[s.token]}, label ${s.newLabel === null ? "–" : NAMES[s.newLabel]}, after ${s.trials.length} trial${s.trials.length === 1 ? "" : "s"} of thinning`
        : `replaced by ${NAMES[s.token]}, drawn from (Q − P)₊ / Z`]);
      return lines;
    }
    function verdictOf(s, d) {
      if (s.accepted) return d.u * s.p < s.q ? "exact" : s.rule === "pcg" ? "group" : "relaxed";
      return "rejected";
    }
    function drawSteps() {
      const d = draw();
      columns.replaceChildren(...d.steps.map((s, c) => {
        const verdict = verdictOf(s, d), kinds = s.accepted ? [verdict] : ["rejected", "residual"];
        const trials = s.trials.length && state.stage >= 4 ? el("details", { class: "learn-trials" },
          el("summary", { text: "the thinning trials" }),
          el("ol", {}, s.trials.slice(0, 12).map((t) => el("li", { text: `t' = ${NAMES[t.token]}, k' = ${NAMES[t.label]}: u = ${fixed(t.u, 2)} ${t.pass ? "<" : "≥"} 1 − P_c/Q_c = ${fixed(t.chance, 2)}` })))) : null;
        return el("article", { class: "learn-column" },
          el("h3", {}, RULES[c][1], el("small", { text: " " + RULES[c][2] })),
          el("ol", { class: "learn-steps" }, explain(s, d).map(([n, text]) =>
            el("li", { class: n <= state.stage ? "" : "hid" }, el("span", { text: n <= state.stage ? text : "…" })))),
          el("p", { class: "learn-verdict" }, state.stage >= 4 ? [
            svg("svg", { viewBox: "-10 -10 20 20", width: 20, height: 20, "aria-hidden": "true" }, PCG.shape(kinds[0], 7)),
            kinds.map((k) => PCG.VERDICTS[k].label).join(", then ")] : "\u00a0"), trials);
      }));
      parts.stageButton.textContent = state.stage < 4 ? stageNames[state.stage] : "Start over";
      const t = state.tally;
      parts.tally.textContent = t ? `Kept so far in ${t.n} draws: SD ${t.sd}, SSD ${t.ssd}, PCG ${t.pcg}.` : `Draw number ${state.seed}: the same token and the same u = ${fixed(d.u, 3)} for all three.`;
    }

    // ---- laws --------------------------------------------------------------------------------
    const lawBox = el("div", { class: "learn-columns" }), lawNote = el("p", { class: "pcg-muted", "aria-live": "polite" });
    function lawChart(law, goal, seen) {
      const W = 240, h = 96, top = Math.max(0.05, ...law, ...goal, ...(seen || [])) * 1.1, w = W / N;
      const y = (v) => h - (v / top) * h;
      return svg("svg", { viewBox: `0 -4 ${W} ${h + 20}`, class: "learn-law", role: "img",
        "aria-label": law.map((v, i) => `${NAMES[i]} ${fixed(v, 3)}`).join(", ") },
      range(N).map((i) => [
        svg("rect", { x: i * w + 5, width: w - 10, y: y(law[i]), height: h - y(law[i]), class: "law" }),
        svg("path", { d: `M${i * w + 2},${y(goal[i])}h${w - 4}`, class: "goal" }),
        seen ? svg("circle", { cx: i * w + w / 2, cy: y(seen[i]), r: 3.2, class: "seen" }) : null,
        svg("text", { x: i * w + w / 2, y: h + 13, "text-anchor": "middle", text: NAMES[i] })]));
    }
    function drawLaws() {
      const qc = toy.coarse(world.target, world.links), onLabels = state.tab === "label";
      lawBox.replaceChildren(...RULES.map(([rule, name, what]) => {
        const law = toy.laws[rule](world.draft, world.target, world.links, world.beta);
        const shown = onLabels ? (law.label || toy.coarse(law.token, world.links)) : law.token;
        const goal = onLabels ? qc : world.target, seen = state.drawn && state.drawn[rule];
        const points = seen ? (onLabels ? (rule === "pcg" ? seen.label : toy.coarse(seen.token, world.links)) : seen.token) : null;
        const gap = toy.tv(shown, goal);
        return el("article", { class: "learn-column" }, el("h3", {}, name, el("small", { text: " " + what })), lawChart(shown, goal, points),
          el("dl", { class: "pcg-dl" },
            el("dt", { text: "kept (acceptance)" }), el("dd", { text: PCG.percent(law.alpha, 1) + (seen ? `  (drawn ${PCG.percent(seen.alpha, 1)})` : "") }),
            el("dt", { text: onLabels ? "label law differs from Q_c by" : "token law differs from Q by" }), el("dd", { class: gap < 1e-9 ? "good" : "", text: gap < 1e-9 ? "0, exactly" : fixed(gap, 3) }),
            seen && rule === "pcg" ? [el("dt", { text: "trials a rejection" }), el("dd", { text: `${fixed(seen.trialsPerRejection, 2)}  (1/Z = ${fixed(1 / Math.max(1e-12, 1 - law.alpha), 2)})` })] : null));
      }));
      for (const b of parts.laws.querySelectorAll("[data-tab]")) b.setAttribute("aria-pressed", String(b.dataset.tab === state.tab));
    }
    async function check() {
      lawNote.textContent = "Asking the library…";
      const payload = { draft: world.draft, target: world.target, links: world.links.map((r) => r.map(Number)), beta: world.beta };
      try {
        const reply = await api.server.check_world(payload);
        if (reply.error) { lawNote.textContent = reply.error; return; }
        let worst = 0;
        for (const [rule] of RULES) {
          const mine = toy.laws[rule](world.draft, world.target, world.links, world.beta), theirs = reply[rule];
          worst = Math.max(worst, Math.abs(mine.alpha - theirs.alpha), ...mine.token.map((v, i) => Math.abs(v - theirs.token[i])),
            ...(mine.label ? mine.label.map((v, i) => Math.abs(v - theirs.label[i])) : [0]));
        }
        lawNote.textContent = `The Python library computes the same laws: largest difference ${worst.toExponential(1)}.`;
      } catch { lawNote.textContent = "The server did not answer; the page's own numbers stand unchecked."; }
    }

    // ---- together ----------------------------------------------------------------------------
    const beta = el("input", { type: "range", min: 0, max: 1, step: 0.05, "aria-label": "beta", oninput: () => { world.beta = Number(beta.value); changed(); } });
    const betaOut = el("output");
    function redraw(all) {
      if (all) lessonCard();
      drawBars(); drawGroups(); drawSplit(); drawSteps(); drawLaws();
      beta.value = world.beta; betaOut.textContent = fixed(world.beta, 2);
    }
    function changed() { state.drawn = null; state.tally = null; lawNote.textContent = ""; redraw(false); }

    const card = (name, ...kids) => (parts[name] = el("section", { class: "pcg-card" }, ...kids));
    parts.stageButton = button("", () => { state.stage = state.stage >= 4 ? 0 : state.stage + 1; drawSteps(); }, { class: "pcg-btn primary" });
    parts.tally = el("p", { class: "pcg-muted", "aria-live": "polite" });
    parts.lesson = el("section", { class: "pcg-card learn-top" });
    const seg = (key, pairs, pick) => el("div", { class: "pcg-seg", role: "group" }, pairs.map(([v, text]) =>
      el("button", { type: "button", [`data-${key}`]: v, text, onclick: () => pick(v) })));
    root.append(parts.lesson, el("div", { class: "learn-grid" },
      card("bars", cap("What the two models say", "Probability of the next token. Drag a bar; the others make room."),
        el("div", { class: "learn-key" }, el("span", { class: "swatch draft" }), "P, draft", el("span", { class: "swatch target" }), "Q, target"),
        el("div", { class: "learn-bars", style: { "--h": H + "px" } }, bars.map((b, i) => el("div", {}, el("div", { class: "pair" }, b.draft, b.target), el("b", { text: NAMES[i] }), b.note)))),
      card("groups", cap("Which tokens sound alike", "A line: cosine of the two embeddings above theta."), board,
        el("label", { class: "pcg-slider" }, el("span", { text: "theta" }), theta, thetaOut), groupNote),
      card("split", cap("Probabilities of sounds", "P_c(k) = Σ over t in G(k) of P(t) / |S(t)|"), splitTable,
        seg("naive", [["0", "Split equally"], ["1", "Count in full"]], (v) => { state.naive = v === "1"; drawSplit(); })),
      card("steps", cap("One draw, three rules", "The same draft token and the same random number for all."), columns,
        el("div", { class: "learn-nav" }, parts.stageButton, button("Another draw", another), parts.tally)),
      card("laws", cap("The exact laws", "Bars: what the rule emits, in closed form. Lines: what the target wants. Dots: 10,000 draws."),
        seg("tab", [["token", "Tokens"], ["label", "Sounds (labels)"]], (v) => { state.tab = v; drawLaws(); }), lawBox,
        el("label", { class: "pcg-slider" }, el("span", { text: "beta of SSD" }), beta, betaOut),
        el("div", { class: "learn-nav" },
          button("Draw 10,000", () => { state.drawn = Object.fromEntries(RULES.map(([rule]) => [rule, toy.simulate(rule, world, 10000, state.seed)])); drawLaws(); }, { class: "pcg-btn primary" }),
          button("Check with the Python library", check)), lawNote)));
    use(PCG.freeWorld); go(0, 0);
  };
})();
