/* The eight-token world's arithmetic: groups, coarse probabilities, the three rules' exact laws and single steps. */
(() => {
  "use strict";
  const PCG = window.PCG;
  const N = 8;
  const sum = (a) => a.reduce((x, y) => x + y, 0);
  const normalise = (a) => { const s = sum(a); return s > 0 ? a.map((x) => x / s) : a.map(() => 1 / a.length); };
  const tv = (a, b) => 0.5 * sum(a.map((x, i) => Math.abs(x - b[i])));
  const range = (n) => Array.from({ length: n }, (_, i) => i);

  /* links: N x N booleans, symmetric, true on the diagonal; so S(t) and G(t) are the same set. */
  function fromTheta(angles, theta) {
    return range(N).map((i) => range(N).map((j) =>
      i === j || Math.cos(((angles[i] - angles[j]) * Math.PI) / 180) > theta));
  }
  const members = (links, k) => range(N).filter((t) => links[k][t]);
  function coarse(probs, links, split = true) {
    const size = range(N).map((t) => members(links, t).length);
    return range(N).map((k) => sum(members(links, k).map((t) => probs[t] / (split ? size[t] : 1))));
  }
  const residual = (draft, target) => {
    const r = target.map((q, i) => Math.max(0, q - draft[i]));
    return sum(r) > 0 ? normalise(r) : target.slice();
  };

  /* Exact laws of the emitted token (and of the label for the group rule), and the acceptance rate. */
  const laws = {
    sd(draft, target) {
      const kept = draft.map((p, i) => Math.min(p, target[i]));
      return { alpha: sum(kept), token: target.slice() };
    },
    ssd(draft, target, links, beta) {
      const kept = draft.map((p, i) => p * Math.min(1, (p > 0 ? Math.min(1, target[i] / p) : 1) + beta));
      const alpha = sum(kept), rest = residual(draft, target);
      return { alpha, token: kept.map((k, i) => k + (1 - alpha) * rest[i]) };
    },
    pcg(draft, target, links) {
      const size = range(N).map((t) => members(links, t).length);
      const pc = coarse(draft, links), qc = coarse(target, links);
      const low = pc.map((p, k) => Math.min(p, qc[k]));
      const token = new Array(N).fill(0);
      for (let k = 0; k < N; k++) for (const t of members(links, k)) {
        if (pc[k] > 0) token[t] += (low[k] * draft[t]) / size[t] / pc[k];
        if (qc[k] > 0) token[t] += (Math.max(0, qc[k] - pc[k]) * target[t]) / size[t] / qc[k];
      }
      return { alpha: sum(low), token, label: pc.map((p, k) => low[k] + Math.max(0, qc[k] - p)), pc, qc };
    },
  };

  const pick = (probs, u) => {
    let total = 0;
    for (let i = 0; i < probs.length; i++) { total += probs[i]; if (u < total && probs[i] > 0) return i; }
    return probs.reduce((best, x, i) => (x > probs[best] ? i : best), 0);
  };

  /* One verified position. `stream` gives uniforms; the draft token and u are shared by all rules. */
  function step(rule, world, draftToken, u, random) {
    const { draft, target, links, beta } = world;
    const p = draft[draftToken], q = target[draftToken];
    if (rule !== "pcg") {
      const bar = Math.min(1, q / p) + (rule === "ssd" ? beta : 0);
      const accepted = u < bar;
      const rest = residual(draft, target);
      return { rule, accepted, p, q, bar, token: accepted ? draftToken : pick(rest, random()), trials: [] };
    }
    const owners = members(links, draftToken);
    const label = owners[Math.min(owners.length - 1, Math.floor(random() * owners.length))];
    const pc = coarse(draft, links), qc = coarse(target, links);
    const accepted = u * pc[label] < qc[label];
    const out = { rule, accepted, p, q, owners, label, pc: pc[label], qc: qc[label], bar: qc[label] / pc[label], trials: [] };
    if (accepted) return { ...out, token: draftToken, newLabel: label };
    for (let i = 0; i < 200; i++) {
      const t = pick(target, random()), set = members(links, t);
      const k = set[Math.min(set.length - 1, Math.floor(random() * set.length))], v = random();
      const pass = v * qc[k] < qc[k] - pc[k];
      out.trials.push({ token: t, label: k, u: v, chance: Math.max(0, 1 - pc[k] / qc[k]), pass });
      if (pass) return { ...out, token: t, newLabel: k };
    }
    return { ...out, token: pick(target, random()), newLabel: null };
  }

  function simulate(rule, world, draws, seed) {
    const random = PCG.random(seed), token = new Array(N).fill(0), label = new Array(N).fill(0);
    let kept = 0, trials = 0;
    for (let i = 0; i < draws; i++) {
      const t = pick(world.draft, random()), u = random();
      const s = step(rule, world, t, u, random);
      token[s.token] += 1 / draws; kept += s.accepted ? 1 : 0; trials += s.trials.length;
      if (s.newLabel !== undefined && s.newLabel !== null) label[s.newLabel] += 1 / draws;
    }
    return { token, label, alpha: kept / draws, trialsPerRejection: kept < draws ? trials / (draws - kept) : 0 };
  }

  PCG.toy = { N, sum, normalise, tv, range, fromTheta, members, coarse, residual, laws, pick, step, simulate };
})();
