"""`python -m pcg say`: one text, one voice, one rule; a WAV and, if asked, the trace."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pcg.commands import voice_options as options


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "say", help="speak a text to a WAV file", description="Speak TEXT to a WAV file."
    )
    options.add_options(parser)
    parser.add_argument("--rule", default="pcg", help="target, sd, ssd:beta=0.4, pcg:theta=0.4")
    parser.add_argument("-o", "--out", type=Path, default=Path("speech.wav"))
    parser.add_argument("--trace", type=Path, help="write every round here (JSON lines)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    from pcg.synthesis import Finished, Started, speak

    model = options.load_model(args)
    voice = options.choose_voice(args, model)
    request = options.make_request(args, model, voice, *options.parse_rule(args.rule))
    for event in speak(model, request, preview=False):
        if isinstance(event, Started):
            for sentence in event.sentences:
                print(sentence)
        elif isinstance(event, Finished):
            result = event
    rate = model.codec.sample_rate
    options.write_wav(args.out, result.audio, rate)
    if args.trace:
        result.trace.save(args.trace)
    summary = options.plain(result.summary)
    speed = summary.get("tokens_per_second") or 0
    print(
        f"{summary['audio_seconds']:.2f} s of speech at {speed:.0f} "
        f"tokens/s ({model.target.dtype}, {model.target.device}) -> {args.out}"
    )
    if args.json:
        facts = {"out": str(args.out), "model": model.name, "voice": voice and voice.name}
        facts |= {"measured": options.plain(model.measured), "summary": summary}
        print(json.dumps(facts, separators=(",", ":")))
    return 0
