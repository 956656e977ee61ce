"""`python -m pcg bench gpu`: random Llamas of LLaSA's sizes; what the engine makes of the device.

Weights are random, so acceptance means nothing here; times and shares do. For each size: tokens/s
of transformers' ``generate`` and assisted generation, of the engine alone and with a draft of
three layers, the costs c and v, the share of judging, and the share of the memory bandwidth that
reading the weights once a token amounts to.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from pcg.bench.engine import peak_memory_mb
from pcg.commands.voice_options import plain
from pcg.errors import PcgError

N_CODES = 65_536


@dataclass(frozen=True)
class Size:
    """Shape of a Llama; ``text`` ids come before the speech ids."""

    width: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    tied: bool
    text: int = 128_264
    n_codes: int = N_CODES


SIZES = {
    "llasa-1b": Size(2048, 16, 32, 8, 8192, True),
    "llasa-3b": Size(3072, 28, 24, 8, 8192, True),
    "llasa-8b": Size(4096, 32, 32, 8, 14336, False),
    "tiny": Size(64, 4, 4, 2, 128, False, text=300, n_codes=500),
}


def add_parser(subparsers: Any) -> None:
    """Add the benchmark to a parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser("gpu", description=__doc__)
    parser.add_argument("--sizes", default="llasa-1b llasa-8b", help="space separated")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto", help="auto: bfloat16 on CUDA, else float32")
    parser.add_argument("--draft-layers", type=int, default=3)
    parser.add_argument("--lookahead", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--prompt", type=int, default=300, help="ids of the prompt")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--gbps", type=float, default=0.0, help="the device's bandwidth, GB/s")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure every size; the result may be stored."""
    unknown = [name for name in args.sizes.split() if name not in SIZES]
    if unknown:
        raise PcgError(f"There is no size {unknown[0]!r}; choose from {', '.join(SIZES)}.")
    result: dict[str, Any] = {"settings": {k: v for k, v in vars(args).items() if k != "run"}}
    result["settings"]["out"] = str(args.out)
    for name in args.sizes.split():
        result[name] = plain(measure(SIZES[name], args))
        print(name, json.dumps(result[name], indent=1))
        if args.out:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            args.out.write_text(json.dumps(result, indent=1))
    if args.json:
        print(json.dumps(result, separators=(",", ":")))
    return 0


def measure(size: Size, args: argparse.Namespace) -> dict[str, Any]:
    """All figures of one size. transformers goes first: the engine takes its weights over."""
    from pcg.evaluation.origin import hardware
    from pcg.loading import TYPES, assemble, pick_device

    device = pick_device(args.device)
    fallback = "bfloat16" if device.type == "cuda" else "float32"
    dtype = fallback if args.dtype == "auto" else args.dtype
    model = random_llama(size, TYPES[dtype], device)
    facts: dict[str, Any] = {"hardware": hardware(), "dtype": dtype, "device": str(device)}
    facts["transformers"] = transformers_rates(model, args, device)
    lm = assemble(model, Tokens(size), "random", device, dtype, True, 2048)
    draft = lm.layer_subset(f"first {args.draft_layers}")
    del model
    facts["engine"] = lm.facts()
    sides = {
        "target-only": lambda: engine_rate(lm, None, "target", args),
        "SD": lambda: engine_rate(lm, draft, "sd", args),
        "PCG": lambda: engine_rate(lm, draft, "pcg", args),
    }
    facts["rates"] = _turns(sides, args.turns)
    one, many = lm.step_seconds(1), lm.step_seconds(args.lookahead + 1)
    facts["costs"] = {"target_ms": 1e3 * one, "c": draft.step_seconds(1) / one, "v": many / one}
    if args.gbps:
        facts["bandwidth_share"] = lm.llama.bytes() / one / (args.gbps * 1e9)
    facts["peak_memory_mb"] = peak_memory_mb()
    return facts


def random_llama(size: Size, dtype: torch.dtype, device: torch.device) -> Any:
    """A ``LlamaForCausalLM`` with small random weights, made on the device."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=size.text + size.n_codes, hidden_size=size.width,
        num_hidden_layers=size.layers, num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads, intermediate_size=size.inner,
        head_dim=size.width // size.heads, max_position_embeddings=2048,
        tie_word_embeddings=size.tied, bos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    )  # fmt: skip
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.to(device=device, dtype=dtype).eval().requires_grad_(False)


