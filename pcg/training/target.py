"""Trains the bundled target: a small Llama that speaks codes at the times its text gives them."""

from __future__ import annotations

import copy
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pcg.codec.bundled import LEVELS, N_CODES, FiniteScalarQuantiser
from pcg.phonemes import Layout
from pcg.training.run import Checkpoint, adamw, cosine_rate, progress
from pcg.training.sequences import Batch, Sequences, split_shards
from pcg.training.tokens import groups_of


def llama_config(layout: Layout, width: int = 256, layers: int = 10) -> Any:
    """The target's ``LlamaConfig``; the draft has the same with fewer layers."""
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=layout.size,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=max(1, width // 128),
        intermediate_size=width * 11 // 4,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        bos_token_id=layout.special,
        eos_token_id=layout.speech_end,
        pad_token_id=layout.special + 1,
    )


def code_features() -> Tensor:
    """``(N_CODES, k)`` smooth functions of a code's digits: near codes have near rows."""
    values = FiniteScalarQuantiser().values(torch.arange(N_CODES))
    pairs = torch.triu_indices(len(LEVELS), len(LEVELS))
    products = values[:, pairs[0]] * values[:, pairs[1]]
    waves = [f(math.pi * k / 2 * values) for k in (1, 2) for f in (torch.sin, torch.cos)]
    features = torch.cat([values, products, *waves], 1)
    return (features - features.mean(0)) / (features.std(0) + 1e-4)


def code_aware_start(model: Any, layout: Layout, seed: int) -> None:
    """Starts embeddings and head of the speech codes from :func:`code_features`."""
    generator = torch.Generator().manual_seed(seed)
    features = code_features()
    with torch.no_grad():
        for table in (model.model.embed_tokens.weight, model.lm_head.weight):
            mix = torch.randn(features.shape[1], table.shape[1], generator=generator)
            rows = features @ mix / features.shape[1] ** 0.5
            table[layout.speech :] = 0.6 * table[layout.speech :] + 0.024 * rows


def speech_loss(model: Any, batch: Batch, layout: Layout) -> tuple[Tensor, Tensor]:
    """Cross-entropy over the end token and the speech ids in nats, and the labelled logits."""
    ids, labels, positions, mask = batch
    hidden = model.model(ids, position_ids=positions, attention_mask=mask).last_hidden_state
    wanted = labels[:, 1:]
    at = hidden[:, :-1][wanted != -100]
    logits = speech_logits(model, at, layout)
    return F.cross_entropy(logits, speech_classes(wanted[wanted != -100], layout)), logits


def speech_logits(model: Any, hidden: Tensor, layout: Layout) -> Tensor:
    """``(n, n_codes + 1)`` logits in the compact order: codes, then the end of speech."""
    head = model.lm_head.weight
    rows = torch.cat([head[layout.speech :], head[layout.speech_end : layout.speech_end + 1]])
    return F.linear(hidden, rows)


def speech_classes(ids: Tensor, layout: Layout) -> Tensor:
    """Model ids of codes and the end token -> compact ids."""
    end = torch.full_like(ids, layout.n_codes)
    return torch.where(ids == layout.speech_end, end, ids - layout.speech)


@torch.no_grad()
def validation_loss(model: Any, sequences: Sequences, layout: Layout, batches: int = 6) -> float:
    """Mean loss over fresh batches of held-out sequences, nats a token."""
    source = sequences.batches(3000)
    device = model.lm_head.weight.device
    losses = []
    for _ in range(batches):
        ids, labels, positions, mask = (part.to(device) for part in next(source))
        losses.append(float(speech_loss(model, (ids, labels, positions, mask), layout)[0]))
    return float(np.mean(losses))


