"""Naturalness: DistillMOS, a small predictor of listeners' scores (1..5) without a reference."""

from __future__ import annotations

import contextlib
import io
import sys
import types
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from pcg.metrics.measure import (
    SAMPLE_RATE,
    Measure,
    MetricMissing,
    check_audio,
    not_installed,
    one_thread,
)


@cache
def _model() -> Any:
    if find_spec("distillmos") is None or find_spec("xls_r_sqa") is None:
        raise MetricMissing(
            "pip install --no-deps distillmos==0.9.1 xls-r-sqa==0.1.0 (torchaudio is not needed)."
        )
    stub = types.ModuleType("torchaudio")  # imported by distillmos for its command line only
    stub.__spec__ = ModuleSpec("torchaudio", None)
    added = "torchaudio" not in sys.modules
    if added:
        sys.modules["torchaudio"] = stub
    try:
        from distillmos import ConvTransformerSQAModel

        with contextlib.redirect_stdout(io.StringIO()):
            return ConvTransformerSQAModel().eval()
    finally:
        if added:
            del sys.modules["torchaudio"]


def model_label() -> str:
    """Name and version of the predictor, for a result's ``model`` field."""
    try:
        return f"DistillMOS {metadata.version('distillmos')} (variant 7)"
    except metadata.PackageNotFoundError:
        return "DistillMOS"


def naturalness(audio: Any) -> Measure:
    """Predicted opinion score (1..5) of ``audio`` (float32 (samples,), 16 kHz).

    A predictor trained on people's ratings, not a rating: compare systems with it, no more.
    """
    wave = check_audio(audio)
    wave = np.pad(wave, (0, max(0, SAMPLE_RATE - wave.size)))
    try:
        with one_thread():
            value = float(_model()(torch.from_numpy(wave)[None]))
    except MetricMissing as error:
        return not_installed("naturalness", error)
    return Measure("naturalness", value, model_label())
