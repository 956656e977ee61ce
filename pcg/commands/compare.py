"""`python -m pcg compare`: rules side by side on the same text, voice and seed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pcg.commands import voice_options as options

COLUMNS = ("rule", "tokens/s", "speed-up", "expected", "accepted", "a round", "seconds")


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compare",
        help="speak a text by several rules: table, WAV files and traces",
        description="Speak TEXT by every rule with the same voice and seed.",
    )
    options.add_options(parser)
    parser.add_argument(
        "--rules", default="", help="space separated, such as 'target sd pcg:theta=0.4' (all)"
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("compare"), help="folder (compare)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    from pcg.acceptance import REGISTRY

    model = options.load_model(args)
    voice = options.choose_voice(args, model)
    chosen = args.rules.split() if args.rules else list(REGISTRY)
    if "target" not in chosen:
        chosen.insert(0, "target")
    rows: list[dict[str, Any]] = []
    for text in chosen:
        name, params = options.parse_rule(text)
        request = options.make_request(args, model, voice, name, params)
        rows.append(_speak(args, model, request, text))
    rows.sort(key=lambda row: row["rule"] != "target")
    table(rows, model.measured, args.lookahead)
    print(f"WAV files and traces in {args.out}")
    result = {"model": model.name, "dtype": model.target.dtype, "measured": model.measured}
    result["rules"] = rows
    (args.out / "compare.json").write_text(json.dumps(options.plain(result), indent=1))
    if args.json:
        print(json.dumps(options.plain(result), separators=(",", ":")))
    return 0


def _speak(args: argparse.Namespace, model: Any, request: Any, text: str) -> dict[str, Any]:
    from pcg.synthesis import Finished, speak

    *_, result = speak(model, request, preview=False)
    assert isinstance(result, Finished)
    stem = "".join(c if c.isalnum() or c in "-.=" else "_" for c in text)
    options.write_wav(args.out / f"{stem}.wav", result.audio, model.codec.sample_rate)
    result.trace.save(args.out / f"{stem}.jsonl")
    return {"rule": text, "summary": options.plain(result.summary)}


def table(rows: list[dict[str, Any]], measured: dict[str, float], lookahead: int) -> None:
    """Print one line a rule; speed-up is over target-only of this run."""
    from pcg.theory import expected_speedup

    base = rows[0]["summary"]["tokens_per_second"]
    print("  ".join(f"{column:>10}" for column in COLUMNS))
    for row in rows:
        summary = row["summary"]
        rate, alpha = summary["tokens_per_second"], summary.get("acceptance_rate")
        row["speedup"] = rate / base if base else None
        cells = [row["rule"], f"{rate or 0:.0f}", f"{row['speedup'] or 0:.2f}x"]
        if row["rule"] == "target" or alpha is None:
            cells += ["", "", ""]
        else:
            row["expected"] = float(
                expected_speedup(alpha, lookahead, measured.get("c", 0.0), measured.get("v", 1.0))
            )
            cells += [f"{row['expected']:.2f}x", f"{100 * alpha:.0f} %"]
            cells += [f"{summary['tokens_per_round']:.2f}"]
        cells += [f"{summary['audio_seconds']:.2f}"]
        print("  ".join(f"{cell:>10}" for cell in cells))
