"""Equal loudness and plain WAV bytes: what a clip is before anyone hears it."""

from __future__ import annotations

import importlib
import io
import wave
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pcg.errors import PcgError

Audio = npt.NDArray[np.float32]
TARGET_LUFS = -23.0
PEAK = 0.98
_BLOCK = 0.4


def loudness(audio: Audio, rate: int) -> float:
    """Integrated loudness in LUFS (ITU-R BS.1770); clips shorter than one 0.4 s block are repeated
    to fill it.
    """
    try:
        pyloudnorm = importlib.import_module("pyloudnorm")
    except ImportError:  # pragma: no cover - environment without the package
        raise PcgError(
            "Loudness matching needs pyloudnorm: run `pip install pyloudnorm`."
        ) from None
    if len(audio) == 0:
        raise PcgError("A clip is empty: record it again.")
    need = int(np.ceil(_BLOCK * rate)) + 1
    if len(audio) < need:
        audio = np.tile(audio, -(-need // len(audio)))
    value = float(
        pyloudnorm.Meter(rate, block_size=_BLOCK).integrated_loudness(audio.astype(np.float64))
    )
    if not np.isfinite(value):
        raise PcgError("A clip is silent, so its loudness cannot be matched: leave it out.")
    return value


def match_loudness(
    clips: Sequence[Audio], rate: int, target: float = TARGET_LUFS
) -> tuple[list[Audio], float]:
    """All `clips` (float, (T,), mono) at one loudness, and that loudness in LUFS.

    The common level is `target`, or lower when a clip would otherwise exceed a peak of 0.98: no
    clip is ever limited.
    """
    levels = [loudness(clip, rate) for clip in clips]
    peaks = [max(float(np.abs(clip).max()), 1e-9) for clip in clips]
    room = [
        level + 20 * float(np.log10(PEAK / peak)) for level, peak in zip(levels, peaks, strict=True)
    ]
    common = min([target, *room])
    gains = [10 ** ((common - level) / 20) for level in levels]
    return [
        (clip * gain).astype(np.float32) for clip, gain in zip(clips, gains, strict=True)
    ], common


def mono(audio: npt.ArrayLike) -> Audio:
    """Float32 (T,) in -1..1 from int or float audio of shape (T,) or (T, channels)."""
    values = np.asarray(audio)
    if values.dtype.kind == "i":
        values = values / float(np.iinfo(values.dtype).max + 1)
    if values.ndim == 2:
        values = values.mean(axis=1 if values.shape[1] <= values.shape[0] else 0)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise PcgError("A clip must be mono or stereo audio without missing values.")
    return values.astype(np.float32)


def resample(audio: Audio, rate: int, wanted: int) -> Audio:
    """`audio` at `wanted` Hz (polyphase)."""
    if rate == wanted:
        return audio
    from scipy import signal

    divisor = int(np.gcd(rate, wanted))
    return np.asarray(
        signal.resample_poly(audio, wanted // divisor, rate // divisor), dtype=np.float32
    )


def low_anchor(audio: Audio, rate: int, cutoff: float = 3500.0) -> Audio:
    """The low anchor of ITU-R BS.1534: the reference low-passed at 3.5 kHz."""
    if cutoff >= 0.45 * rate:
        raise PcgError(
            f"A low anchor at {cutoff:.0f} Hz needs clips sampled above {cutoff / 0.45:.0f} Hz."
        )
    from scipy import signal

    return np.asarray(
        signal.sosfiltfilt(signal.butter(8, cutoff, fs=rate, output="sos"), audio), dtype=np.float32
    )


def wav_bytes(samples: npt.NDArray[np.int16], rate: int) -> bytes:
    """A mono 16-bit WAV with nothing in it but the samples."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.astype("<i2").tobytes())
    return buffer.getvalue()


def to_int16(audio: Audio) -> npt.NDArray[np.int16]:
    """Samples in -1..1 as 16-bit integers."""
    return np.round(np.clip(audio, -1, 1) * 32767).astype(np.int16)


def read_wav(data: bytes) -> tuple[npt.NDArray[np.int16], int]:
    """Samples and rate of a WAV that `wav_bytes` wrote."""
    with wave.open(io.BytesIO(data), "rb") as source:
        return np.frombuffer(
            source.readframes(source.getnframes()), dtype="<i2"
        ), source.getframerate()


def disguise(data: bytes, seconds: float, key: int) -> bytes:
    """The same sound in other bytes: padded with silence to `seconds` and dithered by one step of
    16 bits.

    So neither the length, nor the size, nor a hash of the file tells which clip is a copy of which.
    `key` seeds the dither.
    """
    samples, rate = read_wav(data)
    length = max(len(samples), round(seconds * rate))
    padded = np.zeros(length, dtype=np.int32)
    padded[: len(samples)] = samples
    noise = np.random.default_rng(key).integers(-1, 2, size=length)
    return wav_bytes(np.clip(padded + noise, -32768, 32767).astype(np.int16), rate)
