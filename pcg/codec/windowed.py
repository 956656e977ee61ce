"""Long decodings in windows, and a preview of speech that is still being made.

A neural decoder looks both ways, so a window decoded alone differs at its ends. Windows therefore
overlap by ``CONTEXT_SECONDS`` on either side and only their middles are kept, joined by a short
cross-fade. A preview has no right context yet: it lags by ``lag`` codes and is an approximation;
the finished audio is decoded anew.
"""

from __future__ import annotations

import numpy as np

from pcg.codec.codec import Audio, Codec, Codes, check_codes

CONTEXT_SECONDS = 3.0
WINDOW_SECONDS = 20.0
FADE_SECONDS = 0.01


def decode_long(codec: Codec, codes: Codes, window_seconds: float = WINDOW_SECONDS) -> Audio:
    """All codes -> audio ``(hop * len(codes),)``, in one piece where they fit one window."""
    ids = check_codes(codes, codec.n_codes)
    rate = codec.tokens_per_second
    window, context = round(window_seconds * rate), round(CONTEXT_SECONDS * rate)
    if len(ids) <= window + 2 * context:
        return np.asarray(codec.decode(ids), np.float32)
    fade = int(FADE_SECONDS * codec.sample_rate)
    whole = np.zeros(len(ids) * codec.hop, np.float32)
    for start in range(0, len(ids), window):
        stop = min(len(ids), start + window)
        left = max(0, start - context)
        piece = codec.decode(ids[left : min(len(ids), stop + context)])
        _lay(whole, np.asarray(piece, np.float32), left, start, stop, codec.hop, fade)
    return whole


def _lay(
    whole: Audio, piece: Audio, left: int, start: int, stop: int, hop: int, fade: int
) -> None:
    """Put codes ``start..stop`` of a piece that begins at code ``left``, faded over the seam."""
    skip = (start - left) * hop
    end = min(len(piece), (stop - left) * hop + fade)
    part = piece[skip:end].copy()
    at = start * hop
    if start:
        ramp = np.linspace(0, 1, fade, dtype=np.float32)
        part[:fade] = part[:fade] * ramp + whole[at : at + fade] * (1 - ramp)
    whole[at : at + len(part)] = part[: len(whole) - at]


class PreviewStream:
    """Chunks of audio while codes come in; joined by cross-fades, a preview by nature.

    Args:
        codec: decodes.
        prefix: codes of the voice prompt, which are context and are not heard.
        chunk_seconds: how much new speech makes a chunk.
        lag_seconds: how much of the newest speech is held back for right context.
    """

    def __init__(
        self,
        codec: Codec,
        prefix: Codes | None = None,
        chunk_seconds: float = 0.8,
        lag_seconds: float = 0.12,
    ) -> None:
        rate = codec.tokens_per_second
        self.codec = codec
        self.codes: list[int] = [int(c) for c in (prefix if prefix is not None else ())]
        self.done = len(self.codes)  # codes already heard or skipped
        self.chunk, self.lag = max(1, round(chunk_seconds * rate)), round(lag_seconds * rate)
        self.context = round(CONTEXT_SECONDS * rate)
        self.fade = int(FADE_SECONDS * codec.sample_rate)
        self.tail = np.zeros(0, np.float32)  # the first samples of what comes next, to fade from

    def push(self, codes: list[int]) -> Audio | None:
        """Add codes; a chunk of audio when enough have come."""
        self.codes += codes
        ready = len(self.codes) - self.lag
        return self._emit(ready) if ready - self.done >= self.chunk else None

    def finish(self) -> Audio | None:
        """The rest."""
        return self._emit(len(self.codes)) if len(self.codes) > self.done else None

    def _emit(self, stop: int) -> Audio:
        left, hop = max(0, self.done - self.context), self.codec.hop
        audio = np.asarray(self.codec.decode(np.asarray(self.codes[left:], np.int64)), np.float32)
        part = audio[(self.done - left) * hop : (stop - left) * hop].copy()
        fade = min(len(self.tail), len(part))
        if fade:
            ramp = np.linspace(0, 1, fade, dtype=np.float32)
            part[:fade] = part[:fade] * ramp + self.tail[:fade] * (1 - ramp)
        self.tail = audio[(stop - left) * hop :][: self.fade].copy()
        self.done = stop
        return part
