"""Acceptance rules by name. A new rule is one file and one line of ``RULES``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from torch import Tensor

from pcg.acceptance.rule import Judgement, Parameter, Rule, RuleSpec, Verdict
from pcg.errors import PcgError
from pcg.groups import AcousticGroups, NestedGroups

__all__ = ["REGISTRY", "Judgement", "Parameter", "Rule", "RuleSpec", "Verdict", "make_rule"]

# In the order in which people see them. A module holds SPEC, or SPECS when it makes several rules.
RULES = (
    "target_only",
    "exact",
    "biased",
    "grouped",
    "lantern",
    "gsd",
    "tolerance",
    "top_k",
    "ensemble",
)


def _specs() -> Iterator[RuleSpec]:
    for name in RULES:
        module = import_module(f"pcg.acceptance.{name}")
        yield from getattr(module, "SPECS", None) or (module.SPEC,)


REGISTRY: dict[str, RuleSpec] = {spec.name: spec for spec in _specs()}


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
