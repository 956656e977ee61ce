"""One visitor's memory: the finished runs of this tab, and nothing anybody else can reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEPT_RUNS = 12


@dataclass
class Run:
    """One finished (or stopped) utterance by one rule.

    `audio` is float32 mono at `sample_rate`; `rows` holds, for each round with drafts, the pair
    (draft_probs (g, V), target_probs (g, V)) in float16, and only for the newest runs; `settings`
    is what the command line needs to say the same again.
    """

    id: str
    label: str
    rule: str
    params: dict[str, float]
    audio: NDArray[np.float32]
    sample_rate: int
    trace: Any
    summary: dict[str, Any]
    codes: list[int]
    settings: dict[str, Any]
    file: dict[str, Any] | None = None
    rows: list[tuple[Any, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass
class Visitor:
    """Per-visitor state, held in a `gr.State`."""

    runs: list[Run] = field(default_factory=list)
    counter: int = 0
    compared: list[str] = field(default_factory=list)  # runs on the board now
    choices: Any = None  # the last comparison's checked inputs
    voice: Any = None  # and its voice prompt

    def next_id(self) -> str:
        """A name for the next run, unique for this visitor."""
        self.counter += 1
        return f"run{self.counter}"

    def keep(self, run: Run) -> None:
        """Remember a run; the oldest beyond `KEPT_RUNS` is forgotten."""
        self.runs = [*self.runs, run][-KEPT_RUNS:]

    def start_comparison(self) -> None:
        """Forget the probability rows of earlier runs; they are large and only the newest count."""
        for run in self.runs:
            run.rows = []

    def find(self, run_id: str | None) -> Run | None:
        """A run by its name."""
        return next((run for run in self.runs if run.id == run_id), None)

    def newest(self, *, drafted: bool = False) -> Run | None:
        """The newest run, or the newest with kept probability rows, PCG preferred."""
        if not drafted:
            return self.runs[-1] if self.runs else None
        with_rows = [run for run in self.runs if run.rows]
        grouped = [run for run in with_rows if run.rule == "pcg"]
        return next(reversed(grouped or with_rows), None)
