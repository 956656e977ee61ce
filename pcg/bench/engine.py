"""`python -m pcg bench engine`: this engine against transformers on the same weights and settings.

Sides take turns, so that whatever else the machine does falls on all of them; figures are medians
of per-turn ratios. transformers runs float32 with its own ``generate``, sampling as the engine
does; its assisted generation uses the same draft, the same lookahead and no confidence threshold.
Every side speaks until its end token or the same budget; rates are tokens over seconds, and, on a
CPU, over the seconds the process computed, which other work on the machine hardly touches.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from pcg.commands import voice_options as options
from pcg.errors import PcgError

TEXTS = (
    "The old bridge was closed for the winter.",
    "She put the letter back into the drawer.",
    "Nobody on the island had seen such a storm.",
    "We will need a longer ladder for that roof.",
)


RATIOS = {
    "target-only over generate": ("engine target-only", "transformers generate"),
    "SD over assisted": ("engine SD", "transformers assisted"),
    "SD over target-only": ("engine SD", "engine target-only"),
    "PCG over target-only": ("engine PCG", "engine target-only"),
    "speech head over whole head": ("engine target-only", "engine target-only, whole head"),
}


def add_parser(subparsers: Any) -> None:
    """Add the benchmark to a parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "engine", description="The engine against transformers, sides in turn."
    )
    parser.add_argument("--model", default="", help="catalogue name or folder")
    parser.add_argument("--draft", help="as for `say`")
    parser.add_argument("--voice", default="")
    parser.add_argument("--transcript", default="")
    parser.add_argument("--device", default="")
    parser.add_argument("--dtype", default="")
    parser.add_argument("--lookahead", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--theta", type=float, help="default: the model's own")
    parser.add_argument("--turns", type=int, default=6, help="each side's turns")
    parser.add_argument("--tokens", type=int, default=150, help="most tokens a turn")
    parser.add_argument("--no-transformers", action="store_true", help="the engine's sides only")
    parser.add_argument("-o", "--out", type=Path, help="store the result as JSON")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure and print; the result may be stored."""
    if args.turns < 1 or args.tokens < 8:
        raise PcgError("A benchmark needs at least one turn and eight tokens.")
    result = measure(args)
    for line in report(result):
        print(line)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(result, indent=1))
    if args.json:
        print(json.dumps(result, separators=(",", ":")))
    return 0


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Every side's turns and what follows from them."""
    model = options.load_model(args)
    if model.draft is None:
        raise PcgError("This benchmark needs a draft: give --draft 'first 1'.")
    bench = Bench(args, model)
    sides: dict[str, Callable[[int], dict[str, float]]] = {
        "engine target-only": lambda turn: bench.speak("target", turn),
        "engine SD": lambda turn: bench.speak("sd", turn),
        "engine PCG": lambda turn: bench.speak("pcg", turn),
        "engine target-only, whole head": lambda turn: bench.speak("target", turn, whole=True),
    }
    if not args.no_transformers:
        sides["transformers generate"] = lambda turn: bench.generate(turn, False)
        sides["transformers assisted"] = lambda turn: bench.generate(turn, True)
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for name, side in sides.items():
        side(0)  # warm: first calls build masks, caches and kernels
        del name
    costs = []
    for turn in range(args.turns):
        costs.append(model.measure(args.lookahead))
        for name, side in sides.items():
            turns[name].append(side(turn))
    return bench.result(turns, costs)


class Bench:
    """One voice model and its twins in transformers."""

    def __init__(self, args: argparse.Namespace, model: Any) -> None:
        from pcg.sampling import Sampling

        self.args, self.model = args, model
        self.sampling = Sampling(args.temperature)
        voice = options.choose_voice(args, model)
        codes = model.voice_codes(voice)
        self.prompts = [model.prompts.build(text, voice, codes) for text in TEXTS]
        self.theta = model.default_theta if args.theta is None else args.theta
        self._whole: Any = None
        self._twins: tuple[Any, Any] | None = None

    def speak(self, name: str, turn: int, whole: bool = False) -> dict[str, float]:
        """One turn of the engine: tokens, seconds and acceptance."""
        from pcg.acceptance import make_rule
        from pcg.decoding import decode
        from pcg.trace import summarise

        target = self.whole_head() if whole else self.model.target
        params = {"theta": self.theta} if name == "pcg" else {}
        rule = make_rule(name, groups=self.model.groups, **params)
        began, computed = time.perf_counter(), time.process_time()
        rounds = list(
            decode(
                target,
                None if name == "target" else self.model.draft,
                self.prompts[turn % len(TEXTS)],
                rule,
                sampling=self.sampling,
                lookahead=self.args.lookahead,
                max_tokens=self.args.tokens,
                seed=turn,
            )
        )
        spent, computed = time.perf_counter() - began, time.process_time() - computed
        facts = summarise(rounds)
        seconds, later = facts["seconds"], rounds[1:]
        return {
            "tokens": facts["tokens"],
            "seconds": spent,
            "rate": facts["tokens"] / spent,
            "cpu_rate": facts["tokens"] / computed,
            "judged": facts["judged"],
            "accepted": facts["accepted"],
            "tokens_per_round": facts["tokens_per_round"] or 1.0,
            "judge_share": seconds["judge"] / seconds["total"],
            "draft_ms": 1e3 * median([r.seconds_draft for r in later]) if later else 0.0,
            "verify_ms": 1e3 * median([r.seconds_verify for r in later]) if later else 0.0,
            "judge_ms": 1e3 * median([r.seconds_judge for r in later]) if later else 0.0,
        }

    def whole_head(self) -> Any:
        """The target with every id scored."""
        if self._whole is None:
            from pcg.loading import load_speech_lm

            target = self.model.target
            self._whole = load_speech_lm(
                self.model.sources["target"], str(target.device), target.dtype, speech_head=False
            )
        return self._whole

    def generate(self, turn: int, assisted: bool) -> dict[str, float]:
        """One turn of transformers' ``generate``."""
        target, draft = self.twins()
        ids = torch.tensor([self.prompts[turn % len(TEXTS)].ids], device=target.device)
        how: dict[str, Any] = {"assistant_model": draft} if assisted else {}
        end = self.model.target.layout.end
        torch.manual_seed(turn)
        began, computed = time.perf_counter(), time.process_time()
        with torch.inference_mode():
            out = target.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=self.args.tokens,
                do_sample=True,
                temperature=self.args.temperature,
                top_k=0,
                top_p=1.0,
                eos_token_id=end,
                pad_token_id=end,
                **how,
            )
        count = int(out.shape[1] - ids.shape[1])
        spent, computed = time.perf_counter() - began, time.process_time() - computed
        return {
            "tokens": count, "seconds": spent, "rate": count / spent, "cpu_rate": count / computed,
        }  # fmt: skip

    def twins(self) -> tuple[Any, Any]:
        """Target and draft as transformers loads them."""
        if self._twins is None:
            from pcg.loading import TYPES, read_model

            target = self.model.target
            dtype = TYPES[target.dtype]
            _, big = read_model(self.model.sources["target"], dtype)
            small = twin_draft(self.model.sources, dtype, len(self.model.draft.llama.layers), big)
            chosen = small.generation_config
            chosen.num_assistant_tokens = self.args.lookahead
            chosen.num_assistant_tokens_schedule = "constant"
            chosen.assistant_confidence_threshold = 0.0
            self._twins = (big.to(target.device), small.to(target.device))
        return self._twins

    def result(
        self, turns: dict[str, list[dict[str, float]]], costs: list[dict[str, float]]
    ) -> dict[str, Any]:
        """Medians, ratios, and the gap between the expected and the measured speed-up."""
        from pcg.theory import expected_speedup

        def ratio(one: str, other: str, key: str) -> float | None:
            if one not in turns or other not in turns:
                return None
            pairs = zip(turns[one], turns[other], strict=True)
            return round(median(a[key] / b[key] for a, b in pairs), 3)

        cost = {key: median(c[key] for c in costs) for key in costs[0]}
        args, model = self.args, self.model
        facts: dict[str, Any] = {"where": where(model), "theta": self.theta}
        facts |= {"lookahead": args.lookahead, "temperature": args.temperature}
        facts |= {"turns": args.turns, "tokens": args.tokens, "seeds": list(range(args.turns))}
        facts["sides"] = {name: _medians(rows) for name, rows in turns.items()}
        facts["ratios"] = {name: ratio(*pair, "rate") for name, pair in RATIOS.items()}
        facts["cpu_ratios"] = {name: ratio(*pair, "cpu_rate") for name, pair in RATIOS.items()}
        facts["costs"] = cost
        for name in ("SD", "PCG"):
            rows = turns[f"engine {name}"]
            judged = sum(row["judged"] for row in rows)
            alpha = sum(row["accepted"] for row in rows) / max(1, judged)
            facts[name] = {
                "alpha": alpha,
                "expected_speedup": expected_speedup(alpha, args.lookahead, cost["c"], cost["v"]),
            }
            facts[name] |= gap(facts["sides"], name, args.lookahead)
        return dict(options.plain(facts))


