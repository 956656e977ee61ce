"""How long to borrow a GPU for. ZeroGPU checks the declared duration against the visitor's quota.

    seconds = (fixed + rules * tokens / rate) * safety, within [min, max]

`fixed` moves the weights and warms the kernels, `tokens` is what the request may speak (at most
`max_seconds` of speech at the codec's tokens a second), `rate` the slowest rule's measured tokens
a second. Example with the shipped figures: a 4-second sentence by 3 rules at 50 tokens a second is
(6 + 3 * 200 / 60) * 1.3 = 20.8, so 21 seconds.
"""

from __future__ import annotations

import math

from pcg.settings import Settings

CHARACTERS_PER_SECOND = 13.0  # of ordinary English speech; errs on the slow side


def speech_seconds(text: str, settings: Settings) -> float:
    """Seconds of speech that the text may become, between 1 and the limit."""
    return min(settings.limits.max_seconds, max(1.0, 1.5 * len(text) / CHARACTERS_PER_SECOND))


def gpu_seconds(
    settings: Settings, seconds_of_speech: float, rules: int = 1, tokens_per_second: float = 50.0
) -> int:
    """Whole seconds to declare for one request."""
    gpu = settings.gpu
    tokens = min(seconds_of_speech, settings.limits.max_seconds) * tokens_per_second
    wanted = (gpu.fixed_seconds + max(1, rules) * tokens / gpu.tokens_per_second) * gpu.safety
    return int(min(gpu.max_seconds, max(gpu.min_seconds, math.ceil(wanted))))
