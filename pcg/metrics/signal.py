"""Checks that need no model: silence, clipping, level, runaway length, F0 error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcg.metrics.measure import SAMPLE_RATE, Measure, MetricMissing, check_audio, not_installed

FRAME = 320
"""Samples of one 20 ms analysis frame."""


def _longest_run(flags: NDArray[np.bool_]) -> int:
    best = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        best = max(best, run)
    return best


def signal_checks(
    audio: Any, expected_seconds: float | None = None, ended: bool | None = None
) -> dict[str, Any]:
    """Plain facts about ``audio`` (float32 (samples,), 16 kHz).

    Returns seconds, peak and rms in dBFS, ``silence`` (share of 20 ms frames under -50 dBFS),
    ``longest_silence`` in seconds, ``clipping`` (share of samples at full scale), ``silent``,
    and ``runaway``: it did not end by itself, or lasts over 2.5 times ``expected_seconds``.
    """
    wave = check_audio(audio, seconds=0.02)
    frames = wave[: wave.size - wave.size % FRAME].reshape(-1, FRAME)
    quiet = np.sqrt(np.mean(frames.astype(np.float64) ** 2, axis=1)) < 10 ** (-50 / 20)
    seconds = wave.size / SAMPLE_RATE
    peak, rms = float(np.abs(wave).max()), float(np.sqrt(np.mean(wave.astype(np.float64) ** 2)))
    too_long = expected_seconds is not None and seconds > 2.5 * max(expected_seconds, 0.5)
    return {
        "seconds": round(seconds, 3),
        "peak_dbfs": round(20 * float(np.log10(max(peak, 1e-7))), 2),
        "rms_dbfs": round(20 * float(np.log10(max(rms, 1e-7))), 2),
        "silence": round(float(quiet.mean()), 4),
        "longest_silence": round(_longest_run(quiet) * FRAME / SAMPLE_RATE, 2),
        "clipping": round(float((np.abs(wave) >= 0.999).mean()), 6),
        "silent": bool(quiet.all()),
        "runaway": bool(too_long or ended is False),
    }


def f0_track(audio: Any) -> NDArray[np.float64]:
    """F0 in Hz every 5 ms (0 where unvoiced), by WORLD's dio and stonemask."""
    try:
        import pyworld
    except ImportError as error:
        raise MetricMissing("pip install pyworld (it is in requirements.txt).") from error
    wave = check_audio(audio).astype(np.float64)
    rough, times = pyworld.dio(wave, SAMPLE_RATE, frame_period=5.0)
    track: NDArray[np.float64] = pyworld.stonemask(wave, rough, times, SAMPLE_RATE)
    return track


def f0_error(reference: Any, audio: Any) -> Measure:
    """Median pitch error in cents over frames that both recordings voice, frame by frame.

    For recordings on one time axis (a codec's round trip). ``details``: share of frames whose
    voicing differs, and share of voiced frames more than 20 % off (gross pitch error).
    """
    try:
        truth, guess = f0_track(reference), f0_track(audio)
    except MetricMissing as error:
        return not_installed("f0_error", error)
    size = min(truth.size, guess.size)
    truth, guess = truth[:size], guess[:size]
    both = (truth > 0) & (guess > 0)
    voicing = float(np.mean((truth > 0) != (guess > 0)))
    if not both.any():
        return Measure(
            "f0_error",
            None,
            "WORLD dio + stonemask",
            {"voicing": voicing},
            "no frame is voiced in both recordings",
        )
    ratio = guess[both] / truth[both]
    details = {"voicing": voicing, "gross": float(np.mean(np.abs(ratio - 1) > 0.2))}
    return Measure(
        "f0_error",
        float(np.median(np.abs(1200 * np.log2(ratio)))),
        "WORLD dio + stonemask",
        details,
    )
