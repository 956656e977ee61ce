"""From text and a voice prompt to the ids a model reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pcg.decoding import Prompt
from pcg.errors import PcgError
from pcg.layout import START_TOKEN

if TYPE_CHECKING:
    from pcg.voices import VoicePrompt

DATE = "26 Jul 2024"  # the Llama-3 template writes a date; fixed, so that prompts repeat
MARGIN = 1.6  # the budget over the expected length: slow speakers, pauses
SHORTEST_SECONDS = 1.5
LETTERS_PER_SECOND = 13.5  # ordinary English


class PromptBuilder(Protocol):
    """What a model reads for a text in a voice."""

    def build(self, text: str, voice: VoicePrompt | None, codes: Sequence[int]) -> Prompt:
        """The prompt for ``text``, spoken as ``voice``, whose audio is ``codes``."""
        ...

    def estimate_tokens(self, text: str, voice: VoicePrompt | None) -> int:
        """How many speech tokens ``text`` may take at most, by the voice's own pace."""
        ...


class LlasaPrompts:
    """LLaSA's published format: the text in a user turn, the voice's codes open the answer.

    Source: the model card of HKUSTAudio/Llasa-1B. With a voice, its transcript and a space come
    before the text.
    """

    def __init__(self, tokenizer: Any, tokens_per_second: float = 50.0) -> None:
        self.tokenizer, self.tokens_per_second = tokenizer, tokens_per_second
        self.first = int(tokenizer.convert_tokens_to_ids("<|s_0|>"))
        if getattr(tokenizer, "chat_template", None) is None:
            raise PcgError("This model's tokenizer has no chat template: use a LLaSA folder.")

    def build(self, text: str, voice: VoicePrompt | None, codes: Sequence[int] = ()) -> Prompt:
        """The ids of the chat, continued by the voice's codes."""
        if not text.strip():
            raise PcgError("There is nothing to say: write some text.")
        whole = f"{voice.transcript} {text}" if voice is not None and codes else text
        chat = [
            {
                "role": "user",
                "content": "Convert the text to speech:<|TEXT_UNDERSTANDING_START|>"
                f"{_plain(whole)}<|TEXT_UNDERSTANDING_END|>",
            },
            {"role": "assistant", "content": START_TOKEN},
        ]
        encoded = self.tokenizer.apply_chat_template(
            chat, tokenize=True, continue_final_message=True, date_string=DATE
        )
        ids = [int(i) for i in encoded["input_ids"]]
        spoken = [self.first + int(code) for code in codes]
        return Prompt((*ids, *spoken), None, len(spoken), text)

    def estimate_tokens(self, text: str, voice: VoicePrompt | None) -> int:
        """Letters over the voice's own letters a second, with a margin."""
        return estimate_tokens(text, voice, self.tokens_per_second)


def estimate_tokens(text: str, voice: VoicePrompt | None, tokens_per_second: float) -> int:
    """An upper bound of the speech tokens of ``text`` by the pace of ``voice``."""
    pace = LETTERS_PER_SECOND
    if voice is not None and voice.transcript and voice.seconds > 1.0:
        own = len(voice.transcript) / voice.seconds
        pace = min(20.0, max(7.0, own))
    seconds = max(SHORTEST_SECONDS, MARGIN * len(text) / pace)
    return math.ceil(seconds * tokens_per_second)


def _plain(text: str) -> str:
    """Text that cannot open or close a turn or speak a code of its own."""
    return text.replace("<|", "< ").replace("|>", " >")
