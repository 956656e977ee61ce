"""WORLD analysis and synthesis on the grid of the bundled codec.

A frame every 6.25 ms holds ``N_FEATURES`` numbers: ``N_BANDS`` values of the smooth spectral
envelope (natural logarithm of power, triangular averages on the mel scale), one coded
aperiodicity, the logarithm of F0 (interpolated through unvoiced frames) and voicing (0 or 1).
Source: M. Morise, "WORLD: a vocoder-based high-quality speech synthesis system" (2016);
D4C, CheapTrick and DIO through the ``pyworld`` package.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

SAMPLE_RATE = 16_000
FRAME_SAMPLES = 100
FRAME_MS = 1000.0 * FRAME_SAMPLES / SAMPLE_RATE
FFT_SIZE = 1024
N_BANDS = 80
APERIODICITY, LOG_F0, VOICED = N_BANDS, N_BANDS + 1, N_BANDS + 2
N_FEATURES = N_BANDS + 3
DIO_MS = 5.0  # DIO loses the pitch on coarser grids
F0_FLOOR, F0_CEIL = 60.0, 500.0
POWER_FLOOR = 1e-9
_DEFAULT_LOG_F0 = float(np.log(150.0))


def hz_to_mel(hz: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return 1127.0 * np.log1p(np.asarray(hz, np.float64) / 700.0)


def mel_to_hz(mel: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return 700.0 * np.expm1(np.asarray(mel, np.float64) / 1127.0)


@lru_cache(maxsize=1)
def band_centres() -> npt.NDArray[np.float64]:
    """Centres of the envelope bands in Hz, ``(N_BANDS,)``, even on the mel scale, 0 to 8 kHz."""
    return mel_to_hz(np.linspace(0.0, float(hz_to_mel(SAMPLE_RATE / 2)), N_BANDS))


@lru_cache(maxsize=1)
def _analysis_matrix() -> npt.NDArray[np.float64]:
    """``(bins, N_BANDS)`` triangular averages of the log spectrum."""
    mel_bins = hz_to_mel(np.linspace(0, SAMPLE_RATE / 2, FFT_SIZE // 2 + 1))
    mel_centres = hz_to_mel(band_centres())
    step = mel_centres[1] - mel_centres[0]
    weights = np.maximum(0.0, 1.0 - np.abs(mel_bins[:, None] - mel_centres[None]) / step)
    nearest = np.abs(mel_bins[:, None] - mel_centres[None]).argmin(0)
    weights[nearest, np.arange(N_BANDS)] += 1e-6
    return np.asarray(weights / weights.sum(0, keepdims=True))


@lru_cache(maxsize=1)
def _synthesis_matrix() -> npt.NDArray[np.float64]:
    """``(N_BANDS, bins)`` linear interpolation on the mel scale."""
    mel_bins = hz_to_mel(np.linspace(0, SAMPLE_RATE / 2, FFT_SIZE // 2 + 1))
    place = mel_bins / mel_bins[-1] * (N_BANDS - 1)
    low = np.clip(np.floor(place).astype(int), 0, N_BANDS - 2)
    matrix = np.zeros((N_BANDS, len(mel_bins)))
    matrix[low, np.arange(len(mel_bins))] = 1.0 - (place - low)
    matrix[low + 1, np.arange(len(mel_bins))] += place - low
    return matrix


def frames_of(samples: int) -> int:
    """Number of feature frames of an audio signal of ``samples`` samples."""
    return samples // FRAME_SAMPLES + 1


def _track_f0(audio: npt.NDArray[np.float64]) -> Array:
    import pyworld

    f0, times = pyworld.dio(
        audio, SAMPLE_RATE, f0_floor=F0_FLOOR, f0_ceil=F0_CEIL, frame_period=DIO_MS
    )
    f0 = pyworld.stonemask(audio, f0, times, SAMPLE_RATE)
    return resample_f0(f0, DIO_MS, frames_of(len(audio)))


def resample_f0(f0: npt.NDArray[np.floating], period_ms: float, frames: int) -> Array:
    """An F0 track with one value each ``period_ms`` -> ``frames`` values on this module's grid.

    Voicing follows the nearer neighbours, pitch is interpolated on a logarithmic scale.
    """
    voiced = np.flatnonzero(f0 > 0)
    if not len(voiced):
        return np.zeros(frames, np.float32)
    place = np.arange(frames) * (FRAME_MS / period_ms)
    voicing = np.interp(place, np.arange(len(f0)), (f0 > 0).astype(float)) > 0.5
    pitch = np.exp(np.interp(place, voiced, np.log(f0[voiced])))
    return np.where(voicing, pitch, 0.0).astype(np.float32)


def analyse(audio: npt.NDArray[np.floating], f0: npt.NDArray[np.floating] | None = None) -> Array:
    """Audio ``(samples,)`` at 16 kHz in [-1, 1] -> features ``(frames, N_FEATURES)``.

    ``f0`` (Hz, 0 where unvoiced, one a frame) replaces the estimate where it is known exactly.
    """
    import pyworld

    signal = np.ascontiguousarray(audio, np.float64)
    signal = signal + 1e-5 * np.random.default_rng(0).standard_normal(len(signal))
    frames = frames_of(len(signal))
    track = np.asarray(_track_f0(signal) if f0 is None else f0, np.float64)
    track = np.pad(track[:frames], (0, max(0, frames - len(track))))
    times = np.arange(frames) * (FRAME_MS / 1000.0)
    envelope = pyworld.cheaptrick(signal, track, times, SAMPLE_RATE, fft_size=FFT_SIZE)
    aperiodicity = pyworld.d4c(signal, track, times, SAMPLE_RATE, fft_size=FFT_SIZE)
    coded = pyworld.code_aperiodicity(aperiodicity, SAMPLE_RATE)
    bands = np.log(np.maximum(envelope, POWER_FLOOR)) @ _analysis_matrix()
    voiced = track > 0
    return np.concatenate(
        [bands, coded[:, :1], _interpolate_log_f0(track)[:, None], voiced[:, None]], 1
    ).astype(np.float32)


def _interpolate_log_f0(f0: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    voiced = np.flatnonzero(f0 > 0)
    if not len(voiced):
        return np.full(len(f0), _DEFAULT_LOG_F0)
    return np.interp(np.arange(len(f0)), voiced, np.log(f0[voiced]))


def synthesise(features: npt.NDArray[np.floating]) -> Array:
    """Features ``(frames, N_FEATURES)`` -> audio ``(frames * FRAME_SAMPLES,)`` at 16 kHz."""
    import pyworld

    if not len(features):
        return np.zeros(0, np.float32)
    dense = np.asarray(features, np.float64)
    log_envelope = dense[:, :N_BANDS] @ _synthesis_matrix()
    envelope = np.exp(np.clip(log_envelope, np.log(POWER_FLOOR), 12.0))
    coded = np.ascontiguousarray(np.clip(dense[:, APERIODICITY : APERIODICITY + 1], -60.0, 0.0))
    aperiodicity = pyworld.decode_aperiodicity(coded, SAMPLE_RATE, FFT_SIZE)
    pitch = np.exp(np.clip(dense[:, LOG_F0], np.log(F0_FLOOR), np.log(F0_CEIL * 1.5)))
    f0 = np.where(dense[:, VOICED] > 0.5, pitch, 0.0)
    audio = pyworld.synthesize(f0, envelope, aperiodicity, SAMPLE_RATE, FRAME_MS)
    wanted = len(features) * FRAME_SAMPLES
    audio = np.pad(audio[:wanted], (0, max(0, wanted - len(audio))))
    return np.clip(audio, -1.0, 1.0).astype(np.float32)


def warp(features: Array, pitch: float = 1.0, formants: float = 1.0, tilt_db: float = 0.0) -> Array:
    """The same speech by another speaker: F0 times ``pitch``, formants times ``formants``.

    ``tilt_db`` tilts the envelope linearly over the bands, from 0 at 0 Hz to ``tilt_db`` at 8 kHz.
    """
    out = features.copy()
    if formants != 1.0:
        source = hz_to_mel(np.minimum(band_centres() / formants, SAMPLE_RATE / 2))
        place = source / float(hz_to_mel(SAMPLE_RATE / 2)) * (N_BANDS - 1)
        low = np.clip(np.floor(place).astype(int), 0, N_BANDS - 2)
        part = (place - low).astype(np.float32)
        out[:, :N_BANDS] = features[:, low] * (1 - part) + features[:, low + 1] * part
    out[:, :N_BANDS] += np.linspace(0, tilt_db * np.log(10) / 10, N_BANDS, dtype=np.float32)
    out[:, LOG_F0] += np.float32(np.log(pitch))
    return out
