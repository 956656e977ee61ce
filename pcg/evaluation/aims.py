"""What the bundled voice must reach, answered from its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pcg.evaluation.rows import Row
    from pcg.evaluation.summary import Results

AIMS: tuple[tuple[str, str, str, str, float], ...] = (
    (
        "Codec round trip sounds natural (teacher's voice)",
        "codec-teacher",
        "naturalness",
        ">=",
        3.4,
    ),
    ("Codec round trip keeps the voice", "codec-teacher", "to_original", ">=", 0.85),
    ("Codec round trip of real recordings is intelligible", "codec-real", "wer", "<=", 0.25),
    ("The target's own speech is intelligible", "target", "wer", "<=", 0.15),
    ("The target ends by itself", "target", "ended", ">=", 0.98),
    ("The target's voice is its prompt's, above other voices", "target", "margin", ">=", 0.05),
)
DIFFERENCES: tuple[tuple[str, str, str, str, float], ...] = (
    ("Codec adds few word errors", "recording-teacher", "codec-teacher", "wer", 0.03),
    ("PCG at the default theta adds few word errors", "target", "pcg", "wer", 0.03),
)


def _aim(results: Results, text: str, arm: str, metric: str, sign: str, bound: float) -> Row | None:
    value = results.interval(arm, metric)
    if value is None:
        return None
    met = value["value"] >= bound if sign == ">=" else value["value"] <= bound
    here = f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}], n = {value['n']}"
    verdict = "reached" if met else "missed"
    return {"claim": text, "paper": f"aim: {sign} {bound:g}", "here": here, "verdict": verdict}


def _growth(
    results: Results, text: str, first: str, second: str, metric: str, bound: float
) -> Row | None:
    outcome = results.compare(first, second, metric)
    if outcome is None:
        return None
    here = f"{outcome.difference:+.4f} [{outcome.low:+.4f}, {outcome.high:+.4f}], n = {outcome.n}"
    verdict = "reached" if outcome.difference <= bound else "missed"
    return {"claim": text, "paper": f"aim: <= {bound:+g}", "here": here, "verdict": verdict}


def _draft(results: Results, suffix: str) -> Row | None:
    """Acceptance of PCG beside SD at lookahead 3 for one draft."""
    outcome = results.compare(f"sd-3{suffix}", f"pcg-3{suffix}", "acceptance")
    if outcome is None:
        return None
    name = suffix.lstrip("@") or "bundled draft"
    here = (
        f"SD {outcome.first:.3f}, PCG {outcome.second:.3f}: {outcome.difference:+.3f} "
        f"[{outcome.low:+.3f}, {outcome.high:+.3f}]"
    )
    verdict = "reached" if outcome.low > 0 else "missed"
    text = f"PCG accepts more than SD ({name}, lookahead 3)"
    return {"claim": text, "paper": "aim: more", "here": here, "verdict": verdict}


def aims(results: Results) -> list[Row | None]:
    """Every aim of the bundled voice that its rows can answer."""
    suffixes = sorted({name[4:] for name in results.arms if name.startswith("sd-3")})
    return [
        *(_aim(results, *aim) for aim in AIMS),
        *(_growth(results, *difference) for difference in DIFFERENCES),
        *(_draft(results, suffix) for suffix in suffixes),
    ]
