"""The Learn tab's check: the eight-token world's exact laws by the library itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from pcg import coarse, theory
from pcg.errors import PcgError
from pcg.groups import AcousticGroups

TOKENS = 8


def world_laws(world: Any) -> dict[str, Any]:
    """Acceptance, token law and (for PCG) label law of SD, SSD and PCG.

    Raises `PcgError` for anything but two distributions over eight tokens, a symmetric
    reflexive relation and beta in 0..1.
    """
    if not isinstance(world, Mapping):
        raise PcgError("The eight-token world is an object with draft, target, links and beta.")
    draft, target = (_row(world.get(name), name) for name in ("draft", "target"))
    groups = _groups(world.get("links"))
    beta = world.get("beta")
    if not isinstance(beta, (int, float)) or not 0 <= beta <= 1:
        raise PcgError("Beta must be a number from 0 to 1.")
    pc, qc = (coarse.all_coarse_probs(row, groups) for row in (draft, target))
    label = torch.minimum(pc, qc) + (qc - pc).clamp(min=0)
    return {
        "sd": {"alpha": theory.sd_alpha(draft, target), "token": target.tolist()},
        "ssd": {
            "alpha": theory.ssd_alpha(draft, target, float(beta)),
            "token": theory.ssd_law(draft, target, float(beta)).tolist(),
        },
        "pcg": {
            "alpha": float(coarse.group_alpha(draft, target, groups)),
            "token": theory.grouped_law(draft, target, groups).tolist(),
            "label": label.tolist(),
        },
    }


def _row(values: Any, name: str) -> torch.Tensor:
    good = (
        isinstance(values, list)
        and len(values) == TOKENS
        and all(isinstance(v, (int, float)) and math.isfinite(v) and v >= 0 for v in values)
        and abs(sum(values) - 1) < 1e-6
    )
    if not good:
        raise PcgError(f"The {name} must be eight probabilities that add up to 1.")
    return torch.tensor(values, dtype=torch.float64)


def _groups(links: Any) -> AcousticGroups:
    places = range(TOKENS)
    good = (
        isinstance(links, list)
        and len(links) == TOKENS
        and all(isinstance(row, list) and len(row) == TOKENS for row in links)
        and all(links[i][i] and links[i][j] == links[j][i] for i in places for j in places)
    )
    if not good:
        raise PcgError("The links must be eight by eight, symmetric, with every token in its own.")
    return AcousticGroups.from_sets([[j for j in places if links[i][j]] for i in places])
