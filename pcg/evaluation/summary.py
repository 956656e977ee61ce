"""Numbers of a run: each arm with intervals, paired comparisons, and the paper's claims tested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcg.evaluation.rows import Row, latest, read_rows
from pcg.evaluation.runner import Plan, read_plan
from pcg.metrics.significance import Comparison, compare, interval, ratio

Extract = Callable[[Row], tuple[float, float] | None]


def _at(row: Row, *path: str) -> Any:
    """A nested value, or None when any step of the path is missing."""
    value: Any = row
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _ratio(row: Row, part: tuple[str, ...], whole: tuple[str, ...]) -> tuple[float, float] | None:
    top, bottom = _at(row, *part), _at(row, *whole)
    return None if top is None or not bottom else (float(top), float(bottom))


def _mean(*path: str) -> Extract:
    def extract(row: Row) -> tuple[float, float] | None:
        value = _at(row, *path)
        return None if value is None else (float(value), 1.0)

    return extract


def _margin(row: Row) -> tuple[float, float] | None:
    own, others = _at(row, "similarity", "value"), _at(row, "similarity", "others")
    return None if own is None or others is None else (own - others, 1.0)


def _per_round(row: Row) -> tuple[float, float] | None:
    """Tokens a round with the bonus; the first token comes from the prompt, not from a round."""
    tokens, rounds = _at(row, "decode", "tokens"), _at(row, "decode", "rounds")
    return None if not rounds or rounds < 2 else (tokens - 1.0, rounds - 1.0)


def _ended(row: Row) -> tuple[float, float] | None:
    return None if "finished" not in row else (float(row["finished"] == "end"), 1.0)


METRICS: dict[str, Extract] = {
    "wer": lambda row: _ratio(row, ("wer", "errors"), ("wer", "words")),
    "cer": lambda row: _ratio(row, ("wer", "char_errors"), ("wer", "chars")),
    "similarity": _mean("similarity", "value"),
    "margin": _margin,
    "naturalness": _mean("naturalness", "value"),
    "acceptance": lambda row: _ratio(row, ("decode", "accepted"), ("decode", "judged")),
    "tokens_per_round": _per_round,
    "ended": _ended,
    "realised": _mean("swap", "realised"),
    "seconds_per_token": lambda row: _ratio(row, ("time", "decode"), ("decode", "tokens")),
    "cpu_per_token": lambda row: _ratio(row, ("time", "cpu"), ("decode", "tokens")),
    "to_original": _mean("to_original", "value"),
    "f0_error": _mean("f0_error", "value"),
}
PAIRS: dict[str, list[tuple[str, str]]] = {
    "table1": [("target", "sd"), ("target", "pcg"), ("ssd", "pcg"), ("ssd-matched", "pcg")],
    "table2": [
        ("group-0", "group-0.95"),
        ("group-0.95", "shuffled-0.95"),
        ("group-0.95", "any-0.95"),
    ],
    "table3": [("mel", "embedding"), ("swap-mel", "swap-embedding")],
    "theta": [("target", "default")],
    "bundled": [
        ("target", "pcg"),
        ("recording-teacher", "codec-teacher"),
        ("recording-real", "codec-real"),
    ],
}
COMPARED = ("wer", "cer", "similarity", "naturalness", "acceptance")


class Results:
    """The rows of a run by arm, failed ones apart."""

    def __init__(self, plan: Plan, rows: Sequence[Row]) -> None:
        self.plan = plan
        self.failed = [row for row in rows if row["status"] != "ok"]
        self.arms: dict[str, dict[str, Row]] = {arm.name: {} for arm in plan.arms}
        for row in rows:
            if row["status"] == "ok" and row["arm"] in self.arms:
                self.arms[row["arm"]][row["utterance"]] = row

    def values(self, arm: str, metric: str) -> dict[str, tuple[float, float]]:
        """Part and whole of a metric by utterance; whatever was not measured is left out."""
        extract = METRICS[metric]
        found = {name: extract(row) for name, row in self.arms.get(arm, {}).items()}
        return {name: value for name, value in found.items() if value is not None}

    def interval(self, arm: str, metric: str) -> Row | None:
        """A rate with its interval, or None."""
        values = list(self.values(arm, metric).values())
        if not values:
            return None
        return interval([v[0] for v in values], [v[1] for v in values]).to_dict()

    def paired(self, first: str, second: str, metric: str) -> tuple[list[float], ...] | None:
        """Parts of both, then wholes of both, over the utterances that both have."""
        a, b = self.values(first, metric), self.values(second, metric)
        names = sorted(a.keys() & b.keys())
        if not names:
            return None
        return (
            [a[n][0] for n in names],
            [b[n][0] for n in names],
            [a[n][1] for n in names],
            [b[n][1] for n in names],
        )

    def compare(self, first: str, second: str, metric: str) -> Comparison | None:
        """second - first, or None when they share no utterance."""
        pairs = self.paired(first, second, metric)
        return None if pairs is None else compare(*pairs)

    def speedup(self, arm: str, metric: str) -> Row | None:
        """How many times faster than the target alone, from the same run."""
        pairs = self.paired("target", arm, metric)
        return None if pairs is None else ratio(*pairs).to_dict()


def load_results(folder: Path) -> Results:
    """Plan and rows of a run folder."""
    return Results(read_plan(folder), latest(read_rows(folder / "rows.jsonl")))


def summarise(folder: Path) -> Row:
    """Everything the report shows of one run, as plain data."""
    results = load_results(folder)
    plan = results.plan
    expected = sum(len(task.arms) for task in plan.tasks(set()))
    counted = sum(len(rows) for rows in results.arms.values())
    summary: Row = {
        "experiment": plan.experiment,
        "id": plan.id,
        "origin": {**plan.origin, **_settings(plan)},
        "notes": plan.notes,
        "metric_models": metric_models(results),
        "rows": {"expected": expected, "ok": counted, "failed": len(results.failed)},
        "failures": [{"key": row["key"], "error": row["error"]} for row in results.failed[:50]],
        "timing": _timing(results),
        "arms": [_arm(results, arm.name, arm.label) for arm in plan.arms],
        "comparisons": _comparisons(results),
    }
    if plan.experiment == "drift":
        from pcg.evaluation.drift import drift_summary

        summary["drift"] = drift_summary(results)
    from pcg.evaluation.claims import claims

    summary["claims"] = claims(plan.experiment, results, summary)
    return summary


def _settings(plan: Plan) -> Row:
    o = plan.options
    names = ("temperature", "top_k", "top_p", "lookahead", "seed", "source", "max_seconds")
    return {**{name: getattr(o, name) for name in names}, "n": len(plan.utterances)}


def metric_models(results: Results) -> Row:
    """Which model gave each metric, or how to install what was missing."""
    found: dict[str, set[str]] = {}
    for rows in results.arms.values():
        for row in rows.values():
            for name in ("wer", "similarity", "naturalness", "f0_error"):
                text = _at(row, name, "missing") or _at(row, name, "model")
                if text:
                    found.setdefault(name, set()).add(text)
    return {name: " / ".join(sorted(texts)) for name, texts in sorted(found.items())}


def _timing(results: Results) -> Row:
    """Whether times may be compared: nothing of the run, and on a CPU nothing else, took its share.

    CPU-time ratios hold on a busy machine too, and are always shown.
    """
    times = [
        row["time"] for rows in results.arms.values() for row in rows.values() if "time" in row
    ]
    load = round(float(np.mean([time["load"] for time in times])), 2) if times else None
    origin = results.plan.origin
    idle = str(origin.get("device", "cpu")) != "cpu" or (load or 0.0) <= origin.get("cores", 1)
    return {
        "own_device": bool(times) and idle and all(time["own_device"] for time in times),
        "mean_load": load,
    }


def _arm(results: Results, name: str, label: str) -> Row:
    row: Row = {"name": name, "label": label, "n": len(results.arms[name])}
    row["failed"] = sum(failed["arm"] == name for failed in results.failed)
    for metric in METRICS:
        value = results.interval(name, metric)
        if value is not None:
            row[metric] = value
    row["speedup"] = results.speedup(name, "seconds_per_token")
    row["cpu_speedup"] = results.speedup(name, "cpu_per_token")
    return row


def _comparisons(results: Results) -> list[Row]:
    rows = []
    for first, second in PAIRS.get(results.plan.experiment, []):
        for metric in COMPARED:
            outcome = results.compare(first, second, metric)
            if outcome is not None:
                rows.append({"first": first, "second": second, "metric": metric, **_named(outcome)})
    return rows


def _named(outcome: Comparison) -> Row:
    data = outcome.to_dict()
    return {
        "first_value": data.pop("first"),
        "second_value": data.pop("second"),
        **data,
    }
