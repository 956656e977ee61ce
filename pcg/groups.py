"""Acoustic Similarity Groups: one overlapping group for each speech token.

``G_k = {t : cos(Emb(k), Emb(t)) > theta}`` (PCG, arXiv 2511.13732). Cosine is symmetric, so the
groups that contain t are the members of t's own group: one symmetric, reflexive adjacency in
compressed rows serves both roles. Each pair is computed once in float32 and mirrored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcg.errors import PcgError

VERSION = 1
BLOCK = 1024
CACHED = 8


def check_theta(theta: float) -> float:
    """``theta`` as a float in (-1, 1]; raises PcgError otherwise."""
    theta = float(theta)
    if not -1 < theta <= 1:
        raise PcgError("theta must be above -1 and at most 1 (0.4 is a usual value).")
    return theta


def table_hash(table: Tensor) -> str:
    """SHA-256 of a table's float32 values and shape."""
    data = table.detach().cpu().float().contiguous()
    return hashlib.sha256(str(tuple(data.shape)).encode() + data.numpy().tobytes()).hexdigest()


class AcousticGroups:
    """Groups over a vocabulary of ``vocab_size`` ids of which the first ``n_codes`` are speech.

    ``indptr`` (vocab_size + 1,) int64 and ``indices`` (pairs,) int32: the members of group k are
    ``indices[indptr[k]:indptr[k + 1]]``, ascending. Ids beyond the codes are alone in their group.
    ``sizes`` (vocab_size,) int64; ``weights`` float64 are 1 / sizes, a token's share of each group.
    """

    def __init__(
        self, indptr: Tensor, indices: Tensor, n_codes: int, theta: float, kind: str = "embedding"
    ) -> None:
        if len(indptr) < 2 or int(indptr[-1]) != len(indices) or not len(indices):
            raise PcgError("These groups are empty or damaged: build them again.")
        self.indptr, self.indices = indptr.long(), indices.int()
        self.n_codes, self.theta, self.kind = n_codes, theta, kind
        self.vocab_size = len(indptr) - 1
        self.sizes = self.indptr.diff()
        self.weights = 1.0 / self.sizes.double()
        if bool((self.sizes < 1).any()):
            raise PcgError("A group without members: build the groups again.")
        self._bounds: list[int] = self.indptr.tolist()

    def members(self, group: int) -> Tensor:
        """Ids of ``group``, ascending, int64."""
        return self.indices[self._bounds[group] : self._bounds[group + 1]].long()

    def start(self, group: int) -> int:
        """Where the members of ``group`` start in ``indices``."""
        return self._bounds[group]

    def size(self, group: int) -> int:
        """How many members ``group`` has."""
        return self._bounds[group + 1] - self._bounds[group]

    @cached_property
    def rows(self) -> Tensor:
        """The group of each entry of ``indices``, int64."""
        return torch.repeat_interleave(
            torch.arange(self.vocab_size, device=self.indices.device), self.sizes
        )

    @cached_property
    def flat(self) -> NDArray[np.int32]:
        """``indices`` on the CPU: labels are drawn there, wherever the rows lie."""
        return np.asarray(self.indices.cpu().numpy())

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """``weights`` on the CPU."""
        return np.asarray(self.weights.cpu().numpy())

    def gather(
        self, chosen: list[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(members of several groups end to end, their starts, their sizes), on the CPU."""
        bounds, flat = self._bounds, self.flat
        members = np.concatenate([flat[bounds[k] : bounds[k + 1]] for k in chosen], dtype=np.int64)
        sizes = np.array([bounds[k + 1] - bounds[k] for k in chosen], dtype=np.int64)
        return members, sizes.cumsum() - sizes, sizes

    def stats(self) -> dict[str, float]:
        """Sizes over speech codes: mean, median, largest, share of singletons."""
        sizes = self.sizes[: self.n_codes].float()
        return {
            "theta": self.theta,
            "mean": float(sizes.mean()),
            "median": float(sizes.median()),
            "largest": int(sizes.max()),
            "singletons": float((sizes == 1).float().mean()),
            "pairs": len(self.indices),
        }

    def to(self, device: torch.device | str) -> AcousticGroups:
        return AcousticGroups(
            self.indptr.to(device), self.indices.to(device), self.n_codes, self.theta, self.kind
        )

    @classmethod
    def from_table(
        cls, table: Tensor, theta: float, vocab_size: int | None = None, **options: Any
    ) -> AcousticGroups:
        """Groups of an embedding table ``(n_codes, d)`` at one ``theta``."""
        return NestedGroups.from_table(table, theta, vocab_size, **options).at(theta)

    @classmethod
    def singletons(cls, vocab_size: int, n_codes: int | None = None) -> AcousticGroups:
        """Every id alone: PCG is then SD."""
        ids = torch.arange(vocab_size + 1)
        return cls(ids, ids[:-1], n_codes or vocab_size, 1.0, "singletons")

    @classmethod
    def everything(cls, vocab_size: int) -> AcousticGroups:
        """One group of everything, held by every id: everything is accepted."""
        indptr = torch.arange(vocab_size + 1) * vocab_size
        return cls(indptr, torch.arange(vocab_size).repeat(vocab_size), vocab_size, -1.0, "all")

    @classmethod
    def from_sets(cls, sets: list[list[int]], n_codes: int | None = None) -> AcousticGroups:
        """Groups from member lists, made symmetric and reflexive."""
        count = len(sets)
        dense = torch.eye(count, dtype=torch.bool)
        for row, members in enumerate(sets):
            dense[row, members] = True
        dense |= dense.T.clone()
        indptr = torch.cat([torch.zeros(1, dtype=torch.long), dense.sum(1).cumsum(0)])
        return cls(indptr, dense.nonzero()[:, 1], n_codes or count, 0.0, "sets")


class NestedGroups:
    """Every pair above the lowest theta with its cosine, so that a higher theta is a filter.

    ``first`` < ``second`` int32 and ``cosines`` float32, each ``(pairs,)``.
    """

    def __init__(
        self,
        first: Tensor,
        second: Tensor,
        cosines: Tensor,
        *,
        theta_min: float,
        n_codes: int,
        vocab_size: int,
        table: str,
        kind: str = "embedding",
    ) -> None:
        self.first, self.second, self.cosines = first.int(), second.int(), cosines.float()
        self.theta_min, self.n_codes, self.vocab_size = theta_min, n_codes, vocab_size
        self.table, self.kind = table, kind
        self._sorted = self.cosines.sort().values
        self._cache: dict[float, AcousticGroups] = {}

    @classmethod
    def from_table(
        cls,
        table: Tensor,
        theta_min: float,
        vocab_size: int | None = None,
        *,
        kind: str = "embedding",
        block: int = BLOCK,
        progress: Callable[[float], None] | None = None,
    ) -> NestedGroups:
        """Blockwise over the upper triangle of ``table @ table.T``; float32, CPU or CUDA.

        ``table`` ``(n_codes, d)``: the target's input embeddings of the speech codes, or Mel
        features of decoded tokens (``kind="mel"``). A row of zeros is alone in its group.
        ``vocab_size`` (at least ``n_codes``) adds singletons for ids that are not speech.

        Raises:
            PcgError: for a table that is not finite or not 2-D, or theta outside (-1, 1].
        """
        theta_min = check_theta(theta_min)
        if table.ndim != 2 or not len(table) or not bool(torch.isfinite(table).all()):
            raise PcgError("The embedding table must be a finite matrix (codes, width).")
        count = len(table)
        if vocab_size is not None and vocab_size < count:
            raise PcgError("The vocabulary is smaller than the embedding table it should hold.")
        parts: list[tuple[Tensor, Tensor, Tensor]] = []
        blocks = range(0, count, block)
        units = [_unit(table[at : at + block]) for at in blocks] if count <= 16 * block else None
        for i, row in enumerate(blocks):
            left = units[i] if units else _unit(table[row : row + block])
            strip: list[tuple[Tensor, Tensor, Tensor]] = []
            for j, column in enumerate(blocks):
                if column < row:
                    continue
                right = units[j] if units else _unit(table[column : column + block])
                cosine = (left @ right.T).clamp_(max=1.0)
                found = (cosine.triu(1) if row == column else cosine) > theta_min
                if row == column:
                    found &= torch.ones_like(found).triu(1)
                a, b = found.nonzero(as_tuple=True)
                strip.append(((a + row).int().cpu(), (b + column).int().cpu(), cosine[a, b].cpu()))
            # few long pieces: thousands of short ones would pin the allocator's freed tiles
            parts.append(_joined(strip))
            if progress:
                progress((i + 1) / len(blocks))
        first, second, cosines = _joined(parts)
        return cls(
            first,
            second,
            cosines,
            theta_min=theta_min,
            n_codes=count,
            vocab_size=vocab_size or count,
            table=table_hash(table),
            kind=kind,
        )

    def at(self, theta: float) -> AcousticGroups:
        """The groups at ``theta``, which must not be below ``theta_min``; kept once made."""
        theta = check_theta(theta)
        if theta < self.theta_min - 1e-9:
            raise PcgError(
                f"These groups were stored from theta {self.theta_min:g} up: choose a higher theta."
            )
        found = self._cache.get(theta)
        if found is None:
            found = self._build(theta)
            if len(self._cache) >= CACHED:
                self._cache.pop(next(iter(list(self._cache)), theta), None)
            self._cache[theta] = found
        return found

    @cached_property
    def _both_ways(self) -> tuple[Tensor, Tensor, Tensor]:
        """(rows, columns, cosines) of every pair both ways and of every id with itself, in order.

        An id's cosine with itself is stored as 2: no theta takes it out.
        """
        own = torch.arange(self.vocab_size, dtype=torch.int32)
        rows = torch.cat([self.first, self.second, own])
        columns = torch.cat([self.second, self.first, own])
        order = (rows.long() * self.vocab_size + columns).argsort()
        cosines = torch.cat([self.cosines, self.cosines, torch.full(own.shape, 2.0)])
        return rows[order], columns[order], cosines[order]

    def _build(self, theta: float) -> AcousticGroups:
        rows, columns, cosines = self._both_ways
        kept = cosines > theta
        counts = torch.bincount(rows[kept], minlength=self.vocab_size)
        indptr = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
        return AcousticGroups(indptr, columns[kept], self.n_codes, theta, self.kind)

    def cosine(self, one: int, other: int) -> float | None:
        """Stored cosine of two codes, 1 for the same, None when it is below ``theta_min``."""
        if one == other:
            return 1.0
        rows, columns, cosines = self._both_ways
        ends = torch.searchsorted(rows, torch.tensor([one, one + 1], dtype=torch.int32)).tolist()
        near = columns[ends[0] : ends[1]]
        place = int(torch.searchsorted(near, torch.tensor(other, dtype=torch.int32)))
        found = place < len(near) and int(near[place]) == other
        return float(cosines[ends[0] + place]) if found else None

    def mean_size(self, theta: float) -> float:
        """Mean size of the speech codes' groups at ``theta``, without building them."""
        check_theta(theta)
        above = len(self._sorted) - int(torch.searchsorted(self._sorted, theta, right=True))
        return 1.0 + 2.0 * above / self.n_codes

    @property
    def thetas(self) -> list[float]:
        """A grid from ``theta_min`` to 0.95 in steps of 0.01."""
        low = round(self.theta_min * 100)
        return [step / 100 for step in range(low, 96)]

    def calibrate(self, mean_size: float) -> float:
        """The theta whose groups have this mean size, from 1 (singletons) up.

        Raises:
            PcgError: when the stored pairs do not reach that size.
        """
        pairs = round((mean_size - 1.0) * self.n_codes / 2)
        if pairs < 0 or pairs > len(self._sorted):
            largest = self.mean_size(self.theta_min)
            raise PcgError(f"The mean group size must be between 1 and {largest:.1f} here.")
        if pairs == 0:
            return 1.0
        if pairs == len(self._sorted):
            return self.theta_min
        return float(self._sorted[-pairs] + self._sorted[-pairs - 1]) / 2

    def save(self, folder: Path | str) -> None:
        """Writes ``{kind}.safetensors`` and ``{kind}.json`` into ``folder``."""
        from safetensors.torch import save_file

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        order = (self.first.long() * self.n_codes + self.second).argsort()
        small = torch.uint16 if self.n_codes <= 65_536 else torch.int32
        arrays = {
            "first": self.first[order].to(small),
            "second": self.second[order].to(small),
            "cosines": self.cosines[order],
        }
        save_file(arrays, folder / f"{self.kind}.safetensors")
        about = {
            "version": VERSION,
            "kind": self.kind,
            "theta_min": self.theta_min,
            "n_codes": self.n_codes,
            "vocab_size": self.vocab_size,
            "table": self.table,
        }
        (folder / f"{self.kind}.json").write_text(json.dumps(about, indent=1))

    @classmethod
    def load(
        cls, folder: Path | str, kind: str = "embedding", table: Tensor | None = None
    ) -> NestedGroups:
        """Reads what :meth:`save` wrote; with ``table`` also checks that it was built from it.

        Raises:
            PcgError: when files are missing, damaged, of another version or of another table.
        """
        from safetensors.torch import load_file

        folder = Path(folder)
        try:
            about = json.loads((folder / f"{kind}.json").read_text())
            arrays = load_file(folder / f"{kind}.safetensors")
            first, second = arrays["first"].int(), arrays["second"].int()
            cosines = arrays["cosines"].float()
            version = about["version"]
            known = {k: about[k] for k in ("theta_min", "n_codes", "vocab_size", "table", "kind")}
        except Exception as error:
            raise PcgError(
                f"No usable {kind} groups in {folder.name}: build them again."
            ) from error
        if version != VERSION:
            raise PcgError(f"These groups are of version {version}: build them again.")
        if table is not None and table_hash(table) != known["table"]:
            raise PcgError(
                "These groups were built from another embedding table: build them again."
            )
        return cls(first, second, cosines, **known)


def _unit(rows: Tensor) -> Tensor:
    rows = rows.float()
    length = rows.norm(dim=1, keepdim=True)
    return torch.where(length > 0, rows / length.clamp(min=1e-20), torch.zeros_like(rows))


def _joined(parts: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    first, second, cosines = (torch.cat(list(part)) for part in zip(*parts, strict=True))
    return first, second, cosines
