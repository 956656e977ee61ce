"""The paper's claims, each tested on the rows at hand and answered plainly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pcg.evaluation.aims import aims

if TYPE_CHECKING:
    from pcg.evaluation.rows import Row
    from pcg.evaluation.summary import Results

LEVEL = 0.05


def claims(experiment: str, results: Results, summary: Row) -> list[Row]:
    """Claims about an experiment: what the paper found, what was found here, the verdict."""
    tests: dict[str, Callable[[Results, Row], list[Row | None]]] = {
        "table1": _table1,
        "table2": _table2,
        "table3": _table3,
        "figure4": _figure4,
        "drift": _drift,
        "bundled": lambda results, summary: aims(results),
    }
    found = tests[experiment](results, summary) if experiment in tests else []
    return [claim for claim in found if claim is not None]


def _claim(text: str, paper: str, here: str, verdict: str) -> Row:
    return {"claim": text, "paper": paper, "here": here, "verdict": verdict}


def _difference(
    results: Results, text: str, paper: str, pair: tuple[str, str], metric: str, sign: int
) -> Row | None:
    """Claim that ``second - first`` has ``sign`` in ``metric``."""
    outcome = results.compare(*pair, metric)
    if outcome is None:
        return None
    here = (
        f"{pair[1]} - {pair[0]}: {outcome.difference:+.4f} "
        f"[{outcome.low:+.4f}, {outcome.high:+.4f}], p = {outcome.p_value:.3f}, n = {outcome.n}"
    )
    if outcome.p_value > LEVEL:
        verdict = "not decided (no significant difference)"
    else:
        verdict = "agrees" if outcome.difference * sign > 0 else "contradicts"
    return _claim(text, paper, here, verdict)


def _within(
    results: Results, text: str, paper: str, pair: tuple[str, str], metric: str, margin: float
) -> Row | None:
    """Claim that ``second - first`` lies within ``margin`` of 0."""
    outcome = results.compare(*pair, metric)
    if outcome is None:
        return None
    here = f"{outcome.difference:+.4f} [{outcome.low:+.4f}, {outcome.high:+.4f}], n = {outcome.n}"
    if max(abs(outcome.low), abs(outcome.high)) <= margin:
        verdict = "agrees"
    elif abs(outcome.difference) <= margin:
        verdict = "agrees in value, interval wider than the margin"
    else:
        verdict = "contradicts"
    return _claim(text, paper, here, verdict)


def _table1(results: Results, summary: Row) -> list[Row | None]:
    return [
        _difference(
            results,
            "PCG accepts more draft tokens than SD",
            "speed-up 0.98 to 1.4, i.e. acceptance about .36 to .60",
            ("sd", "pcg"),
            "acceptance",
            +1,
        ),
        _difference(
            results,
            "At the same acceptance PCG makes fewer word errors than SSD",
            "WER 13.8 against 18.5, p = 0.039",
            ("ssd-matched", "pcg"),
            "wer",
            -1,
        ),
        _difference(
            results,
            "PCG sounds more natural than SSD at the same acceptance",
            "NMOS 4.09 against 3.78 (people; here DistillMOS)",
            ("ssd-matched", "pcg"),
            "naturalness",
            +1,
        ),
        _within(
            results,
            "PCG keeps the voice of exact decoding (within .02)",
            "Sim-O 43.7 and 43.7",
            ("target", "pcg"),
            "similarity",
            0.02,
        ),
        _within(
            results,
            "PCG's word errors stay near the target's (within 3 points)",
            "13.8 against 11.1 with SD",
            ("target", "pcg"),
            "wer",
            0.03,
        ),
    ]


def _table2(results: Results, summary: Row) -> list[Row | None]:
    share = summary["arms"][-1]
    biggest = next((a for a in summary["arms"] if a["name"] == "group-0.95"), share)
    realised = biggest.get("realised", {}).get("value")
    where = "" if realised is None else f" ({realised:.1%} swapped)"
    return [
        _within(
            results,
            f"Swapping inside groups hardly changes the words{where}",
            "91.4 % swapped: WER +0.007",
            ("group-0", "group-0.95"),
            "wer",
            0.03,
        ),
        _within(
            results,
            f"Swapping inside groups keeps the voice{where}",
            "91.4 % swapped: similarity -0.027",
            ("group-0", "group-0.95"),
            "similarity",
            0.05,
        ),
        _difference(
            results,
            "Groups of the same size but wrong members do more harm",
            "not in the paper: our control",
            ("group-0.95", "shuffled-0.95"),
            "wer",
            +1,
        ),
        _difference(
            results,
            "Any code in place of a group member does more harm",
            "not in the paper: our control",
            ("group-0.95", "any-0.95"),
            "wer",
            +1,
        ),
    ]


def _table3(results: Results, summary: Row) -> list[Row | None]:
    return [
        _difference(
            results,
            "Embedding groups make fewer word errors than Mel groups at the same acceptance",
            "WER 12.6 against 13.9",
            ("mel", "embedding"),
            "wer",
            -1,
        ),
        _difference(
            results,
            "Swapping inside embedding groups harms less than inside Mel groups",
            "not in the paper",
            ("swap-mel", "swap-embedding"),
            "wer",
            -1,
        ),
    ]


def _figure4(results: Results, summary: Row) -> list[Row | None]:
    kind = "speedup" if summary["timing"]["own_device"] else "cpu_speedup"
    speeds = {a["name"]: a[kind]["value"] for a in summary["arms"] if a.get(kind)}
    speeds.pop("target", None)
    if not speeds:
        return []
    best = max(speeds, key=lambda name: speeds[name])
    here = ", ".join(f"{name.split('-')[1]}: {value:.2f}x" for name, value in speeds.items())
    verdict = "agrees" if best == "pcg-3" else "contradicts"
    text = "Lookahead 3 is the fastest"
    return [_claim(text, "lookahead 3 is best", f"{here} ({kind}); best {best}", verdict)]


def _drift(results: Results, summary: Row) -> list[Row | None]:
    points = summary["drift"].get("points", [])
    if not points:
        return []
    token = "At equal acceptance PCG's token law is nearer to the target's than SSD's"
    group = "At equal acceptance PCG's emitted groups are nearer to the target's than SSD's"
    paper = "claims better quality at equal speed, not a nearer law"
    bound = max(abs(point["ssd_token_drift"] - point["least"]) for point in points)
    note = f"; SSD is within {bound:.4f} of the least any rule can have at its acceptance"
    return [
        _claim(token, paper, _sides(points, "token") + note, _verdict(points, "token")),
        _claim(group, "the label law is exact", _sides(points, "group"), _verdict(points, "group")),
    ]


def _sides(points: list[Row], kind: str) -> str:
    less = sum(point[kind]["high"] < 0 for point in points)
    more = sum(point[kind]["low"] > 0 for point in points)
    middle = points[len(points) // 2]
    return (
        f"less at {less}, more at {more} of {len(points)} thetas; at mean group size "
        f"{middle['mean_group_size']:g}: PCG {middle[f'pcg_{kind}_drift']:.3f}, "
        f"SSD {middle[f'ssd_{kind}_drift']:.3f}"
    )


def _verdict(points: list[Row], kind: str) -> str:
    if all(point[kind]["high"] < 0 for point in points):
        return "agrees"
    if all(point[kind]["low"] > 0 for point in points):
        return "contradicts"
    return "mixed"
