/* The blind player: clips of one question on one playhead, and an exact account of which parts of each were played.
   It draws no waveform: a picture would tell the clips apart. */
(() => {
  "use strict";
  const PCG = window.PCG, FADE = 0.01, BIN = 0.02;

  /* labels: letters; clips: Map letter -> AudioBuffer of equal lengths; heard: {letter: Uint8Array} or empty, kept by the caller. */
  PCG.blindPlayer = (clips, heard, onChange) => {
    const labels = [...clips.keys()], duration = Math.max(...[...clips.values()].map((b) => b.duration));
    const bins = Math.max(1, Math.ceil(duration / BIN));
    for (const label of labels) if (!heard[label] || heard[label].length !== bins) heard[label] = new Uint8Array(bins);
    let active = labels[0], running = null, offset = 0, looping = false, timer = 0, marked = 0;

    function position() {
      if (!running) return offset;
      const at = running.offset + Math.max(0, PCG.audio().currentTime - running.at);
      return looping ? at % duration : Math.min(at, duration);
    }
    function mark() {                        // every bin the playhead crossed since the last look counts for the active clip
      if (!running || PCG.audio().state !== "running") return;
      const now = position(), from = now < marked ? 0 : marked;
      if (now < marked) fill(marked, duration);
      fill(from, now);
      marked = now;
    }
    function fill(from, to) {
      const last = to >= duration - 0.001 ? bins : Math.floor(to / BIN);
      for (let i = Math.floor(from / BIN); i < last; i++) heard[active][i] = 1;
    }
    function tick() { mark(); onChange(); }
    function stop() {
      if (!running) return;
      mark();
      offset = position();
      const now = PCG.audio().currentTime;
      running.nodes.forEach(({ source, gain }) => {
        gain.gain.cancelScheduledValues(now); gain.gain.setTargetAtTime(0, now, FADE / 3);
        source.onended = null; source.stop(now + 3 * FADE);
      });
      running = null; clearInterval(timer);
    }
    function start() {
      const ctx = PCG.audio(), from = offset >= duration - 0.02 ? 0 : offset, at = ctx.currentTime + 0.03;
      const nodes = new Map(labels.map((label) => {
        const source = ctx.createBufferSource(), gain = ctx.createGain();
        source.buffer = clips.get(label); source.loop = looping;
        source.connect(gain).connect(ctx.destination);
        gain.gain.value = 0;
        if (label === active) { gain.gain.setValueAtTime(0, at); gain.gain.linearRampToValueAtTime(1, at + FADE); }
        source.start(at, from);
        return [label, { source, gain }];
      }));
      running = { nodes, at, offset: from }; marked = from;
      const mine = running;
      nodes.get(labels[0]).source.onended = () => {
        if (running !== mine) return;
        fill(marked, duration);
        running = null; offset = 0; clearInterval(timer); onChange();
      };
      timer = setInterval(tick, 40);
    }
    const restart = (change) => { const was = !!running; stop(); change(); if (was) start(); onChange(); };
    return {
      labels, duration,
      toggle() { if (running) stop(); else start(); onChange(); },
      play(label) { if (label === active && running) return; this.choose(label); if (!running) { offset = 0; start(); } onChange(); },
      choose(label) {
        if (!clips.has(label)) return;
        mark();
        active = label;
        if (running) {
          const now = PCG.audio().currentTime;
          running.nodes.forEach(({ gain }, key) => {
            gain.gain.cancelScheduledValues(now); gain.gain.setValueAtTime(gain.gain.value, now);
            gain.gain.linearRampToValueAtTime(key === label ? 1 : 0, now + FADE);
          });
        }
        onChange();
      },
      seek(seconds) { restart(() => { offset = PCG.clamp(seconds, 0, duration - 0.01); }); },
      loop() { restart(() => { looping = !looping; }); },
      stop() { stop(); onChange(); },
      seconds(label) { return Math.min(duration, heard[label].reduce((sum, bin) => sum + bin, 0) * BIN); },
      get state() { return { playing: !!running, position: position(), active, looping }; },
    };
  };

  /* Three tones, one 6 dB softer, another in opposite phase on the two ears (Woods et al. 2017). Over loudspeakers the opposite
     tone cancels and seems the softest; over headphones the soft one does. Returns the number (0..2) of the soft tone. */
  PCG.toneTriplet = (done) => {
    const ctx = PCG.audio(), order = [0, 1, 2].sort(() => crypto.getRandomValues(new Uint32Array(1))[0] % 2 - 0.5);
    const [soft, opposite] = order, length = 0.7, gap = 0.35, rate = ctx.sampleRate;
    const buffer = ctx.createBuffer(2, Math.ceil((3 * length + 2 * gap) * rate), rate);
    for (let k = 0; k < 3; k++) {
      const at = Math.round(k * (length + gap) * rate), n = Math.round(length * rate), level = k === soft ? 0.1 : 0.2;
      for (let i = 0; i < n; i++) {
        const ramp = Math.min(1, i / (0.1 * rate), (n - i) / (0.1 * rate));
        const x = level * ramp * Math.sin((2 * Math.PI * 200 * i) / rate);
        buffer.getChannelData(0)[at + i] = x;
        buffer.getChannelData(1)[at + i] = k === opposite ? -x : x;
      }
    }
    const source = ctx.createBufferSource();
    source.buffer = buffer; source.connect(ctx.destination); source.onended = done; source.start();
    return soft;
  };

  /* A second of speech-shaped noise at the level of the clips, to set the volume by. */
  PCG.volumeNoise = (lufs, done) => {
    const ctx = PCG.audio(), rate = ctx.sampleRate, n = Math.round(1.5 * rate), buffer = ctx.createBuffer(1, n, rate), data = buffer.getChannelData(0);
    let slow = 0, power = 0;
    for (let i = 0; i < n; i++) { slow = 0.93 * slow + 0.07 * (2 * Math.random() - 1); data[i] = slow; power += slow * slow; }
    const gain = Math.pow(10, lufs / 20) / Math.sqrt(power / n);
    for (let i = 0; i < n; i++) data[i] *= gain * Math.min(1, i / (0.05 * rate), (n - i) / (0.05 * rate)) * (0.6 + 0.4 * Math.sin((2 * Math.PI * 4 * i) / rate));
    const source = ctx.createBufferSource();
    source.buffer = buffer; source.connect(ctx.destination); source.onended = done; source.start();
  };
})();
