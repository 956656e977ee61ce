"""Rounds to and from JSON lines, and the figures that summarise them.

Line 1 is a header, each further line a round. A stored trace replays without a model.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from pcg.acceptance.rule import Judgement, Verdict
from pcg.decoding import Round
from pcg.errors import PcgError

VERSION = 1
MAX_ROUNDS = 100_000
FINISHED = (None, "end", "budget", "cancelled", "non_speech")


@dataclass
class Trace:
    """``header``: model, rule, params, lookahead, sampling, seed, voice, text, hop, sample_rate,
    n_codes and whatever else helps to repeat the run; ``rounds`` in order."""

    header: dict[str, Any] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)

    def append(self, round_: Round) -> None:
        self.rounds.append(round_)

    @property
    def tokens(self) -> list[int]:
        """Every emitted token, the end token included."""
        return [token for round_ in self.rounds for token in round_.emitted]

    @property
    def codes(self) -> list[int]:
        """The speech codes that were emitted."""
        limit = int(self.header.get("n_codes", 2**31))
        return [token for token in self.tokens if token < limit]

    def summary(self) -> dict[str, Any]:
        return summarise(self.rounds)

    def lines(self) -> Iterable[str]:
        """The trace as JSON lines; rows are not part of it (see :meth:`save`)."""
        yield json.dumps({"pcg_trace": VERSION, **_plain(self.header)})
        for round_ in self.rounds:
            yield json.dumps(round_to_dict(round_))

    def save(self, path: Path | str, rows: bool = False) -> None:
        """Writes ``path``; with ``rows`` also ``path + ".rows.safetensors"`` in float16."""
        path = Path(path)
        path.write_text("\n".join(self.lines()) + "\n", encoding="utf-8")
        kept = [r for r in self.rounds if r.rows is not None]
        if rows and kept:
            from safetensors.torch import save_file

            arrays = {}
            for round_ in kept:
                if round_.rows is not None and len(round_.rows[0]):
                    arrays[f"draft.{round_.index}"] = round_.rows[0].cpu().half().contiguous()
                    arrays[f"target.{round_.index}"] = round_.rows[1].cpu().half().contiguous()
            save_file(arrays, f"{path}.rows.safetensors")

    @classmethod
    def load(cls, path: Path | str) -> Trace:
        """Reads a trace, and its rows where they were kept beside it.

        Raises:
            PcgError: when the file is not a trace of this version.
        """
        path = Path(path)
        try:
            trace = cls.parse(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise PcgError(f"{path.name} cannot be read as a trace.") from error
        side = Path(f"{path}.rows.safetensors")
        if side.exists():
            trace._attach(side)
        return trace

    @classmethod
    def parse(cls, text: str) -> Trace:
        """A trace from its text; see :meth:`load`."""
        try:
            lines = [line for line in text.splitlines() if line.strip()]
            header = json.loads(lines[0])
            version = header.pop("pcg_trace")
            if len(lines) > MAX_ROUNDS:
                raise PcgError(f"A trace may hold {MAX_ROUNDS:,} rounds; this one is longer.")
            if version != VERSION:
                raise PcgError(f"This trace is of version {version}; this program reads {VERSION}.")
            rounds = [round_from_dict(json.loads(line)) for line in lines[1:]]
        except PcgError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise PcgError(
                "This file is not a trace: save one from Watch or `say --trace`."
            ) from error
        return cls(header, rounds)

    def _attach(self, side: Path) -> None:
        from dataclasses import replace

        from safetensors.torch import load_file

        arrays = load_file(side)
        for place, round_ in enumerate(self.rounds):
            if f"draft.{round_.index}" in arrays:
                draft = _normal(arrays[f"draft.{round_.index}"])
                target = _normal(arrays[f"target.{round_.index}"])
                self.rounds[place] = replace(round_, rows=(draft, target))


def _normal(rows: torch.Tensor) -> torch.Tensor:
    rows = rows.float()
    return rows / rows.sum(-1, keepdim=True)


def _plain(value: Any) -> Any:
    """JSON without NaN or infinities: those become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def round_to_dict(round_: Round) -> dict[str, Any]:
    """A round as plain JSON values, without its rows."""
    flat = {
        f.name: getattr(round_, f.name) for f in fields(round_) if f.name not in ("rows", "verdict")
    }
    verdict = asdict(round_.verdict)
    return dict(_plain({**flat, "verdict": verdict}))


