"""Acoustic Similarity Groups: which speech tokens sound alike (PCG, section 3.1).

Group k holds the ids whose embedding has a cosine above theta with that of k. Cosine is
symmetric, so S(t), the groups that contain t, is G_t itself: one symmetric, reflexive adjacency
serves both. Every id has a group; ids that are not speech codes are alone in theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from pcg.errors import PcgError
from pcg.group_files import read_group_file, table_hash, write_group_file
from pcg.similarity import cosine_pairs

_LARGEST_EVERYTHING = 8192  # a single group of V ids stores V * V entries


@dataclass(frozen=True, eq=False)
class AcousticGroups:
    """A fixed set of groups as a CSR adjacency over the compact vocabulary.

    indptr (V+1,) int64 and indices (nnz,) int32: row k lists G_k in rising order. `n_codes` ids
    are speech codes; `theta` is the cosine they were cut at; `kind` names what was compared
    ("embedding", "mel", "singletons", "everything").
    """

    indptr: Tensor
    indices: Tensor
    theta: float
    vocab_size: int
    n_codes: int
    kind: str = "embedding"
    table_hash: str = ""

    def __post_init__(self) -> None:
        check_theta(self.theta)
        if self.indptr.shape != (self.vocab_size + 1,) or int(self.indptr[-1]) != len(self.indices):
            raise PcgError("These groups are damaged: row bounds and members do not fit; rebuild.")
        if not 0 <= self.n_codes <= self.vocab_size:
            raise PcgError("Groups cannot have more speech codes than the vocabulary has ids.")

    @cached_property
    def sizes(self) -> Tensor:
        """(V,) int64: |G_k|, which is also |S(k)|."""
        return self.indptr[1:] - self.indptr[:-1]

    @cached_property
    def weights(self) -> Tensor:
        """(V,) float64: 1 / |S(t)|, the equal split of a token among the groups it is in."""
        return self.sizes.double().reciprocal()

    @cached_property
    def bounds(self) -> list[int]:
        """`indptr` as Python numbers: a row is found without touching a tensor."""
        bounds: list[int] = self.indptr.tolist()
        return bounds

    def members(self, label: int) -> Tensor:
        """(|G_k|,) int32, rising: the ids in group `label`, which are also the groups S(label)."""
        if not 0 <= label < self.vocab_size:
            raise PcgError(f"Group {label} does not exist; these groups have {self.vocab_size}.")
        return self.indices[self.bounds[label] : self.bounds[label + 1]]

    def size(self, label: int) -> int:
        """|G_k| as a Python number."""
        return self.bounds[label + 1] - self.bounds[label]

    def stats(self) -> dict[str, float | int | str]:
        """Sizes over the speech codes: mean, median, largest, share alone; bytes of the members."""
        sizes = self.sizes[: self.n_codes].double()
        if not len(sizes):
            sizes = torch.ones(1, dtype=torch.float64)
        return {
            "kind": self.kind,
            "theta": self.theta,
            "n_codes": self.n_codes,
            "vocab_size": self.vocab_size,
            "mean_size": float(sizes.mean()),
            "median_size": float(sizes.median()),
            "largest": int(sizes.max()),
            "share_alone": float((sizes == 1).double().mean()),
            "entries": len(self.indices),
            "bytes": self.indices.element_size() * len(self.indices),
        }

    def check(self) -> None:
        """Raise `PcgError` unless the adjacency is reflexive, symmetric and in range."""
        rows = torch.repeat_interleave(torch.arange(self.vocab_size), self.sizes.cpu())
        columns = self.indices.long().cpu()
        if bool(((columns < 0) | (columns >= self.vocab_size)).any()):
            raise PcgError("These groups are damaged: a member lies outside the vocabulary.")
        forward = rows * self.vocab_size + columns
        backward = (columns * self.vocab_size + rows).sort().values
        if not torch.equal(forward, backward):
            raise PcgError("These groups are damaged: membership is not symmetric; rebuild them.")
        if int((rows == columns).sum()) != self.vocab_size:
            raise PcgError("These groups are damaged: an id is missing from its own group.")

    def to(self, device: str | torch.device) -> AcousticGroups:
        """The same groups with their tensors on `device`."""
        return AcousticGroups(
            self.indptr.to(device), self.indices.to(device), self.theta, self.vocab_size,
            self.n_codes, self.kind, self.table_hash,
        )  # fmt: skip

    @classmethod
    def from_table(
        cls, table: Tensor, theta: float, vocab_size: int | None = None, *, kind: str = "embedding",
        progress: bool = False,
    ) -> AcousticGroups:  # fmt: skip
        """Groups of the rows of `table` (n_codes, d) at cosine `theta` in (-1, 1]."""
        nested = NestedGroups.from_table(table, theta, vocab_size, kind=kind, progress=progress)
        return nested.at(theta)

    @classmethod
    def singletons(cls, vocab_size: int) -> AcousticGroups:
        """Every id alone: PCG with these groups is exact speculative decoding."""
        ids = torch.arange(vocab_size + 1)
        return cls(ids, ids[:-1].int(), 1.0, vocab_size, vocab_size, "singletons")

    @classmethod
    def everything(cls, vocab_size: int, n_codes: int | None = None) -> AcousticGroups:
        """One group of all `n_codes` codes (default: all ids), the rest alone: accepts all."""
        codes = vocab_size if n_codes is None else n_codes
        if codes > _LARGEST_EVERYTHING:
            raise PcgError(f"One group of everything is for {_LARGEST_EVERYTHING} ids or fewer.")
        rest = torch.arange(codes, vocab_size, dtype=torch.int32)
        members = torch.arange(codes, dtype=torch.int32).repeat(codes)
        sizes = torch.cat([torch.full((codes,), codes), torch.ones(len(rest), dtype=torch.int64)])
        indptr = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
        indices = torch.cat([members, rest])
        return cls(indptr, indices, -0.999, vocab_size, codes, "everything")

    def save(self, path: str | Path) -> Path:
        """Write `path` (a folder, or a name ending in .safetensors) and the JSON beside it."""
        tensors = {"indptr": self.indptr, "indices": self.indices}
        about = {
            "theta": self.theta, "vocab_size": self.vocab_size, "n_codes": self.n_codes,
            "kind": self.kind, "table": self.table_hash, "stats": self.stats(),
        }  # fmt: skip
        return write_group_file(path, "groups", tensors, about)

    @classmethod
    def load(cls, path: str | Path, table: Tensor | None = None) -> AcousticGroups:
        """Read what `save` wrote; with `table`, refuse groups that were built from another one."""
        tensors, about = read_group_file(path, "groups", ("indptr", "indices"), table)
        return cls(
            tensors["indptr"], tensors["indices"], float(about["theta"]), int(about["vocab_size"]),
            int(about["n_codes"]), str(about["kind"]), str(about["table"]),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class NestedGroups:
    """Every pair of codes with a cosine above `theta_min`, so that a higher theta is a filter.

    rows, columns (n,) int32 with row < column, in order of (row, column), and their cosines (n,)
    float32: each pair once. `at(theta)` gives the groups; the last few are kept.
    """

    rows: Tensor
    columns: Tensor
    cosines: Tensor
    theta_min: float
    vocab_size: int
    n_codes: int
    kind: str = "embedding"
    table_hash: str = ""
    _cache: dict[float, AcousticGroups] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_theta(self.theta_min)
        if not len(self.rows) == len(self.columns) == len(self.cosines):
            raise PcgError("These nested groups are damaged: pairs and cosines differ; rebuild.")

    @classmethod
    def from_table(
        cls, table: Tensor, theta_min: float, vocab_size: int | None = None, *,
        kind: str = "embedding", progress: bool = False, block: int = 2048,
    ) -> NestedGroups:  # fmt: skip
        """Compare the rows of `table` (n_codes, d) blockwise, in float32, each pair once.

        `vocab_size` (default n_codes + 1: the codes and the end of speech) may exceed the codes;
        the ids beyond them are alone. The table may be on a CUDA device; the result is on the CPU.
        """
        check_theta(theta_min)
        if table.ndim != 2 or not len(table):
            raise PcgError("Groups need a table of one embedding row for each speech code.")
        n_codes = len(table)
        vocab_size = n_codes + 1 if vocab_size is None else vocab_size
        if vocab_size < n_codes:
            raise PcgError(f"The table has {n_codes} rows, more than the {vocab_size} ids given.")
        rows, columns, cosines = cosine_pairs(table, theta_min, block=block, progress=progress)
        return cls(
            rows, columns, cosines, theta_min, vocab_size, n_codes, kind, table_hash(table)
        )

    @cached_property
    def adjacency(self) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs mirrored and the diagonal added: row bounds (V+1,), columns, cosines.

        The columns of a row rise; the diagonal's cosine is written as 2, above every theta.
        """
        ids = torch.arange(self.vocab_size, dtype=torch.int64)
        rows, columns = self.rows.long(), self.columns.long()
        key = torch.cat(
            [rows * self.vocab_size + columns, columns * self.vocab_size + rows,
             ids * (self.vocab_size + 1)]
        )  # fmt: skip
        cosines = torch.cat([self.cosines, self.cosines, torch.full((len(ids),), 2.0)])
        key, order = key.sort()
        counts = torch.bincount(key // self.vocab_size, minlength=self.vocab_size)
        return row_bounds(counts), (key % self.vocab_size).int(), cosines[order]

    def at(self, theta: float) -> AcousticGroups:
        """The groups at `theta`, which must not lie below `theta_min`."""
        check_theta(theta)
        if theta < self.theta_min:
            raise PcgError(
                f"theta {theta:g} is below {self.theta_min:g}, the lowest these groups were built "
                "for; raise it or rebuild them with a lower theta_min."
            )
        if theta not in self._cache:
            while len(self._cache) >= 4:
                self._cache.pop(next(iter(self._cache)), None)
            self._cache[theta] = self._filter(theta)
        return self._cache[theta]

    def _filter(self, theta: float) -> AcousticGroups:
        bounds, columns, cosines = self.adjacency
        kept = cosines > theta
        passed = torch.cat([torch.zeros(1, dtype=torch.int64), kept.cumsum(0)])
        return AcousticGroups(
            passed[bounds], columns[kept], theta, self.vocab_size, self.n_codes, self.kind,
            self.table_hash,
        )  # fmt: skip

    @cached_property
    def _falling(self) -> Tensor:
        return self.cosines.sort(descending=True).values

    def mean_size(self, theta: float) -> float:
        """Mean |G_k| over the speech codes at `theta`."""
        check_theta(theta)
        if theta < self.theta_min:
            raise PcgError(f"theta {theta:g} is below {self.theta_min:g}, the lowest built for.")
        above = torch.searchsorted(-self._falling, torch.tensor(-theta, dtype=torch.float32))
        return 1.0 + 2.0 * int(above) / self.n_codes

    def calibrate(self, mean_size: float) -> float:
        """The theta at which the mean group size over the codes comes closest to `mean_size`."""
        if mean_size < 1.0:
            raise PcgError(f"The mean group size must be 1 or more, not {mean_size:g}.")
        pairs = round((mean_size - 1.0) * self.n_codes / 2.0)
        if pairs > len(self.cosines):
            raise PcgError(
                f"These groups reach a mean size of {self.mean_size(self.theta_min):.1f} at most; "
                f"rebuild them with a theta_min below {self.theta_min:g}."
            )
        if pairs == len(self.cosines):
            return self.theta_min
        return max(float(self._falling[pairs]), self.theta_min)

    @property
    def thetas(self) -> tuple[float, ...]:
        """A grid from `theta_min` to just past the closest pair, at most 41 steps."""
        top = min(1.0, float(self._falling[0])) if len(self.cosines) else self.theta_min
        steps = max(1, min(40, round((top - self.theta_min) / 0.01)))
        width = (top - self.theta_min) / steps
        return tuple(round(self.theta_min + i * width, 6) for i in range(steps)) + (top,)

    def save(self, path: str | Path) -> Path:
        """Write `path` (a folder, or a name ending in .safetensors) and the JSON beside it."""
        tensors = {"rows": self.rows, "columns": self.columns, "cosines": self.cosines}
        about = {
            "theta_min": self.theta_min, "vocab_size": self.vocab_size, "n_codes": self.n_codes,
            "kind": self.kind, "table": self.table_hash,
            "mean_size_at_theta_min": self.mean_size(self.theta_min),
        }  # fmt: skip
        return write_group_file(path, "nested-groups", tensors, about)

    @classmethod
    def load(cls, path: str | Path, table: Tensor | None = None) -> NestedGroups:
        """Read what `save` wrote; with `table`, refuse groups that were built from another one."""
        names = ("rows", "columns", "cosines")
        tensors, about = read_group_file(path, "nested-groups", names, table)
        return cls(
            tensors["rows"], tensors["columns"], tensors["cosines"], float(about["theta_min"]),
            int(about["vocab_size"]), int(about["n_codes"]), str(about["kind"]),
            str(about["table"]),
        )  # fmt: skip


def row_bounds(counts: Tensor) -> Tensor:
    """(V,) counts -> (V+1,) int64 bounds of a CSR."""
    return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])


def check_theta(theta: float) -> None:
    """Raise `PcgError` unless theta is a cosine in (-1, 1]."""
    if not -1.0 < theta <= 1.0:
        raise PcgError(f"theta must be a cosine in (-1, 1], not {theta}.")
