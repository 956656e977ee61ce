"""Rounds written down: a header and one JSON line a round, readable again without any model."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pcg.acceptance.rule import Judgement, Verdict
from pcg.decoding import Round
from pcg.errors import PcgError

FORMAT_VERSION = 1


@dataclass
class Trace:
    """The record of one utterance.

    header: how it was made (model, rule, params, lookahead, sampling, seed, voice, text, hop,
    sample_rate, n_codes, ...), JSON values only. rounds: in order.
    """

    header: dict[str, Any] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)

    def append(self, item: Round) -> None:
        self.rounds.append(item)

    def __iter__(self) -> Iterator[Round]:
        return iter(self.rounds)

    @property
    def emitted(self) -> tuple[int, ...]:
        """Every committed id, an end token included."""
        return tuple(token for item in self.rounds for token in item.emitted)

    @property
    def finished(self) -> str | None:
        """Why decoding stopped; None if the record ends before it did."""
        return self.rounds[-1].finished if self.rounds else None

    def summary(self) -> dict[str, Any]:
        """The statistics of `summarise`."""
        return summarise(self.rounds)

    def save(self, path: str | Path) -> Path:
        """Write JSON lines; probability rows are left out."""
        written = Path(path)
        written.parent.mkdir(parents=True, exist_ok=True)
        with written.open("w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in self.to_lines())
        return written

    def to_lines(self) -> Iterator[str]:
        """The header line, then one line a round."""
        yield _dumps({"pcg_trace": FORMAT_VERSION, **self.header})
        for item in self.rounds:
            yield _dumps(round_to_json(item))

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what `save` wrote, or raise `PcgError` saying what is wrong with the file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PcgError(f"{path} cannot be read as a trace; give a .jsonl trace.") from error
        return cls.from_lines(text.splitlines())

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> Trace:
        """The inverse of `to_lines`."""
        records = []
        for number, line in enumerate(lines, 1):
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise PcgError(f"Line {number} of the trace is not JSON; it is damaged.") from error
        if not records or not isinstance(records[0], dict) or "pcg_trace" not in records[0]:
            raise PcgError("This is not a trace: its first line has no pcg_trace version.")
        version = records[0].pop("pcg_trace")
        if version != FORMAT_VERSION:
            raise PcgError(f"The trace has version {version}; this pcg reads {FORMAT_VERSION}.")
        try:
            return cls(records[0], [round_from_json(record) for record in records[1:]])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise PcgError(
                f"A round of the trace lacks a field ({error}); it is damaged."
            ) from error


def _dumps(value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise PcgError(
            "A trace cannot hold NaN or infinity; check the header's numbers."
        ) from error


def round_to_json(item: Round) -> dict[str, Any]:
    """One round as JSON values; an infinite ratio is written as null."""
    record = {
        spec.name: getattr(item, spec.name)
        for spec in dataclasses.fields(item)
        if spec.name not in ("rows", "verdict")
    }
    verdict = {spec.name: getattr(item.verdict, spec.name) for spec in dataclasses.fields(Verdict)}
    verdict["judgements"] = [_judgement_to_json(one) for one in item.verdict.judgements]
    return {**record, "verdict": verdict}


def _judgement_to_json(judgement: Judgement) -> dict[str, Any]:
    ratio = judgement.ratio if math.isfinite(judgement.ratio) else None
    return {**dataclasses.asdict(judgement), "ratio": ratio}


def round_from_json(record: Mapping[str, Any]) -> Round:
    """The inverse of `round_to_json`."""
    verdict = dict(record["verdict"])
    verdict["judgements"] = tuple(
        Judgement(**{**one, "ratio": math.inf if one["ratio"] is None else one["ratio"]})
        for one in verdict["judgements"]
    )
    lists = {"drafted": tuple(record["drafted"]), "emitted": tuple(record["emitted"])}
    return Round(**{**record, **lists, "verdict": Verdict(**verdict)})


def summarise(rounds: Iterable[Round]) -> dict[str, Any]:
    """Statistics of rounds, as JSON values.

    acceptance_rate: drafted tokens kept / judged, the bonus token excluded. tokens_per_round:
    emitted ids per round after the first (which is the prefill's), the bonus or residual included.
    by_position: for each place in the block how many were judged and kept (judged only if all before
    it were kept). histogram: rounds by number kept. trials: thinning trials; replaced: rejections.
    """
    items = list(rounds)
    verified = [item for item in items if item.index > 0]
    judged, kept = Counter[int](), Counter[int]()
    for judgement in (one for item in verified for one in item.verdict.judgements):
        judged[judgement.position] += 1
        kept[judgement.position] += judgement.accepted
    total_judged, total_kept = sum(judged.values()), sum(kept.values())
    tokens = sum(len(item.emitted) for item in items)
    later = sum(len(item.emitted) for item in verified)
    seconds = _seconds(items)
    replaced = sum(item.verdict.next_kind != "bonus" for item in verified)
    trials = sum(item.verdict.trials for item in verified)
    judgements = [one for item in verified for one in item.verdict.judgements]
    return {
        "tokens": tokens,
        "rounds": len(verified),
        "drafted": sum(len(item.drafted) for item in verified),
        "judged": total_judged,
        "accepted": total_kept,
        "acceptance_rate": total_kept / total_judged if total_judged else None,
        "tokens_per_round": later / len(verified) if verified else None,
        "beyond_exact": sum(one.accepted and not one.exact_accepts for one in judgements),
        "by_position": [
            {"position": place, "judged": judged[place], "accepted": kept[place],
             "rate": kept[place] / judged[place]}
            for place in sorted(judged)
        ],
        "histogram": _histogram(verified),
        "replaced": replaced,
        "trials": trials,
        "trials_per_rejection": trials / replaced if replaced else None,
        "seconds": seconds,
        "tokens_per_second": tokens / seconds["total"] if seconds["total"] > 0 else None,
        "finished": items[-1].finished if items else None,
    }  # fmt: skip


def _histogram(rounds: list[Round]) -> list[int]:
    counts = Counter(item.verdict.accepted for item in rounds)
    return [counts[number] for number in range(max(counts, default=-1) + 1)]


def _seconds(rounds: list[Round]) -> dict[str, float]:
    """Time by part; "prefill" is round 0's drafting and verifying, included in the total."""
    later = [item for item in rounds if item.index > 0]
    first = [item for item in rounds if item.index == 0]
    parts = {
        "prefill": sum(item.seconds_draft + item.seconds_verify for item in first),
        "draft": sum(item.seconds_draft for item in later),
        "verify": sum(item.seconds_verify for item in later),
        "judge": sum(item.seconds_judge for item in rounds),
    }
    return {**parts, "total": sum(parts.values())}
