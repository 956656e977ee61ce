"""Toy voices without weights: tables of next-token rows in which sounds come in families.

A token is a family (a, e, i, o, u, s) and a shade (1..4). Draft and target agree on which family
comes next and differ on the shade, which is where group acceptance differs from exact matching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pcg import theory
from pcg.acceptance import make_rule
from pcg.acceptance.rule import Rule
from pcg.coarse import all_coarse_probs
from pcg.decoding import Prompt, decode
from pcg.groups import AcousticGroups, NestedGroups
from pcg.sampling import Sampling
from pcg.trace import Trace

FAMILIES, SHADES = "aeious", 4
CODES = len(FAMILIES) * SHADES
END = CODES
THETA = 0.9
PROMPT = Prompt((0,))


def name_of(token: int) -> str:
    """``a1`` .. ``s4``, or ``end``."""
    return "end" if token == END else f"{FAMILIES[token // SHADES]}{token % SHADES + 1}"


def embeddings() -> Tensor:
    """(CODES, 3): shades of one family lie close, and the families on a circle apart."""
    angle = torch.tensor([token // SHADES for token in range(CODES)]) * (torch.pi / 3)
    shade = torch.tensor([float(token % SHADES) for token in range(CODES)])
    turn = angle + 0.12 * (shade - 1.5)
    return torch.stack([turn.cos(), turn.sin(), 0.25 * (shade - 1.5)], 1)


class TableModel:
    """The next token depends on the last only. ``logits`` (V, V); the prompt reads row 0."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits
        self.vocab_size, self.end_id, self.max_positions = len(logits), END, 4096

    def open(self) -> TableSession:
        return TableSession(self)


class TableSession:
    """A cache that is a list of ids."""

    def __init__(self, model: TableModel) -> None:
        self.model, self.ids = model, list[int]()

    @property
    def length(self) -> int:
        return len(self.ids)

    def prefill(self, prompt: Prompt) -> Tensor:
        self.ids = list(prompt.ids)
        return self.model.logits[0]

    def step(self, ids: Sequence[int]) -> Tensor:
        self.ids += ids
        return self.model.logits[list(ids)]

    def crop(self, length: int) -> None:
        del self.ids[length:]

    def close(self) -> None:
        self.ids.clear()


def models(seed: int) -> tuple[TableModel, TableModel]:
    """(target, draft): the same families after each token, other shades."""
    maker = torch.Generator().manual_seed(seed)
    size = CODES + 1
    family = 1.6 * torch.randn(size, len(FAMILIES), generator=maker)
    shared = family.repeat_interleave(SHADES, 1)
    tables = []
    for _ in range(2):
        logits = torch.full((size, size), -3.0)
        logits[:, :CODES] = shared + 1.4 * torch.randn(size, CODES, generator=maker)
        tables.append(logits)
    return TableModel(tables[0]), TableModel(tables[1])


@dataclass(frozen=True)
class Demo:
    """What was run: groups, one trace a rule, and the closing figures a rule."""

    groups: AcousticGroups
    beta: float
    traces: dict[str, Trace]
    figures: dict[str, dict[str, Any]]


def run(seed: int, max_tokens: int = 24, lookahead: int = 3, theta: float = THETA) -> Demo:
    """SD, SSD and PCG on the same tables and random stream.

    SSD's beta is set so that it accepts as often as PCG over all rows of the tables: at equal
    acceptance the drifts can be compared.
    """
    target, draft = models(seed)
    groups = NestedGroups.from_table(embeddings(), theta, CODES + 1).at(theta)
    rows = draft.logits.softmax(1), target.logits.softmax(1)
    alpha = 1 - float(all_coarse_probs(rows[0] - rows[1], groups).abs().sum(1).mean()) / 2
    beta = theory.equal_acceptance_beta(*rows, alpha)
    traces: dict[str, Trace] = {}
    figures: dict[str, dict[str, Any]] = {}
    arms: dict[str, dict[str, Any]] = {"sd": {}, "ssd": {"beta": beta}, "pcg": {}}
    for name, params in arms.items():
        rule = make_rule(name, groups=groups, **params)
        trace = Trace({"rule": name, "params": rule.params, "seed": seed, "n_codes": CODES})
        for one in decode(
            target, draft, PROMPT, rule,
            sampling=Sampling(temperature=1.0), lookahead=lookahead, max_tokens=max_tokens,
            seed=seed,
        ):  # fmt: skip
            trace.append(one)
        traces[name] = trace
        figures[name] = {**trace.summary(), **expected(rule, *rows, groups, lookahead)}
    return Demo(groups, beta, traces, figures)


def expected(
    rule: Rule, draft: Tensor, target: Tensor, groups: AcousticGroups, lookahead: int
) -> dict[str, float]:
    """Exact means over all rows: acceptance, tokens a round, drift of tokens and of their groups.

    The group drift is that of labels drawn afresh from the emitted tokens, the same for each rule;
    the labels that PCG itself draws do not drift.
    """
    beta = rule.params.get("beta", 0.0)
    if rule.name == "pcg":
        law = torch.stack([theory.grouped_law(*pair, groups) for pair in zip(draft, target)])
        alpha = 1 - float(all_coarse_probs(draft - target, groups).abs().sum(1).mean()) / 2
    else:
        law, alpha = theory.ssd_law(draft, target, beta), theory.ssd_alpha(draft, target, beta)
    return {
        "expected_acceptance": alpha,
        "expected_tokens_per_round": theory.expected_tokens(min(alpha, 1.0), lookahead),
        "token_drift": float(theory.drift(law, target).mean()),
        "group_drift": float(all_coarse_probs(law - target, groups).abs().sum(1).mean()) / 2,
    }
