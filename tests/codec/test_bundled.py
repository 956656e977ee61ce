"""What the bundled codec does to its decoded envelopes."""

import numpy as np

from pcg.codec.bundled import CLICK_JUMP, _quieten_clicks


def speech() -> np.ndarray:
    """Silence, a vowel, silence: (300, 80) log power."""
    bands = np.full((300, 80), -9.0, np.float32)
    bands[60:200, :30] = 0.0
    return bands


def test_a_single_loud_frame_is_brought_down_to_the_loud_parts() -> None:
    bands = speech()
    bands[230] += 12.0
    _quieten_clicks(bands)
    assert np.isclose(bands[230].max(), 0.0, atol=1e-5)


def test_bursts_vowels_and_short_inputs_stay_as_they_are() -> None:
    bands = speech()
    bands[230, 40:] = -1.0  # a burst after silence, below the vowels
    bands[100] += CLICK_JUMP / 2
    before = bands.copy()
    _quieten_clicks(bands)
    assert np.array_equal(bands, before)
    for frames in range(3):
        _quieten_clicks(np.zeros((frames, 80), np.float32))
