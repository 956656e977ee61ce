"""The analysis of one test as plain JSON values: what the page shows and `python -m pcg listening
analyse` prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pcg.errors import PcgError
from pcg.listening.analysis import means, pairs, proportions
from pcg.listening.analysis.screening import Listener, screen
from pcg.listening.study import Study

SHARE_METHOD = "exact binomial without ties; clustered by listener and item: Korn-Graubard"
ABX_METHOD = "exact binomial against guessing; clustered by listener and item: Korn-Graubard"
Rows = Sequence[Mapping[str, Any]]


def analyse(
    study: Study,
    rows: Rows,
    checks: Mapping[str, tuple[str | None, int | None, int | None]] | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """The whole report.

    `results` uses every listener. When some are flagged, `results_without_flagged` shows the same
    numbers without them, beside and never instead of the first. Raises `PcgError` while there is no
    vote.
    """
    if not rows:
        raise PcgError("This test has no votes yet.")
    people = screen(study.kind, rows, reference=study.reference, checks=checks)
    flagged = {person.listener for person in people if person.flags}
    kept = [row for row in rows if row["listener"] not in flagged]
    work = {"mos": _scores, "mushra": _scores, "ab": _preferences, "abx": _recognition}[study.kind]
    report: dict[str, Any] = {
        "study": study.id,
        "title": study.title,
        "kind": study.kind,
        "question": study.question,
        "confidence": confidence,
        "seed": seed,
        "votes": len({(row["listener"], row["trial"]) for row in rows}),
        "listeners": [_person(person) for person in people],
        "items": len({row["item"] for row in rows}),
        "results": work(study, rows, confidence, seed),
        "results_without_flagged": None,
    }
    if flagged and kept:
        report["results_without_flagged"] = work(study, kept, confidence, seed)
    return report


def _person(person: Listener) -> dict[str, Any]:
    return asdict(person)


def _columns(rows: Rows, *names: str) -> list[list[Any]]:
    return [[row[name] for row in rows] for name in names]


def _scores(study: Study, rows: Rows, confidence: float, seed: int) -> dict[str, Any]:
    scores, names, who, what = _columns(rows, "score", "system", "listener", "item")
    found = means.system_means(scores, names, who, what, confidence)
    gaps = means.differences(scores, names, who, what, confidence)
    counts = {
        name: Counter(row["score"] for row in rows if row["system"] == name) for name in found
    }
    systems = [
        {
            "system": name,
            **asdict(value),
            "histogram": {f"{key:g}": counts[name][key] for key in sorted(counts[name])},
        }
        for name, value in sorted(found.items(), key=lambda pair: -pair[1].value)
    ]
    return {
        "systems": systems,
        "differences": [
            {"first": a, "second": b, **asdict(value)} for (a, b), value in gaps.items()
        ],
        "method": "two-way cluster-robust (listener, item), Satterthwaite t; differences: Holm",
    }


def _preferences(study: Study, rows: Rows, confidence: float, seed: int) -> dict[str, Any]:
    tables = []
    for left, right in study.pairs:
        mine = [row for row in rows if {row["left"], row["right"]} == {left, right}]
        if mine:
            tables.append(_pair(left, right, mine, confidence))
    result: dict[str, Any] = {
        "pairs": tables,
        "method": SHARE_METHOD,
        "required_votes": _needed("two-sided"),
    }
    if len(study.systems) > 2:
        result["ranking"] = _ranking(study, rows, confidence, seed)
    return result


def _pair(left: str, right: str, rows: Rows, confidence: float) -> dict[str, Any]:
    wins = sum(row["chosen"] == left for row in rows)
    ties = sum(row["chosen"] == "" for row in rows)
    decided = len(rows) - ties
    score = [1.0 if row["chosen"] == left else 0.5 if row["chosen"] == "" else 0.0 for row in rows]
    listeners, items = _columns(rows, "listener", "item")
    clustered = proportions.clustered_share(score, listeners, items, "two-sided", confidence)
    exact = (
        asdict(proportions.exact_share(wins, decided, "two-sided", confidence)) if decided else None
    )
    return {"left": left, "right": right, "wins": wins, "losses": decided - wins, "ties": ties,
            "exact": exact, "clustered": asdict(clustered)}  # fmt: skip


def _recognition(study: Study, rows: Rows, confidence: float, seed: int) -> dict[str, Any]:
    tables = []
    for left, right in study.pairs:
        mine = [row for row in rows if {row["left"], row["right"]} == {left, right}]
        if not mine:
            continue
        right_answers = sum(bool(row["correct"]) for row in mine)
        listeners, items = _columns(mine, "listener", "item")
        values = np.array([float(row["correct"]) for row in mine])
        exact = proportions.exact_share(right_answers, len(mine), "greater", confidence)
        clustered = proportions.clustered_share(values, listeners, items, "greater", confidence)
        tables.append({"left": left, "right": right, "correct": right_answers, "n": len(mine),
                       "needed_correct": int(proportions.critical_count(len(mine), 1 - confidence)),
                       "exact": asdict(exact), "clustered": asdict(clustered)})  # fmt: skip
    return {
        "pairs": tables,
        "method": ABX_METHOD,
        "required_votes": _needed("greater"),
    }


def _needed(alternative: proportions.Alternative) -> list[dict[str, Any]]:
    found = []
    for share in (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9):
        votes = proportions.required_votes(share, alternative=alternative)
        found.append({"share": share, "votes": votes, "alpha": 0.05, "power": 0.8})
    return found


def _ranking(study: Study, rows: Rows, confidence: float, seed: int) -> dict[str, Any]:
    names = [
        name for name in study.systems if any(name in (row["left"], row["right"]) for row in rows)
    ]
    left, right, outcome, who, what = _columns(rows, "left", "right", "outcome", "listener", "item")
    tensor = pairs.win_tensor(left, right, outcome, who, what, names)
    try:
        ranking = pairs.bradley_terry(tensor, names, seed=seed, confidence=confidence)
    except PcgError as error:
        return {"error": str(error)}
    return {
        "abilities": [asdict(ability) for ability in ranking.abilities],
        "better": [
            {"first": a, "second": b, "probability": value}
            for (a, b), value in ranking.better.items()
        ],
        "draws": ranking.draws,
        "clusters": ranking.clusters,
        "prior": pairs.PRIOR,
    }
