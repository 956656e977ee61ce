"""Where the speech codes lie in a model's vocabulary, and the compact order rules work in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pcg.errors import PcgError

END_TOKEN = "<|SPEECH_GENERATION_END|>"
START_TOKEN = "<|SPEECH_GENERATION_START|>"
_CODE = re.compile(r"<\|s_(\d+)\|>")


@dataclass(frozen=True)
class SpeechLayout:
    """Model ids of the speech vocabulary.

    Compact ids: 0..n_codes-1 are the codes ``<|s_n|>``, n_codes is the end of speech; beyond it,
    where the whole vocabulary is scored, every other model id in rising order.
    """

    first: int  # model id of <|s_0|>
    n_codes: int
    end: int  # model id of the end of speech
    size: int  # rows of the model's input table

    @classmethod
    def of(cls, tokenizer: Any, size: int) -> SpeechLayout:
        """Read from a tokenizer; checks that the codes are one run of ids.

        Raises:
            PcgError: when there are no speech codes, no end token, or the ids have gaps.
        """
        vocabulary: dict[str, int] = tokenizer.get_vocab()
        codes = {int(m[1]): i for token, i in vocabulary.items() if (m := _CODE.fullmatch(token))}
        if not codes or END_TOKEN not in vocabulary:
            raise PcgError(
                f"This tokenizer has no speech codes <|s_0|>.. or no {END_TOKEN}: choose a model "
                "that speaks, such as LLaSA."
            )
        first, count = codes.get(0, -1), len(codes)
        if first < 0 or any(codes.get(n) != first + n for n in range(count)):
            raise PcgError("The speech codes of this tokenizer are not one run of ids.")
        if size < max(first + count, vocabulary[END_TOKEN] + 1):
            raise PcgError("The model has fewer rows than its tokenizer has tokens.")
        return cls(first, count, vocabulary[END_TOKEN], size)

    def head_rows(self, speech_only: bool) -> list[int]:
        """Model ids in compact order."""
        speech = [*range(self.first, self.first + self.n_codes), self.end]
        if speech_only:
            return speech
        taken = set(speech)
        return [*speech, *(i for i in range(self.size) if i not in taken)]

    def model_ids(self, compact: Sequence[int], others: Sequence[int]) -> list[int]:
        """Compact ids as model ids; ``others`` are the ids beyond the end token, in order."""
        first, n = self.first, self.n_codes
        return [
            first + t if t < n else self.end if t == n else others[t - n - 1] for t in compact
        ]
