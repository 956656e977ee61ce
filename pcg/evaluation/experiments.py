"""The experiments: what each compares, as arms. A plan may first look at a few rows of the model
to match systems at equal acceptance; what it found is part of the plan, so a resumed run keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcg.acceptance import REGISTRY
from pcg.errors import PcgError
from pcg.evaluation.arms import Arm, Options, utterance_seed
from pcg.evaluation.laws import (
    Rows,
    adjacency,
    as_rows,
    coarse,
    overlap,
    reachable,
    solve_beta,
    solve_theta,
)
from pcg.evaluation.manifest import Utterance
from pcg.evaluation.recordings import debian_utterances, teacher_utterances
from pcg.evaluation.replica import Replica

SHARES = (0.0, 0.25, 0.5, 0.75, 0.95)
MAIN = ("target", "sd", "ssd", "pcg")  # every other registered rule is a rival
CALIBRATION_UTTERANCES = 4
CALIBRATION_POSITIONS = 800


@dataclass
class Planner:
    """What a plan may ask: the model, the options and rows of a few calibration utterances."""

    replica: Replica
    options: Options
    utterances: list[Utterance]
    notes: dict[str, Any]
    _rows: tuple[Rows, Rows] | None = None

    @property
    def theta(self) -> float:
        """The theta asked for, or the model's own."""
        given = self.options.theta
        return float(self.replica.model.default_theta if given is None else given)

    def rows(self) -> tuple[Rows, Rows]:
        """Draft and target rows of exact decoding of the first few utterances."""
        if self._rows is None:
            arm = Arm("sd", "", rule="sd", lookahead=self.options.lookahead)
            found = []
            for utterance in self.utterances[:CALIBRATION_UTTERANCES]:
                seed = utterance_seed(self.options.seed + 1, utterance.id)
                try:
                    found.append(self.replica.probability_rows(utterance, arm, seed))
                except PcgError:
                    continue  # an unusable prompt is reported by its own rows
            if not found:
                raise PcgError("None of the first utterances could be decoded to calibrate on.")
            self._rows = as_rows(
                np.concatenate([draft for draft, _ in found])[:CALIBRATION_POSITIONS],
                np.concatenate([target for _, target in found])[:CALIBRATION_POSITIONS],
            )
        return self._rows

    def pcg_acceptance(self, theta: float, nested: Any = None) -> float:
        """Mean acceptance of PCG on the calibration rows."""
        draft, target = self.rows()
        matrix = adjacency((nested or self.replica.model.groups).at(theta))
        return float(overlap(coarse(draft, matrix), coarse(target, matrix)).mean())

    def matched_beta(self) -> float:
        """SSD's beta at the acceptance of PCG."""
        draft, target = self.rows()
        acceptance = self.pcg_acceptance(self.theta)
        beta = round(solve_beta(draft, target, acceptance), 4)
        self.notes["matched"] = {"acceptance": round(acceptance, 4), "ssd_beta": beta}
        return beta


def table1(p: Planner) -> list[Arm]:
    """Table 1: speed and quality of each acceptance rule."""
    o = p.options
    arms = [
        Arm("target", "Target only", lookahead=0),
        Arm("sd", "SD (exact)", rule="sd", lookahead=o.lookahead),
        Arm(
            "ssd",
            f"SSD, beta {o.beta:g}",
            rule="ssd",
            params={"beta": o.beta},
            lookahead=o.lookahead,
        ),
        _pcg(p, "pcg", p.theta),
    ]
    if not o.rules or "ssd-matched" in o.rules:
        beta = p.matched_beta()
        label = f"SSD, beta {beta:.2f} (PCG's acceptance)"
        params = {"beta": beta}
        arms.append(Arm("ssd-matched", label, rule="ssd", params=params, lookahead=o.lookahead))
    arms += [
        Arm(name, spec.label, rule=name, lookahead=o.lookahead)
        for name, spec in REGISTRY.items()
        if name not in MAIN and (o.rivals or name in o.rules)
    ]
    return [arm for arm in arms if not o.rules or arm.name in o.rules]


def _pcg(p: Planner, name: str, theta: float, groups: str = "embedding", **more: Any) -> Arm:
    label = more.pop("label", f"PCG, theta {theta:.3g}")
    more.setdefault("lookahead", p.options.lookahead)
    return Arm(name, label, rule="pcg", params={"theta": theta}, groups=groups, **more)


def table2(p: Planner) -> list[Arm]:
    """Table 2: tokens swapped inside their groups, with controls at the largest share."""
    arms = [
        _swap(f"group-{share:g}", f"in group, {share:.0%}", p.theta, share, "group")
        for share in SHARES
    ]
    controls = {"shuffled": "wrong groups", "any": "any code"}
    return arms + [
        _swap(f"{control}-{share:g}", f"{text}, {share:.0%}", p.theta, share, control)
        for control, text in controls.items()
        for share in (SHARES[1], SHARES[-1])
    ]


def _swap(name: str, label: str, theta: float, share: float, control: str, **more: Any) -> Arm:
    params = {"theta": theta, "share": share}
    return Arm(name, label, "swap", params=params, control=control, lookahead=0, **more)


