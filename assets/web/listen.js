/* Taking a blind test: consent, volume and headphone check, questions, end. Talks to /listening/... and knows no names.
   Value: { study: id } ; prop `base`: where the routes lie. */
(() => {
  "use strict";
  const PCG = window.PCG, { el } = PCG;
  const MOS = { 1: "Bad", 2: "Poor", 3: "Fair", 4: "Good", 5: "Excellent" };
  const store = (area) => ({
    get(key) { try { return area().getItem(key); } catch { return null; } },
    set(key, value) { try { area().setItem(key, value); } catch { /* private mode: the test still runs, but a reload starts anew */ } },
    drop(key) { try { area().removeItem(key); } catch { /* private mode */ } },
  });
  const kept = store(() => localStorage), session = store(() => sessionStorage);
  const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  class Refusal extends Error {}
  /* Repeats until the server answers: every request of this page may safely be sent twice. */
  async function ask(url, body, onTrouble) {
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await fetch(url, body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : undefined);
        if (answer.status < 500) {
          const data = await answer.json();
          if (!answer.ok) { const refusal = new Refusal(data.error || "The server did not understand the request."); refusal.status = answer.status; throw refusal; }
          return data;
        }
      } catch (error) { if (error instanceof Refusal) throw error; }
      onTrouble("The server does not answer. Your answers are safe; trying again…");
      await wait(Math.min(8000, 400 * 2 ** attempt));
    }
  }

  PCG.views.listen = (root, api) => {
    const base = api.prop("base") || "listening";
    let study = null, listener = null, about = null, player = null, question = null, answer = null, heard = {}, busy = false, parts = {};
    const note = el("p", { class: "pcg-note listen-note", role: "status", hidden: true });
    const stage = el("div", { class: "listen-stage" });
    root.classList.add("listen");
    root.append(stage, note);
    const say = (text, bad) => { note.hidden = !text; note.textContent = text || ""; note.classList.toggle("bad", !!bad); };
    const trouble = (text) => say(text, true);
    const url = (tail) => `${base}/studies/${encodeURIComponent(study)}${tail}`;
    const button = (text, onclick, extra = {}) => el("button", { type: "button", class: "pcg-btn", onclick, text, ...extra });
    const show = (...nodes) => { stage.replaceChildren(...nodes); const h = stage.querySelector(".listen-h"); if (h && h.tabIndex === -1) h.focus({ preventScroll: true }); };
    const heading = (text) => el("h2", { class: "listen-h", tabindex: "-1", text });

    async function open() {
      const value = api.get() || {};
      if (player) player.stop();
      player = question = null; study = value.study || null; say("");
      if (!study) { show(el("div", { class: "pcg-empty", text: api.prop("empty") || "Open a test to take it here." })); return; }
      try {
        about = await ask(url(""), null, trouble);
        say("");
        listener = kept.get("pcg-listener-" + study);
        if (listener) { await advance(await ask(url("/next?listener=" + listener), null, trouble)); return; }
      } catch (error) {
        if (!about || error.status !== 404) { show(); trouble(error.message); return; }
        kept.drop("pcg-listener-" + study); listener = null;
      }
      intro();
    }

    function intro() {
      const agree = el("input", { type: "checkbox", onchange: () => { start.disabled = !agree.checked; } });
      const start = button("Start", async () => {
        start.disabled = true;
        listener = newId();
        kept.set("pcg-listener-" + study, listener);
        try { await advance(await ask(url("/join"), { listener, consent: true }, trouble)); } catch (error) { kept.drop("pcg-listener-" + study); trouble(error.message); }
      }, { class: "pcg-btn primary", disabled: true });
      show(el("div", { class: "pcg-card listen-card" }, heading(about.title),
        el("p", { text: `${about.question} ${about.trials} question${about.trials === 1 ? "" : "s"}, about ${about.minutes} minute${about.minutes === 1 ? "" : "s"}. Sit somewhere quiet and use headphones if you can. You may stop and come back: this browser keeps your place.` }),
        el("label", { class: "listen-consent" }, agree, el("span", { text: about.consent })),
        el("div", {}, start)));
    }

    // ---- volume and headphones -----------------------------------------------------------------
    function check(next) {
      let round = 0, correct = 0, soft = null;
      const ROUNDS = 3, finish = async (device) => {
        await ask(url("/check"), { listener, device, correct, of: round }, trouble); say("");
        advance({ ...next, checked: true });
      };
      const picks = [0, 1, 2].map((k) => button(`Tone ${k + 1}`, () => {
        correct += k === soft ? 1 : 0; round += 1; soft = null;
        if (round >= ROUNDS) { finish("headphones"); return; }
        sync();
      }, { disabled: true }));
      const play = button("Play three tones", () => { play.disabled = true; soft = PCG.toneTriplet(() => { picks.forEach((p) => { p.disabled = false; }); play.disabled = false; play.textContent = "Play again"; }); picks.forEach((p) => { p.disabled = true; }); });
      const count = el("p", { class: "pcg-muted" });
      const sync = () => { picks.forEach((p) => { p.disabled = true; }); play.textContent = "Play three tones"; count.textContent = `Round ${round + 1} of ${ROUNDS}`; };
      sync();
      const noise = button("Play the noise", () => { noise.disabled = true; PCG.volumeNoise(-23, () => { noise.disabled = false; }); });
      show(el("div", { class: "pcg-card listen-card" }, heading("Set your sound"),
        el("p", { text: "1. Play the noise and set the volume so that it is as loud as someone talking beside you. Then leave the volume alone." }), el("div", {}, noise),
        el("p", { text: "2. With headphones on, play three tones. Which one is the softest?" }), count,
        el("div", { class: "listen-row" }, play, ...picks),
        el("div", {}, button("I use loudspeakers", () => finish("speakers")))));
    }

    // ---- a question ----------------------------------------------------------------------------
    async function advance(next) {
      if (player) player.stop();
      player = null;
      if (next.state === "finished") { finished(next); return; }
      if (!next.checked) { check(next); return; }
      question = next; answer = null; parts = {};
      show(el("p", { class: "pcg-muted", role: "status", text: "Fetching the clips…" }));
      try {
        const buffers = await Promise.all(next.slots.map((slot) => fetchClip(slot.clip)));
        heard = restoreHeard();
        player = PCG.blindPlayer(new Map(next.slots.map((slot, i) => [slot.label, buffers[i]])), heard, paint);
        say(""); draw();
      } catch (error) { show(button("Try again", () => advance(next))); trouble("The clips could not be fetched: " + error.message + "."); }
    }
    async function fetchClip(token) {
      for (let attempt = 0; ; attempt++) {
        try {
          const answerOf = await fetch(`${base}/clips/${token}`);
          if (answerOf.ok) return await new OfflineAudioContext(1, 1, 48000).decodeAudioData(await answerOf.arrayBuffer());
          if (answerOf.status < 500) throw new Refusal("the server no longer has them");
        } catch (error) { if (error instanceof Refusal || error instanceof DOMException || attempt > 8) throw error; }
        trouble("The server does not answer; trying again…");
        await wait(Math.min(8000, 400 * 2 ** attempt));
      }
    }
    const heardKey = () => `pcg-heard-${study}-${listener}-${question.trial}`;
    function restoreHeard() {
      try { return Object.fromEntries(Object.entries(JSON.parse(session.get(heardKey()) || "{}")).map(([k, v]) => [k, Uint8Array.from(v, Number)])); } catch { return {}; }
    }
    function keepHeard() { session.set(heardKey(), JSON.stringify(Object.fromEntries(Object.entries(heard).map(([k, v]) => [k, v.join("")])))); }
    const ready = (slot) => player.seconds(slot.label) >= slot.required - 1e-3;
    const allHeard = () => question.slots.every(ready);

    function draw() {
      const { slots, kind } = question;
      parts.clips = slots.map((slot, i) => el("button", { type: "button", class: "listen-clip", "aria-pressed": "false", onclick: () => player.play(slot.label) },
        el("i"), el("b", { text: slot.label === "R" ? "Reference" : slot.label }), el("small", { text: "not heard yet" }), kind === "mos" ? null : el("kbd", { text: i + 1 })));
      parts.play = button("Play", () => player.toggle(), { class: "pcg-btn primary listen-play" });
      parts.loop = button("Loop", () => player.loop(), { "aria-pressed": "false" });
      parts.bar = el("input", { type: "range", min: 0, max: player.duration, step: 0.01, value: 0, "aria-label": "Playhead", oninput: (e) => player.seek(Number(e.target.value)) });
      parts.time = el("span", { class: "listen-time" });
      parts.answers = ANSWERS[kind]();
      parts.confirm = button("Confirm", vote, { class: "pcg-btn primary", disabled: true });
      parts.hint = el("span", { class: "pcg-muted", role: "status" });
      show(el("div", { class: "pcg-card listen-card" },
        el("div", { class: "listen-progress", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": question.total, "aria-valuenow": question.done, "aria-label": "Progress" }, el("i", { style: { width: `${(100 * question.done) / question.total}%` } })),
        el("p", { class: "pcg-muted", text: (question.practice ? "Practice, does not count. " : "") + `Question ${question.done + 1} of ${question.total}` }),
        heading(question.question), question.text ? el("p", { class: "listen-text", text: "“" + question.text + "”" }) : null,
        el("div", { class: "listen-clips" }, parts.clips),
        el("div", { class: "listen-transport" }, parts.play, parts.loop, parts.bar, parts.time),
        parts.answers, el("div", { class: "listen-row" }, parts.confirm, parts.hint),
        el("p", { class: "pcg-muted listen-keys", text: KEYS[kind] })));
      paint();
    }
    const KEYS = {
      ab: "Keys: 1 2 hear A or B, space plays and pauses, L loops, arrows seek, shift + A or B (T: no preference) answers, Enter confirms.",
      abx: "Keys: 1 2 3 hear A, B or X, space plays and pauses, L loops, arrows seek, shift + A or B answers, Enter confirms.",
      mos: "Keys: space plays and pauses, L loops, arrows seek, 1 to 5 score, the dot adds a half, Enter confirms.",
      mushra: "Keys: 1 2 3 … hear a clip, space plays and pauses, L loops; Tab and the arrows move the sliders, Enter confirms.",
    };
    const choices = (options) => el("div", { class: "listen-answers", role: "radiogroup", "aria-label": "Your answer" }, options.map(([value, label, small]) =>
      el("button", { type: "button", role: "radio", "aria-checked": "false", class: "listen-answer", "data-value": value, disabled: true, onclick: () => pick(value) }, el("b", { text: label }), small ? el("small", { text: small }) : null)));
    const ANSWERS = {
      ab: () => choices([["A", "My answer: A"], ["B", "My answer: B"], ...(question.allow_tie ? [["tie", "No preference"]] : [])]),
      abx: () => choices([["A", "X is A"], ["B", "X is B"]]),
      mos: () => { const box = choices(Array.from({ length: 9 }, (_, i) => 1 + i / 2).map((v) => [v, String(v), MOS[v]])); box.classList.add("mos"); return box; },
      mushra: () => el("div", { class: "listen-sliders" }, el("p", { class: "pcg-muted", text: "0 bad, 25 poor, 50 fair, 75 good, 100 as good as the reference. One clip is the reference itself." }), question.slots.filter((s) => s.label !== "R").map((slot) => {
        const out = el("output", { text: "–" });
        return el("label", { class: "pcg-slider" }, el("span", { text: slot.label }),
          el("input", { type: "range", min: 0, max: 100, step: 1, value: 50, disabled: true, "data-value": slot.label, "aria-label": `Score of ${slot.label}, 0 bad to 100 excellent`,
            oninput: (e) => { answer = answer || { scores: {} }; answer.scores[slot.label] = Number(e.target.value); out.textContent = e.target.value; player.choose(slot.label); paint(); } }), out);
      })),
    };
    function pick(value) {
      if (!allHeard() || busy) return;
      answer = question.kind === "mos" ? { score: Number(value) } : { choice: value };
      paint();
    }
    const complete = () => answer && (question.kind !== "mushra" || question.slots.every((s) => s.label === "R" || s.label in answer.scores));

    function paint() {
      if (!player || !parts.clips) return;
      const state = player.state, open = allHeard();
      question.slots.forEach((slot, i) => {
        const node = parts.clips[i], done = ready(slot);
        node.setAttribute("aria-pressed", String(state.active === slot.label && state.playing));
        node.classList.toggle("on", state.active === slot.label);
        node.querySelector("i").style.width = `${Math.min(100, (100 * player.seconds(slot.label)) / slot.required)}%`;
        node.querySelector("small").textContent = done ? "heard" : "not heard yet";
        node.classList.toggle("done", done);
      });
      parts.play.textContent = state.playing ? "Pause" : "Play";
      parts.loop.setAttribute("aria-pressed", String(state.looping));
      if (document.activeElement !== parts.bar || state.playing) parts.bar.value = state.position;
      parts.time.textContent = `${PCG.clock(state.position)} / ${PCG.clock(player.duration)}`;
      const chosen = answer ? String(answer.choice ?? answer.score ?? "") : "";
      parts.answers.querySelectorAll("[data-value]").forEach((node) => {
        node.disabled = !open || busy;
        if (node.getAttribute("role") === "radio") node.setAttribute("aria-checked", String(node.dataset.value === chosen));
      });
      parts.confirm.disabled = !open || !complete() || busy;
      const left = question.slots.filter((slot) => !ready(slot)).map((slot) => (slot.label === "R" ? "the reference" : slot.label));
      parts.hint.textContent = busy ? "Saving…" : left.length ? `Listen to ${left.join(", ")} to the end to answer.` : complete() ? "" : "Choose your answer.";
      if (!state.playing) keepHeard();
    }

    async function vote() {
      if (busy || !player || !complete() || !allHeard()) return;
      busy = true; player.stop(); paint();
      const seconds = Object.fromEntries(question.slots.map((slot) => [slot.label, player.seconds(slot.label)]));
      try {
        const result = await ask(url("/votes"), { listener, trial: question.trial, answer, heard: seconds }, trouble);
        session.drop(heardKey()); say("");
        if (result.names) revealed(result); else await advance(result.next);
      } catch (error) {
        if (error.status === 409 && /already/.test(error.message)) { busy = false; await open(); return; }
        trouble(error.message);
      } finally { busy = false; paint(); }
    }
    const nameList = (names) => Object.entries(names).map(([label, name]) => `${label === "R" ? "Reference" : label}: ${name}`).join(", ");
    function revealed(result) {
      const go = button("Next", () => advance(result.next), { class: "pcg-btn primary" });
      player = null; parts = {};
      show(el("div", { class: "pcg-card listen-card" }, heading("Saved"), el("p", { class: "listen-names", text: nameList(result.names) }), el("div", {}, go)));
      go.focus();
    }
    function finished(end) {
      question = null;
      const spoken = (a) => (a.choice ? (a.choice === "tie" ? "no preference" : a.choice) : a.score ?? Object.entries(a.scores).map(([k, v]) => `${k} ${v}`).join(", "));
      const rows = (end.reveal || []).map((r) => el("tr", {}, el("th", { scope: "row", text: (r.practice ? "practice" : r.trial + 1) }), el("td", { text: r.text }), el("td", { text: nameList(r.names) }), el("td", { text: spoken(r.answer) })));
      show(el("div", { class: "pcg-card listen-card" }, heading("Thank you"), el("p", { text: "All your answers are saved. You can close this page." }),
        rows.length ? el("details", {}, el("summary", { text: "What you heard" }), el("div", { class: "pcg-scroll" }, el("table", { class: "pcg-table listen-table" },
          el("thead", {}, el("tr", {}, ["Question", "Text", "Clips", "Your answer"].map((t) => el("th", { scope: "col", text: t })))), el("tbody", {}, rows)))) : null));
      api.trigger("finished", { study });
    }

    document.addEventListener("keydown", (e) => {
      if (!player || !question || !PCG.visible(root) || PCG.typing(e) || e.ctrlKey || e.metaKey || e.altKey) return;
      const focus = document.activeElement, inside = !focus || focus === document.body || root.contains(focus);
      if (!inside) return;
      const key = e.key.toLowerCase(), onButton = focus && focus.tagName === "BUTTON", range = focus && focus.type === "range";
      if (key === " " && !onButton) player.toggle();
      else if (key === "enter" && (!onButton || focus.getAttribute("role") === "radio")) vote();
      else if (key === "l") player.loop();
      else if (question.kind === "mos" && /^[1-5]$/.test(key)) pick(Number(key));
      else if (question.kind === "mos" && (key === "." || key === ",") && answer) pick(answer.score % 1 || answer.score === 5 ? answer.score : answer.score + 0.5);
      else if (/^[1-9]$/.test(key)) { const slot = question.slots[Number(key) - 1]; if (slot) player.play(slot.label); }
      else if (e.shiftKey && /^[ab]$/.test(key) && /^abx?$/.test(question.kind)) pick(key.toUpperCase());
      else if (key === "t" && question.allow_tie) pick("tie");
      else if ((key === "arrowleft" || key === "arrowright") && !range) player.seek(player.state.position + (key === "arrowleft" ? -0.5 : 0.5));
      else return;
      e.preventDefault(); e.stopPropagation();
    });
    addEventListener("pagehide", () => { if (player) { player.stop(); keepHeard(); } });
    root.pcgListen = { get player() { return player; }, get question() { return question; } };
    if (api.watch) api.watch("value", open);
    open();
  };
})();
