"""`python -m pcg swap`: swap tokens inside their groups, write the sound, measure it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcg.commands import voice_options as options
from pcg.errors import PcgError
from pcg.swap import CONTROLS


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "swap",
        help="swap speech tokens inside their groups (the paper's Table 2)",
        description="Speak TEXT with the target alone, or read --audio, then swap its tokens.",
    )
    options.add_options(parser)
    parser.add_argument("--audio", type=Path, help="swap in this recording of TEXT instead")
    parser.add_argument("--theta", type=float, help="default: the model's own")
    parser.add_argument("--share", type=float, default=0.95, help="of tokens, 0..1 (default .95)")
    parser.add_argument("--control", choices=list(CONTROLS), default="group")
    parser.add_argument("--groups", choices=("embedding", "mel"), default="embedding")
    parser.add_argument("-o", "--out", type=Path, help="write the swapped speech here (WAV)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    from pcg.metrics import speaker_similarity, wer
    from pcg.swap import swap_codes

    model = options.load_model(args)
    nested = model.groups if args.groups == "embedding" else model.mel_groups
    if nested is None:
        raise PcgError(f"The model {model.name} has no {args.groups} groups.")
    theta = model.default_theta if args.theta is None else args.theta
    codes, voice = _codes(args, model)
    swapped = swap_codes(codes, nested.at(theta), args.share, args.seed, args.control)
    plain, audio = (_sound(model, voice, item) for item in (codes, swapped.codes))
    result: dict[str, Any] = {
        "theta": round(float(theta), 5),
        "control": args.control,
        "tokens": len(codes),
        "share": args.share,
        "realised": round(swapped.realised, 4),
        "similarity_to_unswapped": speaker_similarity(plain, audio).to_dict(),
    }
    text = options.read_text(args)
    result["wer_before"] = _without_texts(wer(text, plain).to_dict())
    result["wer"] = _without_texts(wer(text, audio).to_dict())
    if voice is not None:
        result["similarity_to_prompt"] = speaker_similarity(voice.audio, audio).to_dict()
    if args.out:
        options.write_wav(args.out, audio, model.codec.sample_rate)
    _print(args, result)
    return 0


def _codes(args: argparse.Namespace, model: Any) -> tuple[list[int], Any]:
    """Speech codes to swap in, and the voice prompt they were spoken with."""
    if args.audio:
        from pcg.audio_files import read_audio

        return [int(code) for code in model.codec.encode(read_audio(args.audio, 60.0)[0])], None
    from pcg.synthesis import speak

    voice = options.choose_voice(args, model)
    request = options.make_request(args, model, voice, "target", {})
    finished: Any = list(speak(model, request, preview=False))[-1]
    return [int(code) for code in finished.codes], voice


def _sound(model: Any, voice: Any, codes: Sequence[int]) -> Any:
    """The sound of codes, after the prompt's own codes where there are any."""
    from pcg.codec.windowed import decode_long

    prompt = model.voice_codes(voice)
    whole = decode_long(model.codec, np.asarray([*prompt, *codes], np.int64))
    return whole[len(prompt) * model.codec.hop :]


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
