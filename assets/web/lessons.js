/* The three guided lessons: each a list of steps that set up the world and say what to look at. */
(() => {
  "use strict";
  const clusters = [0, 24, 48, 120, 144, 168, 240, 264];
  const chain = [0, 38, 76, 114, 152, 200, 245, 300];
  const share = (a) => window.PCG.toy.normalise(a);
  const split = {
    draft: share([30, 6, 4, 8, 4, 4, 26, 18]), target: share([6, 28, 10, 4, 8, 4, 15, 25]),
    angles: clusters, theta: 0.6, beta: 0.4,
  };
  window.PCG.lessons = [
    {
      title: "Why exact matching wastes speech",
      steps: [
        { world: split, look: "bars", text: "Two models look at the same sentence and say what comes next. The small draft (striped) favours token A, the large target (solid) favours B. Taken token by token they disagree a lot." },
        { world: split, look: "groups", text: "But A, B and C sound alike: in the embedding table they lie close together, so a line joins them. As sounds, the two models nearly agree. The exact test cannot see that; the group test can." },
        { world: split, look: "steps", seed: 5, stage: 4, text: "One draw, judged by three rules with the same random number. The exact test (SD) throws the draft token away although the target wanted the same sound. Press “Another draw” a few times and count." },
        { world: split, look: "laws", text: "Over all draws: the exact test keeps Σ min(P, Q) of the drafts, the group test Σ min(P_c, Q_c), and that can never be less. Every token kept is a step of the large model saved. Press “Draw 10,000” to see the formula hold." },
      ],
    },
    {
      title: "What the equal split buys",
      steps: [
        { world: { draft: share([20, 10, 8, 22, 8, 12, 12, 8]), target: share([8, 16, 12, 10, 20, 8, 10, 16]), angles: chain, theta: 0.7, beta: 0.4 }, look: "groups", text: "Similarity is not all-or-nothing: B is close to A and to C, but A and C are far apart. So every token gets a group of its own, and groups overlap: B belongs to three of them." },
        { world: null, look: "split", naive: true, text: "Count every token in full in each group it belongs to and the “probabilities” of the groups add up to far more than 1. That is not a distribution, and no sampling rule built on it can promise anything." },
        { world: null, look: "split", naive: false, text: "Split each token's probability equally among its groups: a token in three groups gives a third to each. Now P_c and Q_c both add up to exactly 1, whatever the overlaps." },
        { world: null, look: "laws", tab: "label", text: "That is what the guarantee needs. Keep with probability min(1, Q_c/P_c), else draw from what Q_c has left: the label's law is min + remainder = Q_c, exactly. Look at the “label” panel: the difference is 0." },
      ],
    },
    {
      title: "What group-level acceptance does not promise",
      steps: [
        { world: split, look: "laws", tab: "token", text: "The promise is about sounds, not tokens. Inside a group the draft's own preference decides, so the law of single tokens moves away from Q. Its distance is printed for each rule, and for the group rule it is not 0." },
        { world: { ...split, theta: 0.999 }, look: "groups", text: "Move theta to 1: no token sounds like any other, every group has one member, and the group rule is the exact rule: the same tokens from the same random numbers, and no drift." },
        { world: { ...split, theta: -1 }, look: "groups", text: "Move it to −1: everything counts as one sound. Nothing is ever rejected and the output simply follows the draft. Good groups lie between: tight enough to be one sound, wide enough to save work." },
        { world: split, look: "laws", tab: "token", text: "The lenient rule (SSD) also keeps more, by adding beta to every acceptance chance. It keeps tokens of the wrong sound as gladly as those of the right one, and promises nothing about either." },
        { world: split, look: "laws", tab: "label", text: "And the promise holds for one step, given what was said before. Kept drafts change what follows. Whether the result still sounds right is a question for the ear: that is what the other tabs are for." },
      ],
    },
  ];
  window.PCG.freeWorld = split;
})();
