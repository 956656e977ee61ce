"""Trains a draft: some of the target's layers, first on data, then on the target's own samples.

The paper's recipe (arXiv 2511.13732) starts a draft from a subset of the target's layers and
trains it on speech. Here it then learns the target's probabilities on sequences that the target
itself spoke (self-distillation), which is what it will be asked to predict. Works for any Llama
with LLaSA's speech tokens.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pcg.errors import PcgError
from pcg.layout import SpeechLayout
from pcg.training.run import Checkpoint, adamw, cosine_rate, progress

Batch = tuple[Tensor, Tensor, Tensor, Tensor]  # ids, labels (-100: none), positions, mask


def parse_layers(layers: str, count: int) -> list[int]:
    """ "first 3", "spread 3" or "0,4,9" -> layer numbers below ``count``, rising.

    Raises:
        PcgError: for anything else, or layers that are not there.
    """
    words = layers.split()
    try:
        if len(words) == 2 and words[0] in ("first", "spread"):
            wanted = int(words[1])
            if not 1 <= wanted <= count:
                raise ValueError
            if words[0] == "first":
                return list(range(wanted))
            return sorted({round(i * (count - 1) / max(1, wanted - 1)) for i in range(wanted)})
        chosen = sorted({int(part) for part in layers.split(",")})
        if chosen and chosen[0] >= 0 and chosen[-1] < count:
            return chosen
    except ValueError:
        pass
    raise PcgError(f'Layers are "first K", "spread K" or a list such as 0,3,7, below {count}.')


def draft_from(target: Any, layers: list[int]) -> Any:
    """A model of the target's class with copies of the chosen layers, embeddings and head."""
    config = copy.deepcopy(target.config)
    config.num_hidden_layers = len(layers)
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[number] for number in layers]
    draft = type(target)(config)
    state = draft.state_dict()
    for name, value in target.state_dict().items():
        if not name.startswith("model.layers."):
            state[name] = value.clone()
            continue
        number, rest = name.removeprefix("model.layers.").split(".", 1)
        if int(number) in layers:
            state[f"model.layers.{layers.index(int(number))}.{rest}"] = value.clone()
    draft.load_state_dict(state)
    return draft


