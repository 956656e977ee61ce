"""A visitor's inputs, checked against the house's limits before anything runs."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcg.errors import PcgError
from pcg.ui import runtime

SEED_LIMIT = 2**31 - 1
DEFAULT_RULES = ("target", "sd", "ssd", "pcg")


@dataclass(frozen=True)
class Choices:
    """Checked inputs of one comparison; `rules` are (name, parameters) pairs."""

    text: str
    rules: tuple[tuple[str, dict[str, float]], ...]
    lookahead: int
    temperature: float
    top_p: float
    top_k: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data for the permalink and the zip's settings file."""
        return {
            "text": self.text,
            "rules": [{"rule": name, "params": params} for name, params in self.rules],
            "lookahead": self.lookahead,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "seed": self.seed,
        }


def number_in(value: Any, name: str, low: float, high: float) -> float:
    """A finite number inside [low, high], or one `PcgError` sentence naming it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and low <= number <= high):
        raise PcgError(f"{name} must be a number from {low:g} to {high:g}.")
    return number


def check_text(text: Any) -> str:
    """The text without outer blanks; refuses none and too much."""
    most = runtime.limits().max_text_chars
    cleaned = str(text or "").strip()
    if not cleaned:
        raise PcgError("Type a sentence to say first.")
    if len(cleaned) > most:
        raise PcgError(f"The text has {len(cleaned)} characters; {most} are the most here.")
    return cleaned


def check_rules(rules: Any) -> tuple[tuple[str, dict[str, float]], ...]:
    """Rules of the picker against the registry, each parameter inside its range."""
    from pcg.acceptance import REGISTRY

    if not isinstance(rules, Sequence) or isinstance(rules, str) or not rules:
        raise PcgError("Choose at least one rule.")
    most = runtime.limits().max_rules
    if len(rules) > most:
        raise PcgError(f"At most {most} rules can be compared at once.")
    checked = []
    for item in rules:
        name = item.get("rule") if isinstance(item, Mapping) else None
        spec = REGISTRY.get(name) if isinstance(name, str) else None
        if spec is None:
            raise PcgError(f"There is no rule called {str(name)[:40]!r}.")
        given = item.get("params") or {}
        params = {}
        for p in spec.parameters:
            label = f"{spec.label}: {p.label}"
            value = number_in(given.get(p.name, p.default), label, p.minimum, p.maximum)
            params[p.name] = int(value) if p.kind == "int" else value
        checked.append((spec.name, params))
    return tuple(checked)


def check(
    text: Any,
    rules: Any,
    lookahead: Any,
    temperature: Any,
    top_p: Any,
    top_k: Any,
    seed: Any,
) -> Choices:
    """All inputs of a comparison, or one `PcgError` sentence about the first that is wrong."""
    return Choices(
        text=check_text(text),
        rules=check_rules(rules),
        lookahead=int(number_in(lookahead, "Lookahead", 1, runtime.limits().max_lookahead)),
        temperature=number_in(temperature, "Temperature", 0.0, 2.0),
        top_p=number_in(top_p, "Top-p", 0.01, 1.0),
        top_k=int(number_in(top_k, "Top-k", 0, 1_000_000)),
        seed=int(number_in(seed, "Seed", 0, SEED_LIMIT)),
    )


def new_seed() -> int:
    """A seed short enough to read out."""
    return secrets.randbelow(100_000)


def registry_view(default_theta: float | None = None) -> list[dict[str, Any]]:
    """The rule registry as data for the picker; theta starts at the model's calibrated value."""
    from pcg.acceptance import REGISTRY

    view = []
    for spec in REGISTRY.values():
        parameters = []
        for p in spec.parameters:
            start = default_theta if p.name == "theta" and default_theta is not None else p.default
            parameters.append(
                {
                    "name": p.name,
                    "label": p.label,
                    "default": start,
                    "min": p.minimum,
                    "max": p.maximum,
                    "step": p.step,
                    "help": p.help,
                }
            )
        view.append(
            {
                "name": spec.name,
                "label": spec.label,
                "description": spec.description,
                "guarantee": spec.guarantee,
                "parameters": parameters,
            }
        )
    return view


def default_rules(registry: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Target only, SD, SSD and PCG at the parameters the registry starts with."""
    by_name = {spec["name"]: spec for spec in registry}
    return [
        {"rule": name, "params": {p["name"]: p["default"] for p in by_name[name]["parameters"]}}
        for name in DEFAULT_RULES
        if name in by_name
    ]


def rule_label(name: str, params: Mapping[str, float]) -> tuple[str, str]:
    """A rule's short name and its parameters in words."""
    from pcg.acceptance import REGISTRY

    spec = REGISTRY[name]
    labels = {p.name: p.label for p in spec.parameters}
    detail = ", ".join(f"{labels.get(k, k)} {v:.4g}" for k, v in params.items())
    return spec.label, detail