class Tokens:
    """A tokenizer's vocabulary without its text: speech ids last, the end token before them."""

    def __init__(self, size: Size) -> None:
        self.size = size

    def get_vocab(self) -> dict[str, int]:
        """Tokens and their ids."""
        speech = {f"<|s_{n}|>": self.size.text + n for n in range(self.size.n_codes)}
        return {"<|SPEECH_GENERATION_END|>": self.size.text - 3, **speech}


def engine_rate(lm: Any, draft: Any, name: str, args: argparse.Namespace) -> dict[str, float]:
    """Tokens a second and the judge's share of one decoding."""
    from pcg.acceptance import make_rule
    from pcg.decoding import Prompt, decode
    from pcg.groups import AcousticGroups
    from pcg.sampling import Sampling
    from pcg.trace import summarise

    groups = AcousticGroups.singletons(lm.vocab_size)
    prompt = Prompt(tuple(range(3, 3 + args.prompt)))
    rule = make_rule(name, groups=groups)
    lookahead = args.lookahead if draft is not None else 0
    began = time.perf_counter()
    rounds = list(
        decode(
            lm, draft, prompt, rule, sampling=Sampling(), lookahead=lookahead,
            max_tokens=args.tokens, seed=0,
        )
    )  # fmt: skip
    spent, facts = time.perf_counter() - began, summarise(rounds)
    seconds = facts["seconds"]
    return {
        "tokens_per_second": facts["tokens"] / spent,
        "judge_share": seconds["judge"] / seconds["total"],
        "tokens_per_round": facts["tokens_per_round"] or 1.0,
        "acceptance": facts["acceptance_rate"] or 0.0,
    }


def transformers_rates(
    model: Any, args: argparse.Namespace, device: torch.device
) -> dict[str, dict[str, float]]:
    """Tokens a second of ``generate`` and of assisted generation with the first layers."""
    import copy

    small = copy.copy(model)
    small._modules = dict(model._modules)
    small.model = copy.copy(model.model)
    small.model._modules = dict(model.model._modules)
    small.model.layers = model.model.layers[: args.draft_layers]
    small.config = copy.deepcopy(model.config)
    small.config.num_hidden_layers = small.model.config.num_hidden_layers = args.draft_layers
    small.model.config = small.config
    model.config.num_hidden_layers = len(model.model.layers)
    small.generation_config = copy.deepcopy(model.generation_config)
    small.generation_config.num_assistant_tokens = args.lookahead
    small.generation_config.num_assistant_tokens_schedule = "constant"
    small.generation_config.assistant_confidence_threshold = 0.0
    ids = torch.arange(3, 3 + args.prompt, device=device)[None]

    def speak(assistant: Any) -> dict[str, float]:
        how = {"assistant_model": assistant} if assistant is not None else {}
        began = time.perf_counter()
        with torch.inference_mode():
            out = model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=args.tokens,
                do_sample=True, temperature=0.8, top_k=0, top_p=1.0, eos_token_id=None,
                pad_token_id=0, **how,
            )  # fmt: skip
        count = int(out.shape[1]) - args.prompt
        return {"tokens_per_second": count / (time.perf_counter() - began)}

    return _turns({"generate": lambda: speak(None), "assisted": lambda: speak(small)}, args.turns)


def _turns(
    sides: dict[str, Callable[[], dict[str, float]]], turns: int
) -> dict[str, dict[str, float]]:
    """Each side once unmeasured, then in turn; medians."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for turn in range(turns + 1):
        for name, side in sides.items():
            figures = side()
            if turn:
                found[name].append(figures)
    return {
        name: {key: median(row[key] for row in rows) for key in rows[0]}
        for name, rows in found.items()
    }


