"""Prompts of the bundled voice: phonemes at the times at which they will be spoken.

The sequence has LLaSA's form (text, start of speech, codes of the voice prompt); the rotary
position of each phoneme is the speech token at which it starts, so that text and sound stand side
by side. Times come from a small duration network, scaled to the pace of the voice prompt.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pcg.decoding import Prompt
from pcg.durations import Durations
from pcg.errors import PcgError
from pcg.phonemes import PHONEME_INDEX, Layout

if TYPE_CHECKING:
    from pcg.voices import VoicePrompt

SILENCE = 3  # tokens of silence before and after an utterance, as in training
PACE = (0.8, 1.3)  # slower and faster prompts than this are followed only so far


@functools.lru_cache(maxsize=512)
def to_phonemes(text: str) -> str:
    """English text -> phoneme symbols (misaki's alphabet) by the teacher's own converter.

    Raises:
        PcgError: when the converter is not installed or finds nothing to say.
    """
    try:
        converter = _converter()
    except ImportError as error:
        raise PcgError(
            "The bundled voice needs hibari-tts: pip install -r requirements.txt."
        ) from error
    symbols = converter(" ".join(text.split()))
    kept = "".join(s for s in symbols if s in PHONEME_INDEX).strip()
    if not any(symbol.isalpha() for symbol in kept):
        raise PcgError("There is nothing in this text that can be spoken: write some words.")
    return kept if kept[-1] in ".!?,;:…" else kept + "."


@functools.lru_cache(maxsize=1)
def _converter():  # type: ignore[no-untyped-def]
    from hibari.g2p import G2P

    return G2P(british=False)


class TimedPhonemePrompts:
    """See :class:`pcg.prompts.PromptBuilder`."""

    def __init__(self, n_codes: int, folder: Path | str) -> None:
        self.layout = Layout(n_codes)
        self.durations = Durations.load(folder)

    def build(self, text: str, voice: VoicePrompt | None, codes: Sequence[int] = ()) -> Prompt:
        """Prompt ids and positions for ``text`` after a voice prompt of ``codes``."""
        phonemes, tokens = self._times(text)
        at, pace = 0, 1.0
        starts: list[npt.NDArray[np.int64]] = []
        whole = phonemes
        if voice is not None and len(codes):
            before, own = self._times(voice.transcript)
            fit = max(1.0, len(codes) - 2 * SILENCE) / max(1.0, float(own.sum()))
            pace = min(max(fit, PACE[0]), PACE[1])
            starts += [self._starts(own * fit, 0), np.asarray([len(codes)])]
            whole, at = f"{before} {phonemes}", len(codes)
        starts.append(self._starts(tokens * pace, at))
        total = at + 2 * SILENCE + round(float(tokens.sum()) * pace)
        ids, positions = self.layout.sequence(
            whole, np.concatenate(starts), total, np.asarray(codes, np.int64)
        )
        return Prompt(tuple(ids.tolist()), tuple(positions.tolist()), len(codes), text)

    def estimate_tokens(self, text: str, voice: VoicePrompt | None) -> int:
        """The predicted length at the slowest pace, with a margin."""
        _, tokens = self._times(text)
        return math.ceil(float(tokens.sum()) * PACE[1] * 1.1) + 4 * SILENCE

    def _times(self, text: str) -> tuple[str, npt.NDArray[np.float64]]:
        phonemes = to_phonemes(text)
        return phonemes, self.durations.predict(phonemes)

    @staticmethod
    def _starts(tokens: npt.NDArray[np.float64], at: int) -> npt.NDArray[np.int64]:
        ends = np.cumsum(tokens)
        return np.rint(at + SILENCE + ends - tokens).astype(np.int64)
