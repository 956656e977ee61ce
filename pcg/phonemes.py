"""Phoneme symbols of the bundled voice and how they line up with speech tokens."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

PHONEMES = ' ;:,.!?—…"()“”AIOQSTWYᵊabdefhijklmnoprstuvwxzæðŋɑɐɒɔəɚɛɜɡɪɹɾʃʊʌʒʔʤʧˈˌːθᵻ'
PHONEME_INDEX = {symbol: index for index, symbol in enumerate(PHONEMES)}
IGNORED = -100


def phoneme_labels(
    phonemes: str, durations: npt.NDArray[np.int64], tokens: int
) -> npt.NDArray[np.int64]:
    """Class of the phoneme that sounds at each of ``tokens`` tokens; silence at both ends is
    ``len(PHONEMES)``, symbols outside :data:`PHONEMES` are :data:`IGNORED`."""
    symbols = [len(PHONEMES), *(PHONEME_INDEX.get(s, IGNORED) for s in phonemes), len(PHONEMES)]
    labels = np.repeat(np.asarray(symbols, np.int64), durations)[:tokens]
    return np.pad(labels, (0, tokens - len(labels)), constant_values=len(PHONEMES))


SPECIALS = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
)
CONTROLS = tuple(
    f"<|{what}_{how}_{edge}|>"
    for what in ("TEXT", "SPEECH")
    for how in ("GENERATION", "UNDERSTANDING")
    for edge in ("START", "END")
)


class Layout:
    """Ids of the bundled vocabulary, in LLaSA's order: text, specials, controls, speech codes."""

    def __init__(self, n_codes: int) -> None:
        self.n_codes = n_codes
        self.text = 0
        self.special = len(PHONEMES)
        self.control = self.special + len(SPECIALS)
        self.speech = self.control + len(CONTROLS)
        self.size = self.speech + n_codes
        ids = {name: self.control + i for i, name in enumerate(CONTROLS)}
        self.text_start = ids["<|TEXT_UNDERSTANDING_START|>"]
        self.text_end = ids["<|TEXT_UNDERSTANDING_END|>"]
        self.speech_start = ids["<|SPEECH_GENERATION_START|>"]
        self.speech_end = ids["<|SPEECH_GENERATION_END|>"]

    def tokens(self) -> list[str]:
        """Every token in the order of its id."""
        speech = [f"<|s_{code}|>" for code in range(self.n_codes)]
        return [*PHONEMES, *SPECIALS, *CONTROLS, *speech]

    def sequence(
        self,
        phonemes: str,
        starts: npt.NDArray[np.int64],
        total: int,
        codes: npt.NDArray[np.int64],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Ids and rotary positions of a prompt: text at the times it is spoken, then speech.

        ``starts`` (symbols,) is the token at which each symbol starts, ``total`` the tokens of the
        whole utterance, ``codes`` the speech that is already there. Symbols outside
        :data:`PHONEMES` are dropped. The speech start token has position 0 and predicts the first
        code; the code at time t has position t + 1.
        """
        kept = [i for i, symbol in enumerate(phonemes) if symbol in PHONEME_INDEX]
        text = [self.text + PHONEME_INDEX[phonemes[i]] for i in kept]
        ids = [self.text_start, *text, self.text_end, self.speech_start]
        positions = [0, *(int(starts[i]) for i in kept), total, 0]
        speech = np.asarray(codes, np.int64)
        return (
            np.concatenate([np.asarray(ids, np.int64), self.speech + speech]),
            np.concatenate([np.asarray(positions, np.int64), 1 + np.arange(len(speech))]),
        )
