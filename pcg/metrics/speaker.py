"""Speaker similarity: cosine of two voice embeddings.

"resemblyzer" (default): the GE2E encoder whose weights the Resemblyzer package ships; read without
unpickling code, with this module's own mel features, so nothing else of that package is needed.
"wavlm": WavLM speaker verification from transformers, what the paper calls Sim-O.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pcg.metrics.measure import (
    SAMPLE_RATE,
    Audio,
    Measure,
    MetricMissing,
    check_audio,
    not_installed,
    one_thread,
)

WAVLM = "microsoft/wavlm-base-plus-sv"
WINDOW, HOP, BANDS, SLICE = 400, 160, 40, 160
"""GE2E features: 25 ms Hann window, 10 ms hop, 40 mel bands, slices of 160 frames (1.6 s)."""


class _VoiceEncoder(nn.Module):
    """Three LSTM layers and a projection (GE2E); mels (N, 160, 40) -> unit vectors (N, 256)."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(BANDS, 256, 3, batch_first=True)
        self.linear = nn.Linear(256, 256)

    def forward(self, mels: torch.Tensor) -> torch.Tensor:
        _, (hidden, _) = self.lstm(mels)
        raw = torch.relu(self.linear(hidden[-1]))
        unit: torch.Tensor = raw / raw.norm(dim=1, keepdim=True).clamp_min(1e-9)
        return unit


@cache
def _resemblyzer() -> _VoiceEncoder:
    spec = find_spec("resemblyzer")
    if spec is None or not spec.submodule_search_locations:
        raise MetricMissing("pip install Resemblyzer==0.1.4 (it is in requirements.txt).")
    weights = torch.load(
        Path(next(iter(spec.submodule_search_locations))) / "pretrained.pt",
        map_location="cpu",
        weights_only=True,
    )["model_state"]
    encoder = _VoiceEncoder()
    encoder.load_state_dict(
        {name: tensor for name, tensor in weights.items() if name.startswith(("lstm.", "linear."))}
    )
    return encoder.eval()


def _hz_to_mel(hz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Slaney's mel scale: linear below 1 kHz, logarithmic above."""
    return np.where(
        hz < 1000, hz * 3 / 200, 15 + np.log(np.maximum(hz, 1) / 1000) * 27 / np.log(6.4)
    )


def _mel_to_hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


@cache
def mel_filters(bands: int = BANDS, n_fft: int = WINDOW) -> NDArray[np.float32]:
    """Area-normalised triangular mel filters (bands, n_fft / 2 + 1) up to 8 kHz."""
    top = _hz_to_mel(np.array([SAMPLE_RATE / 2]))[0]
    edges = _mel_to_hz(np.linspace(0, top, bands + 2))
    bins = np.linspace(0, SAMPLE_RATE / 2, n_fft // 2 + 1)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return weights.astype(np.float32)


def _mels(wave: Audio) -> NDArray[np.float32]:
    """Power mel spectrogram (frames, 40), centred frames with zero padding."""
    padded = np.pad(wave, WINDOW // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    mels: NDArray[np.float32] = (power @ mel_filters().T).astype(np.float32)
    return mels


def _voiced(wave: Audio) -> Audio:
    """Raise the level to -30 dBFS and drop pauses: 30 ms windows 40 dB under the loudest."""
    level = np.sqrt(np.mean(wave**2)) + 1e-9
    wave = wave * np.float32(max(1.0, 10 ** (-30 / 20) / level))
    windows = wave[: len(wave) - len(wave) % 480].reshape(-1, 480)
    if len(windows) < 4:
        return wave
    loudness = 10 * np.log10(np.mean(windows**2, axis=1) + 1e-10)
    keep = loudness > np.quantile(loudness, 0.9) - 40
    keep = np.convolve(keep, np.ones(7))[3 : 3 + len(windows)] > 0
    return np.ascontiguousarray(windows[keep].reshape(-1))


def _slices(frames: int) -> list[int]:
    """Starts of 1.6 s slices, 1.3 a second; the last needs three quarters of its frames."""
    step = round(SAMPLE_RATE / 1.3 / HOP)
    starts = list(range(0, max(1, frames - SLICE + step + 1), step))
    if len(starts) > 1 and (frames - starts[-1]) / SLICE < 0.75:
        starts.pop()
    return starts


def _embed_resemblyzer(wave: Audio) -> NDArray[np.float32]:
    mels = _mels(_voiced(wave))
    starts = _slices(len(mels))
    mels = np.pad(mels, ((0, max(0, starts[-1] + SLICE - len(mels))), (0, 0)))
    batch = torch.from_numpy(np.stack([mels[s : s + SLICE] for s in starts]))
    with one_thread():
        mean = _resemblyzer()(batch).mean(dim=0)
    vector: NDArray[np.float32] = mean.numpy()
    return vector


@cache
def _open_wavlm(name: str) -> tuple[Any, Any] | MetricMissing:
    """Extractor and model, or the failure itself, so that a missing hub is tried only once."""
    try:
        from transformers import AutoFeatureExtractor, WavLMForXVector

        model: Any = WavLMForXVector.from_pretrained(name, use_safetensors=True)
        extractor: Any = AutoFeatureExtractor
        return extractor.from_pretrained(name), model.eval()
    except Exception as error:  # hub, file and format errors of many types
        return MetricMissing(
            f"{name} is not in the local cache and could not be fetched ({type(error).__name__}): "
            "download it where there is a network, or give its folder."
        )


def _wavlm(name: str) -> tuple[Any, Any]:
    opened = _open_wavlm(name)
    if isinstance(opened, MetricMissing):
        raise opened
    return opened


def _embed_wavlm(wave: Audio, name: str) -> NDArray[np.float32]:
    extractor, model = _wavlm(name)
    with one_thread():
        vector: NDArray[np.float32] = (
            model(**extractor(wave, sampling_rate=SAMPLE_RATE, return_tensors="pt"))
            .embeddings[0]
            .numpy()
        )
    return vector


def default_model() -> str:
    """``PCG_SPEAKER_MODEL`` or "resemblyzer"."""
    return os.environ.get("PCG_SPEAKER_MODEL", "") or "resemblyzer"


def model_label(model: str | None = None) -> str:
    """Name and version of the embedding model, for a result's ``model`` field."""
    name = model or default_model()
    if name != "resemblyzer":
        return WAVLM if name == "wavlm" else name
    try:
        return f"Resemblyzer {metadata.version('Resemblyzer')} (GE2E)"
    except metadata.PackageNotFoundError:
        return "Resemblyzer"


def speaker_embedding(audio: Any, model: str | None = None) -> NDArray[np.float32]:
    """Unit voice vector of ``audio`` (float32 (samples,), 16 kHz): 256 values for Resemblyzer.

    ``model``: "resemblyzer", "wavlm", or a hub id or folder of a WavLM x-vector model.
    Raises MetricMissing when it is not installed, PcgError for unusable audio.
    """
    name, wave = model or default_model(), check_audio(audio)
    if name == "resemblyzer":
        vector = _embed_resemblyzer(wave)
    else:
        vector = _embed_wavlm(wave, WAVLM if name == "wavlm" else name)
    unit: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), 1e-9)
    return unit


def speaker_similarity(a: Any, b: Any, model: str | None = None) -> Measure:
    """Cosine similarity (-1..1) of the voices of two recordings (float32 (samples,), 16 kHz)."""
    try:
        value = float(speaker_embedding(a, model) @ speaker_embedding(b, model))
    except MetricMissing as error:
        return not_installed("speaker_similarity", error)
    return Measure("speaker_similarity", value, model_label(model))
