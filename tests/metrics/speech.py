"""Known speech for metric tests: (audio, transcript, voice) from the bundled voices or flite."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from shutil import which

import numpy as np
import pytest
import soundfile

TEXTS = (
    "The old woman walked slowly down to the river.",
    "Nothing could be further from the truth.",
)


@cache
def _flite(voice: str, text: str, folder: Path) -> np.ndarray:
    path = folder / f"{voice}-{abs(hash(text))}.wav"
    subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(path)], check=True)
    return soundfile.read(path, dtype="float32")[0]


def speech(folder: Path) -> list[tuple[np.ndarray, str, str]]:
    """Two sentences by each of two speakers, order: a0, a1, b0, b1. Skips without flite."""
    if which("flite") is None:
        pytest.skip("flite (Debian package) speaks the sentences of the metric tests")
    return [
        (_flite(voice, text, folder), text, voice) for voice in ("slt", "rms") for text in TEXTS
    ]