class SpeechHead:
    """Compact logits and classes of any model with speech tokens."""

    def __init__(self, layout: SpeechLayout, device: torch.device | str) -> None:
        rows = layout.head_rows(speech_only=True)
        self.rows = torch.tensor(rows, device=device)
        self.classes = torch.full((layout.size,), -100, device=device)
        self.classes[self.rows] = torch.arange(len(rows), device=device)

    def logits(self, model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """(logits ``(n, n_codes + 1)``, classes ``(n,)``) where speech is predicted."""
        ids, labels, positions, mask = batch
        hidden = model.model(ids, position_ids=positions, attention_mask=mask).last_hidden_state
        wanted = labels[:, 1:]
        at = hidden[:, :-1][wanted != -100]
        return F.linear(at, model.lm_head.weight[self.rows]), self.classes[wanted[wanted != -100]]


def distillation_loss(draft: Tensor, target: Tensor, temperature: float = 0.8) -> Tensor:
    """Mean ``KL(target || draft)`` in nats plus the rejected share ``1 - sum min(P, Q)``.

    Both at the sampling temperature; logits ``(n, V)``. The share is the total variation distance,
    which is what exact matching pays (arXiv 2310.08461 compares the two).
    """
    wanted = (target / temperature).log_softmax(-1)
    offered = (draft / temperature).log_softmax(-1)
    divergence = F.kl_div(offered, wanted, log_target=True, reduction="batchmean")
    return divergence + (offered.exp() - wanted.exp()).abs().sum(-1).mean() / 2


@torch.no_grad()
def acceptance(
    target: Any, draft: Any, head: SpeechHead, batches: list[Batch], temperature: float = 0.8
) -> float:
    """Expected acceptance of exact matching, ``mean of sum min(P, Q)``, on given sequences."""
    total, count = 0.0, 0
    for batch in batches:
        target_logits, _ = head.logits(target, batch)
        draft_logits, _ = head.logits(draft, batch)
        rows = [(x / temperature).softmax(-1) for x in (target_logits, draft_logits)]
        total += float(torch.minimum(*rows).sum())
        count += len(target_logits)
    return total / max(1, count)


def train_draft(
    target: Any,
    layout: SpeechLayout,
    layers: str,
    data: Iterator[Batch] | None,
    samples: Iterator[Batch] | None,
    check: list[Batch],
    out: Path,
    work: Path,
    minutes: tuple[float, float] = (10.0, 10.0),
    rate: float = 1e-3,
    seed: int = 0,
    device: str = "cpu",
    start: Any = None,
) -> dict[str, Any]:
    """Trains on ``data`` for ``minutes[0]``, then on ``samples`` for ``minutes[1]``.

    ``data`` are sequences of a corpus (the target's probabilities and the true tokens are both
    learned); ``samples`` are sequences the target spoke (only its probabilities). Either may be
    None. ``check``: held-out batches for the acceptance that is reported before training, after
    the first part and after distillation. ``start``: a draft to train further, instead of the
    target's bare layers. Writes a ``save_pretrained`` folder ``out``.
    """
    torch.manual_seed(seed)
    target = target.to(device).float().eval().requires_grad_(False)
    draft = draft_from(target, parse_layers(layers, target.config.num_hidden_layers))
    draft = draft.to(device).float().requires_grad_(True)
    head = SpeechHead(layout, device)
    report: dict[str, Any] = {"layers": layers, "seed": seed, "minutes": list(minutes)}
    report["acceptance_start"] = acceptance(target, draft, head, check)
    if start is not None:
        draft = start.to(device).float().requires_grad_(True)
        report["acceptance_data"] = acceptance(target, draft, head, check)
    for name, source, budget in (
        ("data", data, minutes[0]),
        ("distilled", samples, minutes[1]),
    ):
        if source is not None and budget > 0:
            report[f"{name}_steps"] = _stage(
                name, target, draft, head, source, work, budget, rate, device
            )
            report[f"acceptance_{name}"] = acceptance(target, draft, head, check)
            print(name, report, flush=True)
            rate /= 2
    save_draft(draft, out, report)
    return report


def _stage(
    name: str,
    target: Any,
    draft: nn.Module,
    head: SpeechHead,
    source: Iterator[Batch],
    work: Path,
    minutes: float,
    rate: float,
    device: str,
) -> int:
    optimiser = adamw(draft, rate)
    checkpoint = Checkpoint(work / f"draft-{name}.pt", draft, optimiser)
    step, spent = checkpoint.resume()
    started, mean = time.monotonic() - spent, 0.0
    while (elapsed := (time.monotonic() - started) / 60) < minutes:
        for group in optimiser.param_groups:
            group["lr"] = cosine_rate(rate, step, 50, elapsed / minutes)
        ids, labels, positions, mask = (part.to(device) for part in next(source))
        batch = (ids, labels, positions, mask)
        with torch.no_grad():
            target_logits, _ = head.logits(target, batch)
        logits, classes = head.logits(draft, batch)
        loss = distillation_loss(logits, target_logits)
        if name == "data":
            loss = loss + 0.1 * F.cross_entropy(logits, classes)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
        optimiser.step()
        step += 1
        mean = float(loss.detach()) if not mean else 0.97 * mean + 0.03 * float(loss.detach())
        if step % 50 == 0:
            progress(f"draft {name}", step, elapsed, minutes, {"loss": mean})
        if step % 250 == 0:
            checkpoint.save(step, time.monotonic() - started)
    checkpoint.save(step, time.monotonic() - started)
    return step


def save_draft(draft: Any, out: Path, report: dict[str, Any]) -> None:
    """``save_pretrained`` in bfloat16, and ``training.json``."""
    out.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(draft).to("cpu", torch.bfloat16).save_pretrained(out)
    (out / "training.json").write_text(json.dumps(report, indent=1))
