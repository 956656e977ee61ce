"""Known speech for metric tests: the teacher's voice and, lowered by a quarter, another one."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from pcg.errors import PcgError
from pcg.evaluation.recordings import recording

TEXTS = (
    "The old woman walked slowly down to the river.",
    "Nothing could be further from the truth.",
)


@cache
def speech() -> list[tuple[np.ndarray, str, str]]:
    """Two sentences by each of two voices, order: a0, a1, b0, b1. Skips without the teacher."""
    from scipy.signal import resample_poly

    try:
        high = [recording("teacher", text) for text in TEXTS]
    except PcgError as error:
        pytest.skip(str(error))
    low = [resample_poly(audio, 4, 3).astype(np.float32) for audio in high]
    clips = [*((audio, "high") for audio in high), *((audio, "low") for audio in low)]
    return [(audio, TEXTS[i % 2], voice) for i, (audio, voice) in enumerate(clips)]