def round_from_dict(data: dict[str, Any]) -> Round:
    """The round that :func:`round_to_dict` wrote; raises ValueError and its like for others."""
    verdict = dict(data["verdict"])
    judged = [_judgement(one) for one in verdict.pop("judgements")]
    verdict["details"] = dict(verdict.get("details", {}))
    for key in ("accepted", "next_token", "trials"):
        verdict[key] = int(verdict[key])
    flat = {key: value for key, value in data.items() if key != "verdict"}
    for key in ("drafted", "emitted"):
        flat[key] = tuple(int(token) for token in flat[key])
    if flat["finished"] not in FINISHED:
        raise ValueError(flat["finished"])
    for key in ("index", "start"):
        flat[key] = int(flat[key])
    for key in ("seconds_draft", "seconds_verify", "seconds_judge"):
        flat[key] = float(flat[key])
    return Round(verdict=Verdict(judgements=tuple(judged), **verdict), **flat)


def _judgement(data: dict[str, Any]) -> Judgement:
    numbers = {key: float(data[key]) for key in ("draft_prob", "target_prob", "u", "ratio")}
    whole = {key: int(data[key]) for key in ("position", "token")}
    flags = {key: bool(data[key]) for key in ("accepted", "exact_accepts")}
    return Judgement(**{**data, **numbers, **whole, **flags})


def summarise(rounds: list[Round]) -> dict[str, Any]:
    """Figures of a run.

    ``acceptance_rate``: accepted / judged drafted tokens, the bonus token excluded (None when
    nothing was judged). ``tokens_per_round``: emitted tokens a round, bonus or residual included,
    over the rounds after the first token. ``by_position``: acceptance of the i-th drafted token
    among those that were judged. ``group_only``: accepted though exact matching would not have.
    """
    spoken = [r for r in rounds if r.index > 0]
    judged = [one for r in rounds for one in r.verdict.judgements]
    positions = sorted({one.position for one in judged})
    accepted = sum(one.accepted for one in judged)
    seconds = {
        "draft": sum(r.seconds_draft for r in rounds),
        "verify": sum(r.seconds_verify for r in rounds),
        "judge": sum(r.seconds_judge for r in rounds),
    }
    seconds["total"] = sum(seconds.values())
    tokens = sum(len(r.emitted) for r in rounds)
    trials = [r.verdict.trials for r in rounds if r.verdict.trials]
    return {
        "rounds": len(rounds),
        "tokens": tokens,
        "drafted": sum(len(r.drafted) for r in rounds),
        "judged": len(judged),
        "accepted": accepted,
        "acceptance_rate": accepted / len(judged) if judged else None,
        "tokens_per_round": (sum(len(r.emitted) for r in spoken) / len(spoken) if spoken else None),
        "group_only": sum(one.accepted and not one.exact_accepts for one in judged),
        "by_position": [
            sum(one.accepted for one in judged if one.position == place)
            / sum(one.position == place for one in judged)
            for place in positions
        ],
        "histogram": dict(sorted(Counter(len(r.emitted) for r in spoken).items())),
        "seconds": seconds,
        "tokens_per_second": tokens / seconds["total"] if seconds["total"] > 0 else None,
        "trials_mean": sum(trials) / len(trials) if trials else None,
        "trials_max": max(trials, default=0),
        "exact_residuals": sum(bool(r.verdict.details.get("exact_residual")) for r in rounds),
        "finished": rounds[-1].finished if rounds else None,
    }
