"""Recordings of known text that no one has to store: made or decoded when they are needed.

"teacher": the text in the teacher's voice (hibari-tts, in requirements.txt). "debian:NAME": a
prompt of Debian's asterisk-core-sounds-en-g722 (one real speaker, CC-BY-SA-3.0; evaluated with,
nothing of it is kept), decoded with ffmpeg. Anything else is a file.
"""

from __future__ import annotations

import gzip
import random
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcg.errors import PcgError
from pcg.evaluation.manifest import Utterance

SOUNDS = Path("/usr/share/asterisk/sounds/en_US_f_Allison")
WORDS = Path("/usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt.gz")
Audio = NDArray[np.float32]


def recording(source: str, text: str) -> Audio:
    """The recording (float32 (samples,), 16 kHz) that ``Utterance.audio`` names."""
    kind, _, name = source.partition(":")
    if source == "teacher":
        return _teacher_says(text)
    if kind == "debian":
        return _decode_g722(SOUNDS / f"{name}.g722")
    from pcg.audio_files import read_audio

    return np.asarray(read_audio(source, 60.0)[0], dtype=np.float32)


@cache
def _teacher() -> Any:
    try:
        import hibari
    except ImportError as error:
        raise PcgError(
            "The teacher's recordings need hibari-tts: it is in requirements.txt."
        ) from error
    return hibari.Hibari(threads=1)


def _teacher_says(text: str) -> Audio:
    from scipy.signal import resample_poly

    audio = np.asarray(_teacher()(text, seed=0), dtype=np.float32).reshape(-1)
    audio = resample_poly(audio, 2, 3).astype(np.float32)
    return np.asarray(audio * (0.6 / max(float(np.abs(audio).max()), 1e-3)), dtype=np.float32)


def _decode_g722(path: Path) -> Audio:
    if not path.exists():
        raise PcgError(f"{path.name} is not here: install Debian's asterisk-core-sounds-en-g722.")
    command = ["ffmpeg", "-v", "error", "-f", "g722", "-i", str(path), "-f", "f32le", "-ac", "1"]
    try:
        done = subprocess.run([*command, "-ar", "16000", "-"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PcgError(f"ffmpeg could not decode {path.name}.") from error
    return np.frombuffer(done.stdout, dtype="<f4").copy()


def teacher_utterances(texts: list[str]) -> list[Utterance]:
    """The texts as the teacher says them; empty where the teacher is not installed."""
    try:
        _teacher()
    except PcgError:
        return []
    return [Utterance(f"t{i:04d}", text, audio="teacher") for i, text in enumerate(texts)]


def debian_utterances(n: int, seed: int = 0) -> list[Utterance]:
    """``n`` real prompts of 4 to 20 words, chosen by ``seed``; empty where they are missing."""
    if not WORDS.exists() or not SOUNDS.exists():
        return []
    with gzip.open(WORDS, "rt", encoding="utf-8", errors="replace") as file:
        lines = [line.split(":", 1) for line in file if ":" in line and not line.startswith(";")]
    usable = [
        (name.strip(), " ".join(text.split()))
        for name, text in lines
        if 4 <= len(text.split()) <= 20
        and not re.search(r"[\[<(*]", text)
        and (SOUNDS / f"{name.strip()}.g722").exists()
    ]
    chosen = random.Random(seed).sample(usable, min(n, len(usable)))
    return [
        Utterance(f"d-{name.replace('/', '-')}", text, audio=f"debian:{name}")
        for name, text in sorted(chosen)
    ]
