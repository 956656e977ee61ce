"""Everything it takes to speak: target, draft, codec, groups and prompts of one voice model."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from pcg.codec.codec import Codec
from pcg.groups import NestedGroups
from pcg.prompts import PromptBuilder
from pcg.speech_lm import SpeechLM
from pcg.voices import VoicePrompt

KEPT_VOICES = 16


@dataclass
class VoiceModel:
    """One voice model, loaded once and shared by requests; nothing of a request is kept in it.

    Attributes:
        name: of the catalogue, or the folder.
        target, draft: the language models; no draft means target-only decoding.
        codec: speech codes to sound and back.
        groups: by the target's embeddings; ``mel_groups`` by the sound of each code, if made.
        prompts: builds what the target reads.
        embeddings: float32 ``(n_codes, d)`` input rows of the speech codes.
        default_theta: threshold of the groups unless a request says another.
        card: what to show: licence, source, dtype, device, draft.
        sources: where ``target`` and ``draft`` were loaded from.
        measured: ``c`` (draft over target time of one token), ``v`` (time of four rows over one).
    """

    name: str
    target: SpeechLM
    draft: SpeechLM | None
    codec: Codec
    groups: NestedGroups | None
    mel_groups: NestedGroups | None
    prompts: PromptBuilder
    embeddings: Tensor
    default_theta: float
    card: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    english_only: bool = True
    sources: dict[str, str] = field(default_factory=dict)
    _voices: OrderedDict[str, tuple[int, ...]] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def voice_codes(self, voice: VoicePrompt | None) -> tuple[int, ...]:
        """Speech codes of a voice prompt, encoded once and kept for the last few voices."""
        if voice is None:
            return ()
        if voice.codes is not None and voice.codec == self.card.get("codec"):
            return voice.codes
        key = hashlib.sha256(np.ascontiguousarray(voice.audio).tobytes()).hexdigest()
        with self._lock:
            if key not in self._voices:
                codes = self.codec.encode(voice.audio)
                self._voices[key] = tuple(int(code) for code in codes)
                while len(self._voices) > KEPT_VOICES:
                    self._voices.popitem(last=False)
            self._voices.move_to_end(key)
            return self._voices[key]

    def measure(self, lookahead: int = 3) -> dict[str, float]:
        """Time one step of both models and a verification; kept in ``measured``."""
        one = self.target.step_seconds(1)
        many = self.target.step_seconds(lookahead + 1)
        self.measured = {"target_ms": 1e3 * one, "verify_ms": 1e3 * many, "v": many / one}
        if self.draft is not None:
            draft = self.draft.step_seconds(1)
            self.measured |= {"draft_ms": 1e3 * draft, "c": draft / one}
        return self.measured