def deepened(model: Any) -> Any:
    """A model of twice the layers that computes what ``model`` computes.

    Behind each layer stands a copy of it whose two last matrices are zero, so that it adds nothing
    until it is trained (block expansion, arXiv 2401.02415).
    """
    config = copy.deepcopy(model.config)
    config.num_hidden_layers *= 2
    if getattr(config, "layer_types", None):
        config.layer_types = [kind for kind in config.layer_types for _ in range(2)]
    deep = type(model)(config)
    state = {}
    for name, value in model.state_dict().items():
        if not name.startswith("model.layers."):
            state[name] = value.clone()
            continue
        number, rest = name.removeprefix("model.layers.").split(".", 1)
        silent = rest in ("self_attn.o_proj.weight", "mlp.down_proj.weight")
        state[f"model.layers.{2 * int(number)}.{rest}"] = value.clone()
        state[f"model.layers.{2 * int(number) + 1}.{rest}"] = (
            torch.zeros_like(value) if silent else value.clone()
        )
    deep.load_state_dict(state)
    return deep


def train_target(
    tokens: Path,
    out: Path,
    work: Path,
    minutes: float,
    seed: int = 0,
    layers: int = 12,
    width: int = 192,
    batch_tokens: int = 1800,
    rate: float = 1.4e-3,
    device: str = "cpu",
    start: Path | None = None,
) -> dict[str, Any]:
    """Trains for ``minutes``, resuming from ``work``; writes a folder ``out``.

    ``start``: a target folder to begin with, at twice its depth (see :func:`deepened`), instead of
    random weights of ``layers`` and ``width``.
    """
    from transformers import LlamaForCausalLM

    torch.manual_seed(seed)
    layout = Layout(N_CODES)
    if start is None:
        model = LlamaForCausalLM(llama_config(layout, width, layers))
        code_aware_start(model, layout, seed)
    else:
        model = deepened(LlamaForCausalLM.from_pretrained(start, dtype="float32"))
    name = "target" if start is None else "deepen"
    model.to(device)
    training, held_out = split_shards(tokens)
    checked = Sequences(groups_of(held_out), layout, seed + 1, jitter=False)
    optimiser = adamw(model, rate)
    checkpoint = Checkpoint(work / f"{name}.pt", model, optimiser)
    step, spent = checkpoint.resume()
    source = Sequences(groups_of(training), layout, seed + step)
    started, mean, seen, batches = time.monotonic() - spent, 0.0, 0, source.batches(batch_tokens)
    report: dict[str, Any] = {"seed": seed, "minutes": minutes, "history": []}
    while (elapsed := (time.monotonic() - started) / 60) < minutes:
        for group in optimiser.param_groups:
            group["lr"] = cosine_rate(rate, step, 300, elapsed / minutes)
        ids, labels, positions, mask = (part.to(device) for part in next(batches))
        loss, logits = speech_loss(model, (ids, labels, positions, mask), layout)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step, seen = step + 1, seen + len(logits)
        mean = float(loss.detach()) if not mean else 0.99 * mean + 0.01 * float(loss.detach())
        if step % 100 == 0:
            progress(name, step, elapsed, minutes, {"loss": mean, "tokens": seen})
        if step % 500 == 0:
            checkpoint.save(step, time.monotonic() - started)
            report["history"].append([step, seen, validation_loss(model, checked, layout)])
            print("validation", report["history"][-1], flush=True)
            save_model(model, layout, out, report)
    report |= {"steps": step, "validation": validation_loss(model, checked, layout, 20)}
    checkpoint.save(step, time.monotonic() - started)
    save_model(model, layout, out, report)
    return report


def save_model(model: Any, layout: Layout, out: Path, report: dict[str, Any]) -> None:
    """``save_pretrained`` in bfloat16 with the tokenizer and ``training.json``."""
    out.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(model).to("cpu", torch.bfloat16).save_pretrained(out)
    tokenizer(layout).save_pretrained(out)
    (out / "training.json").write_text(json.dumps(report, indent=1))


def tokenizer(layout: Layout) -> Any:
    """A fast tokenizer: one token a phoneme symbol, LLaSA's controls and ``<|s_n|>``."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = layout.tokens()
    base = Tokenizer(models.WordLevel({n: i for i, n in enumerate(names)}, unk_token=" "))
    base.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    base.add_special_tokens(
        [AddedToken(name, normalized=False, special=True) for name in names[layout.special :]]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=base,
        bos_token="<|begin_of_text|>",
        eos_token="<|SPEECH_GENERATION_END|>",
        pad_token="<|end_of_text|>",
    )
