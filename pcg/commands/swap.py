"""`python -m pcg swap`: swap tokens inside their groups, write the sound, measure it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from pcg.errors import PcgError
from pcg.swap import CONTROLS


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "swap",
        help="swap speech tokens inside their groups (the paper's Table 2)",
        description="Speak TEXT with the target alone, or read --audio, then swap its tokens.",
    )
    parser.add_argument("text", nargs="?", default="", help="text to speak, or what --audio says")
    parser.add_argument("--audio", type=Path, help="a recording to swap in, instead of speaking")
    parser.add_argument("--model", default="bundled", help="catalogue name or folder")
    parser.add_argument("--voice", help="a bundled voice (default: the first)")
    parser.add_argument("--theta", type=float, help="default: the model's own")
    parser.add_argument("--share", type=float, default=0.95, help="of tokens, 0..1 (default .95)")
    parser.add_argument("--control", choices=list(CONTROLS), default="group")
    parser.add_argument("--groups", choices=("embedding", "mel"), default="embedding")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path, help="write the swapped speech here (WAV)")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    from pcg.catalog import load
    from pcg.metrics import speaker_similarity, wer
    from pcg.swap import swap_codes

    model = load(args.model)
    nested = model.groups if args.groups == "embedding" else model.mel_groups
    if nested is None:
        raise PcgError(f"The model {args.model} has no {args.groups} groups.")
    theta = model.default_theta if args.theta is None else args.theta
    codes, reference = _codes(args, model)
    swapped = swap_codes(codes, nested.at(theta), args.share, args.seed, args.control)
    plain = np.asarray(model.codec.decode(list(codes)), dtype=np.float32)
    audio = np.asarray(model.codec.decode(list(swapped.codes)), dtype=np.float32)
    result: dict[str, Any] = {
        "theta": round(float(theta), 5),
        "control": args.control,
        "tokens": len(codes),
        "share": args.share,
        "realised": round(swapped.realised, 4),
        "similarity_to_unswapped": speaker_similarity(plain, audio).to_dict(),
    }
    if args.text:
        result["wer_before"] = _without_texts(wer(args.text, plain).to_dict())
        result["wer"] = _without_texts(wer(args.text, audio).to_dict())
    if reference is not None:
        result["similarity_to_prompt"] = speaker_similarity(reference, audio).to_dict()
    if args.out:
        import soundfile

        soundfile.write(args.out, audio, model.codec.sample_rate)
    _print(args, result)
    return 0


def _codes(args: argparse.Namespace, model: Any) -> tuple[list[int], Any]:
    """Speech codes to swap in, and the prompt's sound where there is one."""
    if args.audio:
        from pcg.voices import read_voice

        voice = read_voice(args.audio, args.text)
        return [int(code) for code in model.codec.encode(voice.audio)], None
    if not args.text:
        raise PcgError("Give a text to speak, or a recording with --audio.")
    from pcg.sampling import Sampling
    from pcg.synthesis import Request, speak
    from pcg.voices import bundled_voices

    voices = {voice.name: voice for voice in bundled_voices()}
    name = args.voice or next(iter(voices), None)
    if name not in voices:
        raise PcgError(f"There is no bundled voice {name!r}: choose one of {', '.join(voices)}.")
    sampling = Sampling(temperature=args.temperature)
    request = Request(
        text=args.text,
        voice=voices[name],
        rule="target",
        lookahead=0,
        sampling=sampling,
        seed=args.seed,
    )
    finished: Any = list(speak(model, request, preview=False))[-1]
    return [int(code) for code in finished.codes], voices[name].audio


def _without_texts(measure: dict[str, Any]) -> dict[str, Any]:
    details = measure.get("details", {})
    return {**measure, "details": {name: details[name] for name in details if name != "reference"}}


def _print(args: argparse.Namespace, result: dict[str, Any]) -> None:
    print(f"{result['realised']:.1%} of {result['tokens']} tokens swapped ({args.control})")
    for name in ("wer_before", "wer", "similarity_to_unswapped", "similarity_to_prompt"):
        if name in result:
            value = result[name]["value"]
            shown = result[name]["missing"] if value is None else f"{value:.3f}"
            print(f"{name.replace('_', ' ')}: {shown} ({result[name]['model']})")
    if args.json:
        print(json.dumps(result, separators=(",", ":")))
