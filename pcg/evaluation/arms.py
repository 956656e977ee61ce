"""What an experiment compares: one arm is one way to turn an utterance into sound."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["speak", "swap", "recording", "codec", "drift"]


@dataclass(frozen=True)
class Arm:
    """One column of a table.

    ``kind``: "speak" decodes with a rule; "swap" speaks with the target alone and swaps tokens
    (``params``: theta, share); "recording" measures the utterance's own recording; "codec" its
    round trip; "drift" decodes exactly and evaluates the closed forms on the stored rows.
    ``groups``: "embedding" or "mel". ``draft``: folder of another draft model. ``judged``: False
    takes no WER, similarity or naturalness.
    """

    name: str
    label: str
    kind: Kind = "speak"
    rule: str = "target"
    params: Mapping[str, float] = field(default_factory=dict)
    lookahead: int = 3
    groups: str = "embedding"
    control: str = "group"
    draft: str = ""
    judged: bool = True
    first: int | None = None
    """Only the first so many utterances run this arm."""
    only: str = ""
    """Only utterances whose id starts so run this arm; "" is the corpus, ids of other sources
    (teacher "t", real recordings "d-") excluded.
    """

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "params": dict(self.params)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Arm:
        """The inverse of ``to_dict``."""
        return Arm(**data)


@dataclass(frozen=True)
class Options:
    """Everything that shapes the results of a run, beside its arms and utterances.

    ``theta`` None is the model's own; ``asr`` and ``speaker`` "" are the metrics' defaults.
    """

    model: str = "bundled"
    n: int = 60
    seed: int = 0
    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    lookahead: int = 3
    theta: float | None = None
    beta: float = 0.4
    max_seconds: float = 20.0
    asr: str = ""
    speaker: str = ""
    mos: bool = True
    source: str = "bundled"
    """"bundled", "libritts:FOLDER" or "csv:FILE"."""
    rules: tuple[str, ...] = ()
    rivals: bool = False
    drafts: tuple[str, ...] = ()
    """More drafts to compare, each "NAME=FOLDER"."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def utterance_seed(seed: int, utterance: str) -> int:
    """The seed of one utterance: the same for every arm, another for every utterance."""
    digest = hashlib.sha256(f"{seed}/{utterance}".encode()).digest()
    return int.from_bytes(digest[:6], "big") % 2**31


def fingerprint(data: Any) -> str:
    """Sixteen hex digits that change with any part of ``data`` (JSON)."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
