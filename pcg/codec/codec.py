"""What every codec offers: audio to codes and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pcg.errors import PcgError

Audio = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]


class Codec(Protocol):
    """Mono speech at ``sample_rate`` as one code every ``hop`` samples."""

    name: str
    sample_rate: int
    hop: int
    n_codes: int
    tokens_per_second: float

    def encode(self, audio: Audio) -> Codes:
        """Audio ``(samples,)`` in [-1, 1] -> codes ``(frames,)`` in 0..n_codes-1."""
        ...

    def decode(self, codes: Any) -> Audio:
        """Codes -> audio ``(hop * len(codes),)``."""
        ...


def check_audio(audio: Any, sample_rate: int = 16_000) -> Audio:
    """Audio as a float32 vector.

    Raises:
        PcgError: when it is not mono, shorter than a tenth of a second, or not finite.
    """
    wave = np.ascontiguousarray(audio, np.float32)
    if wave.ndim != 1 or len(wave) < sample_rate // 10:
        raise PcgError("A codec needs mono audio of at least a tenth of a second.")
    if not np.isfinite(wave).all():
        raise PcgError("The audio holds values that are not numbers: export it again.")
    return wave


def check_codes(codes: Sequence[int] | Codes, n_codes: int) -> Codes:
    """Codes as an int64 vector.

    Raises:
        PcgError: when there are none or one lies outside 0..n_codes-1, which on a GPU would end
            the process.
    """
    ids = np.asarray(codes, np.int64)
    if ids.ndim != 1 or not len(ids):
        raise PcgError("There are no speech codes to decode.")
    if ids.min() < 0 or ids.max() >= n_codes:
        raise PcgError(f"A code lies outside 0..{n_codes - 1}; only speech codes have a sound.")
    return ids
