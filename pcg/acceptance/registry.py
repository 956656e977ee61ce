"""The registry of rules: names, parameters with their ranges, one sentence each, guarantees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pcg.acceptance.biased import Biased
from pcg.acceptance.ensemble import Ensemble
from pcg.acceptance.exact import Exact, TargetOnly
from pcg.acceptance.grouped import Grouped
from pcg.acceptance.gsd import RankGrouped
from pcg.acceptance.lantern import Lantern, LanternPlus
from pcg.acceptance.neighbours import Neighbours
from pcg.acceptance.rule import Rule
from pcg.acceptance.tolerance import Tolerance
from pcg.acceptance.top_k import TopK
from pcg.errors import PcgError
from pcg.groups import AcousticGroups, NestedGroups

Groups = AcousticGroups | NestedGroups


@dataclass(frozen=True)
class Parameter:
    """One number of a rule: enough to draw a slider and to check what comes back.

    kind: "float" or "int"; min, max inclusive.
    """

    name: str
    label: str
    default: float
    min: float
    max: float
    step: float
    kind: str
    help: str

    def check(self, value: Any) -> float:
        """`value` as a number in range, or `PcgError`."""
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise PcgError(f"{self.name} must be a number, not {value!r}.") from error
        if not self.min <= number <= self.max:
            raise PcgError(
                f"{self.name} must lie between {self.min:g} and {self.max:g}, not {number:g}."
            )
        if self.kind == "int" and number != int(number):
            raise PcgError(f"{self.name} must be a whole number, not {number:g}.")
        return int(number) if self.kind == "int" else number


Build = Callable[[Groups | None, Tensor | None, dict[str, Any]], Rule]


@dataclass(frozen=True)
class RuleSpec:
    """A rule as it is offered: how it is called, described, set and built."""

    name: str
    label: str
    description: str
    guarantee: str
    parameters: tuple[Parameter, ...]
    source: str
    build: Build
    needs_groups: bool = False
    needs_embeddings: bool = False


def _groups_at(groups: Groups | None, theta: float) -> AcousticGroups:
    if groups is None:
        raise PcgError("PCG needs acoustic groups; load a voice model that has them.")
    return groups.at(theta) if isinstance(groups, NestedGroups) else groups


def _neighbours(embeddings: Tensor | None, count: int) -> Neighbours:
    if embeddings is None:
        raise PcgError("This rule needs the embeddings of the speech codes; load a voice model.")
    return Neighbours(embeddings, min(count, len(embeddings) - 1))


_THETA = Parameter(
    "theta", "Similarity threshold", 0.4, -0.99, 1.0, 0.01, "float",
    "Cosine above which two tokens share a group; lower means larger groups.",
)  # fmt: skip
_BETA = Parameter(
    "beta", "Bias", 0.4, 0.0, 1.0, 0.05, "float", "Added to the chance that any token is kept."
)
_NEAR = Parameter(
    "k", "Neighbours", 100, 1, 2000, 1, "int", "How many nearest tokens may lend their mass."
)
_DELTA = Parameter(
    "delta", "Mass to borrow", 0.1, 0.0, 1.0, 0.01, "float",
    "Most target probability that the neighbours may lend.",
)  # fmt: skip
_LAM = Parameter(
    "lam", "Multiple to borrow", 2.0, 1.0, 10.0, 0.1, "float",
    "Neighbours may raise the token's target probability to at most this multiple of it.",
)  # fmt: skip
_TAU = Parameter(
    "tau", "Tries", 3, 1, 50, 1, "int", "Draws from the target in which the token may turn up."
)
_TOP = Parameter("k", "Ranks", 50, 1, 2000, 1, "int", "How many of the target's best ids pass.")
_W = Parameter(
    "w", "Weight of the target", 0.7, 0.0, 1.0, 0.05, "float", "1 is exact; 0 keeps every draft."
)

_EXACT = "every token has the target's law"

_SPECS = (
    RuleSpec(
        "target", "Target only", "The large model alone, one token at a time: the baseline.",
        _EXACT, (), "baseline", lambda groups, table, given: TargetOnly(),
    ),
    RuleSpec(
        "sd", "Exact (SD)", "Keeps a drafted token with chance Q/P, so nothing changes but speed.",
        _EXACT, (), "arXiv 2211.17192", lambda groups, table, given: Exact(),
    ),
    RuleSpec(
        "ssd", "Biased (SSD)", "Exact acceptance plus a constant bias, which trades law for speed.",
        "none; drift is the sum of min(beta P, P - Q) where Q < P", (_BETA,), "arXiv 2505.15380",
        lambda groups, table, given: Biased(**given),
    ),
    RuleSpec(
        "pcg", "Group-level (PCG)",
        "Weighs a group of tokens that sound alike instead of the token itself.",
        "the group of every token has the target's law", (_THETA,), "arXiv 2511.13732",
        lambda groups, table, given: Grouped(_groups_at(groups, given["theta"])),
        needs_groups=True,
    ),
    RuleSpec(
        "lantern", "LANTERN", "A token borrows target mass from its nearest tokens, up to a sum.",
        "at most delta of probability moves at a step", (_NEAR, _DELTA), "arXiv 2410.03355",
        lambda groups, table, given: Lantern(_neighbours(table, given["k"]), given["delta"]),
        needs_embeddings=True,
    ),
    RuleSpec(
        "lantern++", "LANTERN++", "LANTERN with the mass borrowed bound by the token's own.",
        "at most (lam - 1) Q(t) moves at a step", (_NEAR, _LAM), "arXiv 2502.06352",
        lambda groups, table, given: LanternPlus(_neighbours(table, given["k"]), given["lam"]),
        needs_embeddings=True,
    ),
    RuleSpec(
        "gsd", "Rank-grouped (GSD)", "Weighs the ids near a token in the target's ranking as one.",
        "none", (), "arXiv 2508.07747",
        lambda groups, table, given: RankGrouped(_neighbours(table, 1)), needs_embeddings=True,
    ),
    RuleSpec(
        "tolerance", "Tolerance", "Keeps a token that the target would draw within a few tries.",
        "none", (_TAU,), "arXiv 2410.21951", lambda groups, table, given: Tolerance(**given),
    ),
    RuleSpec(
        "top_k", "Top-k check", "Keeps a token that is among the target's k most likely.",
        "none", (_TOP,), "arXiv 2508.06262", lambda groups, table, given: TopK(**given),
    ),
    RuleSpec(
        "ensemble", "Ensemble", "Exact decoding against a blend of target and draft.",
        "every verified token has law w Q + (1 - w) P", (_W,), "arXiv 2604.07622",
        lambda groups, table, given: Ensemble(**given),
    ),
)  # fmt: skip

REGISTRY: dict[str, RuleSpec] = {spec.name: spec for spec in _SPECS}


def make_rule(
    name: str, groups: Groups | None = None, embeddings: Tensor | None = None, **params: Any
) -> Rule:
    """The rule `name`; parameters left out take their defaults, unknown or out of range ones fail.

    `groups` for "pcg" (nested ones are filtered at theta; fixed ones keep their own theta and
    refuse another), `embeddings` (n_codes, d) for the LANTERN family and GSD.
    """
    spec = REGISTRY.get(name)
    if spec is None:
        raise PcgError(f"No rule is called {name!r}; choose one of {', '.join(REGISTRY)}.")
    known = {parameter.name: parameter for parameter in spec.parameters}
    for given in params:
        if given not in known:
            takes = ", ".join(known) or "no parameters"
            raise PcgError(f"The rule {name!r} has no parameter {given!r}; it takes {takes}.")
    if isinstance(groups, AcousticGroups) and "theta" in params and spec.needs_groups:
        if abs(float(params["theta"]) - groups.theta) > 1e-6:
            raise PcgError(
                f"These groups are fixed at theta {groups.theta:g}; give nested groups to change it."
            )
    checked = {
        key: parameter.check(params.get(key, parameter.default)) for key, parameter in known.items()
    }
    return spec.build(groups, embeddings, checked)