def gap(sides: dict[str, dict[str, float]], name: str, lookahead: int) -> dict[str, float]:
    """Costs as they were inside the rounds, sampling and judging included, and what they allow.

    ``c`` and ``v`` here are a drafted token and a verification over a target-only token; ``judge``
    is the rule's own time. The bare c and v leave out sampling and judging: that is the gap.
    """
    alone, side = sides["engine target-only"], sides[f"engine {name}"]
    one = alone["verify_ms"] + alone["judge_ms"]
    whole = side["draft_ms"] + side["verify_ms"] + side["judge_ms"]
    return {
        "c_in_rounds": side["draft_ms"] / lookahead / one,
        "v_in_rounds": side["verify_ms"] / one,
        "judge_in_rounds": side["judge_ms"] / one,
        "expected_with_sampling_and_judging": side["tokens_per_round"] * one / whole,
    }


def twin_draft(sources: dict[str, str], dtype: torch.dtype, layers: int, target: Any) -> Any:
    """The draft in transformers: its own folder, or the target with its first layers only."""
    from pcg.loading import read_model

    if Path(sources["draft"]).is_dir():
        return read_model(sources["draft"], dtype)[1]
    _, small = read_model(sources["target"], dtype)
    small.model.layers = small.model.layers[:layers]
    small.config.num_hidden_layers = layers
    del target
    return small