def table3(p: Planner) -> list[Arm]:
    """Table 3: groups of embedding and of Mel similarity, at the same acceptance."""
    model = p.replica.model
    if model.mel_groups is None:
        raise PcgError("Table 3 needs Mel groups beside the embedding groups of this model.")
    draft, target = p.rows()
    acceptance = p.pcg_acceptance(p.theta)
    mel_theta, reached = solve_theta(draft, target, model.mel_groups, acceptance)
    p.notes["matched"] = {
        "embedding_theta": round(p.theta, 5),
        "embedding_acceptance": round(acceptance, 4),
        "mel_theta": mel_theta,
        "mel_acceptance": round(reached, 4),
    }
    arms = [
        _pcg(p, "embedding", p.theta, label=f"Embedding groups, theta {p.theta:.3g}"),
        _pcg(p, "mel", mel_theta, "mel", label=f"Mel groups, theta {mel_theta:.3g}"),
    ]
    for name, theta in (("embedding", p.theta), ("mel", mel_theta)):
        label = f"{name} groups, 95 % swapped"
        arms.append(_swap(f"swap-{name}", label, theta, SHARES[-1], "group", groups=name))
    return arms


def figure4(p: Planner) -> list[Arm]:
    """Figure 4: PCG over the lookahead, beside the target alone; only 3 is judged for quality."""
    arms = [Arm("target", "Target only", lookahead=0, judged=False)]
    for g in range(1, 9):
        label = f"lookahead {g}"
        arms.append(_pcg(p, f"pcg-{g}", p.theta, lookahead=g, label=label, judged=g in (1, 3, 8)))
    return arms


def theta(p: Planner) -> list[Arm]:
    """Quality, acceptance and speed against theta, from groups of one to very large ones."""
    nested = p.replica.model.groups
    arms = [
        Arm("target", "Target only", lookahead=0),
        Arm("sd", "SD", rule="sd", lookahead=p.options.lookahead),
    ]
    for size in reachable(nested, (3, 8, 24, 72, 216)):
        value = round(float(nested.calibrate(mean_size=size)), 5)
        arms.append(_pcg(p, f"size-{size}", value, label=f"theta {value:.3g}, mean group {size}"))
    return [*arms, _pcg(p, "default", p.theta, label=f"theta {p.theta:.3g} (default)")]


def drift(p: Planner) -> list[Arm]:
    """Token-law drift of PCG and SSD at equal acceptance, in closed form on exact decoding."""
    return [Arm("drift", "closed forms", "drift", lookahead=p.options.lookahead, judged=False)]


def bundled(p: Planner) -> list[Arm]:
    """The bundled voice as a whole: codec, target, PCG, drafts over lookahead, swaps."""
    o = p.options
    arms = _codec_arms(p)
    arms += [Arm("target", "Target only", lookahead=0), _pcg(p, "pcg", p.theta)]
    shares = (0.0, 0.5, 0.95)
    arms += [
        _swap(f"group-{s:g}", f"in group, {s:.0%}", p.theta, s, "group", first=30) for s in shares
    ]
    beta = p.matched_beta()
    folders = {"": "", **dict(pair.split("=", 1) for pair in o.drafts)}
    for draft_name, folder in folders.items():
        suffix = f"@{draft_name}" if draft_name else ""
        for g in range(1, 6):
            more: dict[str, Any] = {"lookahead": g, "judged": False, "draft": folder, "first": 12}
            arms += [
                Arm(f"sd-{g}{suffix}", f"SD, {g}{suffix}", rule="sd", **more),
                Arm(
                    f"ssd-{g}{suffix}",
                    f"SSD, {g}{suffix}",
                    rule="ssd",
                    params={"beta": o.beta},
                    **more,
                ),
                _pcg(p, f"pcg-{g}{suffix}", p.theta, label=f"PCG, {g}{suffix}", **more),
            ]
    p.notes["ssd_matched_beta"] = beta
    return arms


def _codec_arms(p: Planner) -> list[Arm]:
    """Recordings and their round trip: the teacher's and a real speaker's, where they are."""
    texts = [utterance.text for utterance in p.utterances[:40]]
    sources = {
        "teacher": ("t", teacher_utterances(texts), "hibari-tts is not installed"),
        "real": (
            "d-",
            debian_utterances(40, p.options.seed),
            "asterisk-core-sounds-en-g722 is not",
        ),
    }
    arms = []
    for name, (prefix, utterances, why) in sources.items():
        if not utterances:
            p.notes.setdefault("missing", []).append(f"{name} recordings: {why}")
            continue
        p.utterances.extend(utterances)
        arms += [
            Arm(f"recording-{name}", f"Recordings, {name}", "recording", only=prefix),
            Arm(f"codec-{name}", f"Codec round trip, {name}", "codec", only=prefix),
        ]
    return arms


EXPERIMENTS: dict[str, Callable[[Planner], list[Arm]]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "figure4": figure4,
    "theta": theta,
    "drift": drift,
    "bundled": bundled,
}
