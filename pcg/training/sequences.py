"""Training sequences for the target and the draft, from the token corpus."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pcg.phonemes import Layout
from pcg.training.corpus import VOICES, shards
from pcg.training.tokens import TokenUtterance

Ids = npt.NDArray[np.int64]
Batch = tuple[Tensor, Tensor, Tensor, Tensor]


class Sequences:
    """Sequences of one utterance, or two or three of one voice (prompt and continuation)."""

    def __init__(
        self,
        groups: dict[str, list[TokenUtterance]],
        layout: Layout,
        seed: int,
        jitter: bool = True,
    ) -> None:
        self.groups = {name: rows for name, rows in groups.items() if len(rows) >= 3}
        self.names = sorted(self.groups)
        self.weights = [1.0 if n.split("/")[1] in VOICES else 0.6 for n in self.names]
        self.layout, self.rng, self.jitter = layout, random.Random(seed), jitter
        self.noise = np.random.default_rng(seed)

    def one(self) -> tuple[Ids, Ids]:
        """Ids and rotary positions of a whole sequence, end token included."""
        rng = self.rng
        rows = self.groups[rng.choices(self.names, self.weights)[0]]
        chosen = rng.sample(rows, rng.choices((1, 2, 3), (0.35, 0.5, 0.15))[0])
        phonemes, at = "", 0
        starts: list[npt.NDArray[np.int64]] = []
        codes: list[npt.NDArray[np.int64]] = []
        for number, row in enumerate(chosen):
            if number:
                phonemes, starts = phonemes + " ", [*starts, np.asarray([at])]
            phonemes += row.phonemes
            starts.append(self._times(row) + at)
            codes.append(row.codes)
            at += len(row.codes)
        ids, positions = self.layout.sequence(
            phonemes, np.concatenate(starts), at, np.concatenate(codes)
        )
        return np.append(ids, self.layout.speech_end), np.append(positions, at + 1)

    def _times(self, row: TokenUtterance) -> Ids:
        """Start times; in more than half of the sequences disturbed as a predictor's would be."""
        if not self.jitter or self.rng.random() < 0.4 or len(row.starts) < 4:
            return row.starts
        drift = np.cumsum(self.noise.normal(0, self.rng.uniform(0.1, 0.5), len(row.starts)))
        drift -= np.linspace(drift[0], drift[-1], len(drift)) * self.rng.uniform(0.5, 1.0)
        moved = np.rint(np.clip(row.starts + np.clip(drift, -4, 4), 0, len(row.codes)))
        return np.maximum.accumulate(moved).astype(np.int64)

    def batches(self, tokens: int, pool: int = 48) -> Iterator[Batch]:
        """Endless batches of similar lengths, about ``tokens`` ids each, padding included."""
        while True:
            items = sorted((self.one() for _ in range(pool)), key=lambda item: len(item[0]))
            batches: list[list[tuple[Ids, Ids]]] = [[]]
            for item in items:
                if len(item[0]) * (len(batches[-1]) + 1) > tokens and batches[-1]:
                    batches.append([])
                batches[-1].append(item)
            self.rng.shuffle(batches)
            yield from (collate(batch, self.layout) for batch in batches)


def collate(items: list[tuple[Ids, Ids]], layout: Layout) -> Batch:
    """Right-padded (ids, labels, positions, mask); labels only where speech is predicted."""
    longest = max(len(ids) for ids, _ in items)
    ids = torch.full((len(items), longest), layout.special + 1)
    positions, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, (one, place) in enumerate(items):
        ids[row, : len(one)] = torch.from_numpy(one)
        positions[row, : len(one)] = torch.from_numpy(place)
        mask[row, : len(one)] = 1
    spoken = (ids >= layout.speech) | (ids == layout.speech_end)
    return ids, torch.where(spoken, ids, torch.full_like(ids, -100)), positions, mask


def split_shards(tokens: Path) -> tuple[list[Path], list[Path]]:
    """(training, held-out) token files: the corpus' own split."""
    held = {path.name for path in shards(tokens, held_out=True)}
    files = sorted(tokens.glob("*-???.npz"))
    return [f for f in files if f.name not in held], [f for f in files if f.name in held]