def where(model: Any) -> dict[str, Any]:
    """Machine, versions, types and memory of the models."""
    import transformers

    from pcg.evaluation.origin import hardware
    from pcg.loading import TYPES

    target, draft = model.target, model.draft
    return {
        "model": model.name,
        "hardware": hardware(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "target": target.facts(),
        "draft": draft.facts(),
        "transformers_dtype": str(TYPES[target.dtype]).removeprefix("torch."),
        "peak_memory_mb": peak_memory_mb(),
        "load": round(os.getloadavg()[0], 2),
    }


def peak_memory_mb() -> float:
    """Most memory this process held, on the GPU where there is one."""
    if torch.cuda.is_available():
        return round(torch.cuda.max_memory_allocated() / 1e6, 1)
    import resource

    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1)


def _medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: median(row[key] for row in rows) for key in rows[0]}


def report(result: dict[str, Any]) -> list[str]:
    """Lines for people."""
    place, costs = result["where"], result["costs"]
    lines = [
        f"{place['model']} on {place['hardware']}, {place['threads']} threads, "
        f"{place['target']['dtype']} (transformers {place['transformers_dtype']})"
    ]
    for name, side in result["sides"].items():
        lines.append(
            f"{name:32s} {side['rate']:8.1f} tokens/s, {side['cpu_rate']:8.1f} a computing second"
        )
    for name, value in result["ratios"].items():
        if value:
            lines.append(f"{name:32s} {value:8.2f} x, computing {result['cpu_ratios'][name]:.2f} x")
    lines.append(f"one token {costs['target_ms']:.2f} ms, c {costs['c']:.3f}, v {costs['v']:.2f}")
    for name in ("SD", "PCG"):
        side = result[name]
        lines.append(
            f"{name}: alpha {side['alpha']:.3f}, expected {side['expected_speedup']:.2f} x from "
            f"bare c and v, {side['expected_with_sampling_and_judging']:.2f} x with sampling "
            f"(c {side['c_in_rounds']:.3f}, v {side['v_in_rounds']:.2f}) and judging "
            f"({side['judge_in_rounds']:.2f} of a token)"
        )
    return lines
