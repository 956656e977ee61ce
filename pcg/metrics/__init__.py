"""Metrics of speech: each one says which model gave it, or how to install what is missing.

The four calls most code needs (audio is float32, mono, 16 kHz, range -1..1):

    transcribe(audio) -> str
    wer(reference, audio) -> Measure          # value is a fraction, details hold the counts
    speaker_similarity(a, b) -> Measure       # cosine, -1..1
    naturalness(audio) -> Measure             # MOS scale, 1..5

A measure whose model is not installed has ``value None`` and says in ``missing`` what to do.
"""

from __future__ import annotations

from pcg.metrics.measure import Measure, MetricMissing
from pcg.metrics.naturalness import naturalness
from pcg.metrics.signal import f0_error, signal_checks
from pcg.metrics.speaker import model_label as speaker_label
from pcg.metrics.speaker import speaker_embedding, speaker_similarity
from pcg.metrics.wer import WordErrors, transcribe, wer, word_errors

__all__ = [
    "Measure",
    "MetricMissing",
    "WordErrors",
    "f0_error",
    "naturalness",
    "signal_checks",
    "speaker_embedding",
    "speaker_label",
    "speaker_similarity",
    "transcribe",
    "wer",
    "word_errors",
]
