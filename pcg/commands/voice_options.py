"""Options shared by the commands that speak, and what they turn into."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pcg.errors import PcgError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Text, model, voice and sampling."""
    parser.add_argument("text", help="what to say; - reads it from standard input")
    parser.add_argument("--model", default="", help="catalogue name, folder or hub id")
    parser.add_argument("--draft", help="'first 3', 'spread 3', a list, a folder or a model name")
    parser.add_argument("--voice", default="", help="a bundled voice, or a recording (any file)")
    parser.add_argument("--transcript", default="", help="what the recording says; heard if empty")
    parser.add_argument("--lookahead", type=int, default=3, help="drafted tokens a round (3)")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-k", type=int, default=0, help="0 is off")
    parser.add_argument("--top-p", type=float, default=1.0, help="1 is off")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-seconds", type=float, default=30.0, help="of speech")
    parser.add_argument("--device", default="", help="auto, cpu, cuda, cuda:N")
    parser.add_argument("--dtype", default="", help="auto, float32, float16-weights, int8, ...")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")


def load_model(args: argparse.Namespace) -> Any:
    """The voice model that the options and settings name."""
    from pcg import catalog
    from pcg.settings import load_settings

    chosen = {key: getattr(args, key) for key in ("device", "dtype", "model") if getattr(args, key)}
    settings = load_settings(**chosen)
    return catalog.load(settings.model, settings, draft=args.draft)


def choose_voice(args: argparse.Namespace, model: Any) -> Any:
    """A bundled voice by name, else the recording of that name; the first bundled one if empty."""
    from pcg.voices import bundled_voices, read_voice

    folder = Path(args.model) / "voices" if args.model else None
    own = folder if folder is not None and folder.is_dir() else None
    voices = bundled_voices(own)
    if not args.voice:
        return voices[0] if voices else None
    for voice in voices:
        if voice.name == args.voice:
            return voice
    if not Path(args.voice).exists():
        names = ", ".join(voice.name for voice in voices) or "none here"
        raise PcgError(f"There is no voice or file {args.voice!r}; bundled voices: {names}.")
    return read_voice(args.voice, args.transcript)


def read_text(args: argparse.Namespace) -> str:
    """The text argument, or standard input for "-"."""
    return sys.stdin.read() if args.text == "-" else str(args.text)


def make_request(
    args: argparse.Namespace, model: Any, voice: Any, rule: str, params: dict[str, float]
) -> Any:
    """A :class:`pcg.synthesis.Request` of the options."""
    from pcg.sampling import Sampling
    from pcg.synthesis import Request

    return Request(
        read_text(args), voice, rule, params, args.lookahead,
        Sampling(args.temperature, args.top_k, args.top_p), args.seed, args.max_seconds,
    )  # fmt: skip


def parse_rule(text: str) -> tuple[str, dict[str, float]]:
    """ "pcg:theta=0.4" -> ("pcg", {"theta": 0.4}).

    Raises:
        PcgError: when a parameter is not NAME=NUMBER.
    """
    name, _, rest = text.partition(":")
    params = {}
    for part in filter(None, re.split(r"[;,]", rest)):
        key, _, value = part.partition("=")
        try:
            params[key.strip()] = float(value)
        except ValueError:
            raise PcgError("A rule is NAME or NAME:PARAMETER=NUMBER, like pcg:theta=0.4.") from None
    return name.strip(), params


def write_wav(path: Path, audio: npt.NDArray[np.float32], rate: int) -> None:
    """16-bit WAV; makes the folder."""
    import soundfile

    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, audio, rate, format="WAV", subtype="PCM_16")


def plain(value: Any) -> Any:
    """JSON values with floats of six digits."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return round(float(value), 6)
    if isinstance(value, np.integer):
        return int(value)
    return value
