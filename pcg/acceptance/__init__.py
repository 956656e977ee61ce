"""Acceptance rules by name. A new rule is one file and one line of ``_SPECS``."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pcg.acceptance import (
    biased,
    ensemble,
    exact,
    grouped,
    gsd,
    lantern,
    target_only,
    tolerance,
    top_k,
)
from pcg.acceptance.rule import Judgement, Parameter, Rule, RuleSpec, Verdict
from pcg.errors import PcgError
from pcg.groups import AcousticGroups, NestedGroups

__all__ = ["REGISTRY", "Judgement", "Parameter", "Rule", "RuleSpec", "Verdict", "make_rule"]

_SPECS = (
    target_only.SPEC,
    exact.SPEC,
    biased.SPEC,
    grouped.SPEC,
    lantern.SPEC,
    lantern.SPEC_PLUS,
    gsd.SPEC,
    tolerance.SPEC,
    top_k.SPEC,
    ensemble.SPEC,
)
REGISTRY: dict[str, RuleSpec] = {spec.name: spec for spec in _SPECS}


def make_rule(
    name: str,
    groups: AcousticGroups | NestedGroups | None = None,
    embeddings: Tensor | None = None,
    **params: Any,
) -> Rule:
    """A rule by its registered name with its parameters.

    ``groups``: the groups PCG uses; nested groups are filtered at ``theta``. ``embeddings``
    ``(n_codes, d)``: for the rules that need neighbours.

    Raises:
        PcgError: for an unknown name or parameter, a value out of range, or missing groups.
    """
    if name not in REGISTRY:
        raise PcgError(f"There is no rule {name!r}; choose one of {', '.join(REGISTRY)}.")
    spec = REGISTRY[name]
    known = {parameter.name: parameter for parameter in spec.parameters}
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise PcgError(f"{spec.label} has no parameter {unknown[0]!r}.")
    checked = {key: known[key].check(value) for key, value in params.items()}
    if spec.needs_groups:
        if isinstance(groups, NestedGroups):
            theta = checked.get("theta", known["theta"].default)
            groups = groups.at(max(theta, groups.theta_min) if "theta" not in checked else theta)
        return spec.make(groups, **checked)
    if spec.needs_embeddings:
        return spec.make(embeddings, **checked)
    return spec.make(**checked)
