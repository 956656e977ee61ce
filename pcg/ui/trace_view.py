"""Rounds and traces as plain data for the timeline, the map's path and the lanes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

KINDS = ("bonus", "residual", "fallback")


def number(value: Any, digits: int = 6) -> float | None:
    """A JSON-safe float: None for None, NaN and infinities."""
    if value is None:
        return None
    value = float(value)
    return round(value, digits) if math.isfinite(value) else None


def judgement_row(judgement: Any) -> list[Any]:
    """One judgement in the timeline's column order (see `J` in `assets/web/timeline.js`)."""
    ratio = number(judgement.ratio)
    return [
        judgement.position,
        judgement.token,
        number(judgement.draft_prob, 8),
        number(judgement.target_prob, 8),
        judgement.group,
        judgement.group_size,
        number(judgement.draft_coarse, 8),
        number(judgement.target_coarse, 8),
        number(judgement.u),
        9999.0 if ratio is None else ratio,
        bool(judgement.accepted),
        bool(judgement.exact_accepts),
        judgement.why,
    ]


def round_row(item: Any, offset: int = 0) -> dict[str, Any]:
    """One round; `offset` is the place of its sentence's first token in the whole utterance."""
    verdict = item.verdict
    return {
        "start": item.start + offset,
        "d": list(item.drafted),
        "j": [judgement_row(j) for j in verdict.judgements],
        "next": [verdict.next_token, verdict.next_kind, number(verdict.next_prob, 8)],
        "trials": verdict.trials,
        "e": list(item.emitted),
        "sec": [
            number(item.seconds_draft) or 0.0,
            number(item.seconds_verify) or 0.0,
            number(item.seconds_judge) or 0.0,
        ],
        "end": item.finished,
    }


def rounds_view(rounds: Iterable[Any], n_codes: int) -> list[dict[str, Any]]:
    """All rounds of a trace; the end tokens of all but the last sentence take no place in time."""
    rows = [round_row(item) for item in rounds]
    for row in rows[:-1]:
        if row["e"] and row["e"][-1] >= n_codes:
            row["e"].pop()
            row["j"] = [j for j in row["j"] if not j[10] or j[0] < len(row["e"])]
            row["d"] = row["d"][: len(row["j"])]
    return rows


def header_view(header: Mapping[str, Any], label: str, run: str) -> dict[str, Any]:
    """What the timeline needs of a trace's header."""
    keys = ("rule", "hop", "sample_rate", "n_codes", "seed", "text", "model", "lookahead")
    view = {key: header.get(key) for key in keys}
    text = view.get("text") or ""
    return {**view, "text": str(text)[:300], "label": label, "run": run}


def timeline(trace: Any, label: str, run: str, file: Any = None) -> dict[str, Any]:
    """The timeline's value for a whole trace."""
    return {
        "header": header_view(trace.header, label, run),
        "rounds": rounds_view(trace.rounds, int(trace.header["n_codes"])),
        "summary": plain(trace.summary()),
        "file": file,
        "live": False,
    }


def path_items(
    rounds: Iterable[Mapping[str, Any]], rule: str, n_codes: int
) -> list[dict[str, Any]]:
    """The utterance's way over the map: `{"at", "id", "kind"}` in time order, codes only."""
    items: list[dict[str, Any]] = []
    for row in rounds:
        kept = 0
        for judged in row["j"]:
            place, token, accepted, exact = judged[0], judged[1], judged[10], judged[11]
            if accepted and place < len(row["e"]):
                kind = "exact" if exact or rule != "pcg" else "group"
                kept += 1
            elif accepted:
                continue
            else:
                kind = "rejected"
            items.append({"at": row["start"] + place, "id": token, "kind": kind})
        if len(row["e"]) > kept:
            kind = "bonus" if row["next"][1] == "bonus" else "residual"
            items.append({"at": row["start"] + kept, "id": row["e"][kept], "kind": kind})
    return [item for item in items if item["id"] < n_codes]


def plain(value: Any) -> Any:
    """Numpy and tensor scalars, tuples and mappings as JSON data, without NaN or infinity."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
