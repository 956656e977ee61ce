"""Any recording as mono float32: soundfile first, ffmpeg where it is installed, bounded in time."""

from __future__ import annotations

import io
import math
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from pcg.codec.codec import Audio
from pcg.errors import PcgError

SAMPLE_RATE = 16_000
MAX_BYTES = 200_000_000
FFMPEG_SECONDS = 10
# Containers that hold nothing but their own sound: no playlists, no lists of other files.
FORMATS = "mov,mp4,m4a,3gp,mp3,aac,flac,ogg,wav,aiff,caf,matroska,webm,asf,amr,w64,au"
UNREADABLE = "This file is not a recording that can be read: give WAV, FLAC, OGG, MP3 or M4A."


def read_audio(source: Path | str | bytes, limit_seconds: float) -> tuple[Audio, float]:
    """The first ``limit_seconds`` of a recording at 16 kHz, and how long the whole is, in seconds.

    Raises:
        PcgError: when it cannot be read, is empty or far too large, or holds NaN.
    """
    data: bytes | Path = source if isinstance(source, bytes) else Path(source)
    _check_size(data)
    try:
        wave, rate, seconds = _with_soundfile(data, limit_seconds)
    except (RuntimeError, OSError, ValueError, TypeError) as error:
        if isinstance(error, PcgError):
            raise
        wave, rate, seconds = _with_ffmpeg(data, limit_seconds)
    if not len(wave):
        raise PcgError("The recording is empty: record a few seconds of one voice.")
    if not np.isfinite(wave).all():
        raise PcgError("The recording holds values that are not numbers: export it again.")
    if rate != SAMPLE_RATE:
        import soxr

        wave = np.asarray(soxr.resample(wave, rate, SAMPLE_RATE), np.float32)
    return wave, seconds


def _check_size(data: bytes | Path) -> None:
    if isinstance(data, Path) and not data.is_file():
        raise PcgError(f"There is no file {data.name!r}.")
    size = len(data) if isinstance(data, bytes) else data.stat().st_size
    if size > MAX_BYTES:
        raise PcgError(f"The file is larger than {MAX_BYTES // 10**6} MB: cut it first.")
    if not size:
        raise PcgError("The recording is empty: record a few seconds of one voice.")


def _with_soundfile(data: bytes | Path, limit: float) -> tuple[Audio, int, float]:
    import soundfile

    handle = io.BytesIO(data) if isinstance(data, bytes) else str(data)
    with soundfile.SoundFile(handle) as file:
        rate = int(file.samplerate)
        if not 2_000 <= rate <= 768_000 or file.channels > 64:
            raise PcgError(f"A sample rate of {rate} Hz is not speech: give 8 kHz or more.")
        wanted = math.ceil(limit * rate)
        blocks = file.read(wanted, dtype="float32", always_2d=True)
        frames = max(len(blocks), file.frames if 0 <= file.frames < 2**40 else 0)
    return blocks.mean(1), rate, frames / rate


def _with_ffmpeg(data: bytes | Path, limit: float) -> tuple[Audio, int, float]:
    """What soundfile cannot read, such as M4A."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise PcgError(UNREADABLE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording" if isinstance(data, bytes) else data
        if isinstance(data, bytes):
            path.write_bytes(data)
        command = [
            program, "-v", "error", "-nostdin", "-protocol_whitelist", "file",
            "-format_whitelist", FORMATS, "-i", f"file:{path}", "-vn", "-t", str(limit + 1),
            "-ac", "1", "-ar", str(SAMPLE_RATE), "-f", "f32le", "-",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, timeout=FFMPEG_SECONDS, check=False)
        except (subprocess.TimeoutExpired, OSError):
            raise PcgError(UNREADABLE) from None
    wave = np.frombuffer(done.stdout[: len(done.stdout) // 4 * 4], np.float32)
    if not len(wave):
        raise PcgError(UNREADABLE)
    seconds = len(wave) / SAMPLE_RATE
    return wave[: math.ceil(limit * SAMPLE_RATE)].copy(), SAMPLE_RATE, seconds
