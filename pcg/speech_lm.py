"""A Llama over speech ids: loading, the compact speech vocabulary, requests with their own cache.

One request is one :class:`LlamaSession`. Its cache rolls back by position: ``crop`` only moves a
counter, and the next step writes over what lies behind it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from pcg.errors import PcgError
from pcg.layout import SpeechLayout
from pcg.llama import Llama

FIRST_ROOM = 512  # slots of a new cache beyond its prompt
MAX_POSITIONS = 2048  # what LLaSA was trained on


class PromptIds(Protocol):
    """What a session reads of a prompt; see :class:`pcg.decoding.Prompt`."""

    @property
    def ids(self) -> tuple[int, ...]:
        """Model ids."""
        ...

    @property
    def positions(self) -> tuple[int, ...] | None:
        """Rotary position of each id; None for 0, 1, 2, ..."""
        ...


@dataclass(frozen=True)
class SpeechLM:
    """A speech model in the compact vocabulary (see :class:`SpeechLayout`).

    Attributes:
        llama: weights and forward, or another engine with the same methods.
        layout: which model ids are speech.
        speech_head: only speech ids and the end token are scored.
        name, dtype: for people; dtype is one of :data:`pcg.loading.TYPES`.
        tokenizer: the model's own, for prompts.
        notes: which path runs and why.
    """

    llama: Llama | Any
    layout: SpeechLayout
    speech_head: bool
    name: str
    dtype: str
    tokenizer: Any = None
    notes: tuple[str, ...] = ()
    others: tuple[int, ...] = dataclasses.field(default=(), repr=False)

    @property
    def n_codes(self) -> int:
        """How many speech codes there are."""
        return self.layout.n_codes

    @property
    def end_id(self) -> int:
        """Compact id of the end of speech."""
        return self.layout.n_codes

    @property
    def vocab_size(self) -> int:
        """Columns of a row of logits."""
        return self.layout.n_codes + 1 if self.speech_head else self.layout.size

    @property
    def max_positions(self) -> int:
        """How many ids a request may have, the prompt included."""
        return int(self.llama.max_positions)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return torch.device(self.llama.device)

    @property
    def embeddings(self) -> Tensor:
        """``(n_codes, d)`` float32 input rows of the speech codes, on the CPU."""
        first = self.layout.first
        table: Tensor = self.llama.embedding[first : first + self.layout.n_codes]
        return table.float().cpu()

    def open(self) -> LlamaSession:
        """A session with an empty cache."""
        return LlamaSession(self)

    def layer_subset(self, layers: str | Sequence[int]) -> SpeechLM:
        """A draft of some layers of this model, sharing its weights.

        Args:
            layers: "first 3", "spread 3" (evenly, first and last included) or a list of indices.
        """
        if not isinstance(self.llama, Llama):
            raise PcgError("This architecture runs on transformers: name a draft model instead.")
        chosen = choose_layers(layers, len(self.llama.layers))
        part = self.llama.with_layers(chosen)
        name = f"layers {', '.join(map(str, chosen))} of {self.name}"
        return dataclasses.replace(self, llama=part, name=name)

    def check_draft(self, draft: SpeechLM) -> None:
        """Raise PcgError unless ``draft`` has this model's speech vocabulary and head."""
        if draft.layout.n_codes != self.layout.n_codes:
            raise PcgError(
                f"The draft has {draft.layout.n_codes} speech codes and the target "
                f"{self.layout.n_codes}: choose a draft of the same family."
            )
        if draft.vocab_size != self.vocab_size or draft.layout.first != self.layout.first:
            raise PcgError("The draft's vocabulary is not the target's: choose a matching draft.")

    def step_seconds(self, rows: int = 1, context: int = 256, repeats: int = 15) -> float:
        """Seconds of a step of ``rows`` ids after ``context`` ids: the lower quartile of some."""
        context = min(context, self.max_positions - rows)
        # One thread's computing time is blind to whatever else keeps the processor busy.
        alone = self.device.type == "cpu" and torch.get_num_threads() == 1
        clock = time.process_time if alone else time.perf_counter
        cache = self.llama.new_cache(context + rows)
        first, times = self.layout.first, []
        self.llama.run([first] * context, range(context), cache, 0, last_only=True)
        ids = [first] * rows
        for _ in range(repeats + 2):
            start = clock()
            row = self.llama.run(ids, range(context, context + rows), cache, context)
            float(row[0, 0])  # waits for the device
            times.append(clock() - start)
        self.llama.release(cache)
        return sorted(times[2:])[repeats // 4]

    def facts(self) -> dict[str, Any]:
        """What runs, for cards and results."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "device": str(self.device),
            "speech_head": self.speech_head,
            "vocabulary": self.vocab_size,
            "weights_mb": round(self.llama.bytes() / 1e6, 1),
            "notes": list(self.notes),
        }


class LlamaSession:
    """One request's cache in one model. Not for two threads at once."""

    def __init__(self, model: SpeechLM) -> None:
        self.model, self.llama = model, model.llama
        self.length = 0
        self._capacity = 0
        self._cache: Any = None
        self._prompt: list[int] = []  # rotary position of each id of the prompt
        self._layout, self._others = model.layout, model.others
        self._limit = model.max_positions

    def prefill(self, prompt: PromptIds) -> Tensor:
        """Read the whole prompt; returns the logits ``(V,)`` of the first speech token.

        Raises:
            PcgError: for a prompt that is empty or leaves no room to speak.
        """
        ids, positions = list(prompt.ids), prompt.positions
        if not ids:
            raise PcgError("There is nothing to say: write some text.")
        self._prompt = list(range(len(ids))) if positions is None else list(positions)
        highest = max(self._prompt)
        if len(ids) >= self._limit or highest >= self._limit - 1:
            raise PcgError(
                f"Voice prompt and text take {max(len(ids), highest + 1)} of {self._limit} "
                "positions: shorten them."
            )
        if min(self._prompt) < 0 or len(self._prompt) != len(ids):
            raise PcgError("A prompt needs one position of 0 or more for each of its ids.")
        self.length = 0
        self._reserve(len(ids) + min(FIRST_ROOM, self._limit))
        rising: Sequence[int] = range(len(ids)) if positions is None else self._prompt
        row = self.llama.run(ids, rising, self._cache, 0, last_only=True)
        self.length = len(ids)
        return row[0]

    def step(self, ids: Sequence[int]) -> Tensor:
        """Append compact ids; returns their logits ``(n, V)`` float32.

        Raises:
            PcgError: when the request has used up the model's positions.
        """
        count, start = len(ids), self.length
        position = self._next_position()
        if not count or start + count > self._limit or position + count > self._limit:
            raise PcgError(
                f"The request reached the model's {self._limit} positions: shorten the text."
            )
        if start + count > self._capacity:
            self._reserve(max(2 * self._capacity, start + count))
        model_ids = self._layout.model_ids(ids, self._others)
        places = range(position, position + count)
        rows: Tensor = self.llama.run(model_ids, places, self._cache, start)
        self.length = start + count
        return rows

    def crop(self, length: int) -> None:
        """Forget everything behind the first ``length`` ids."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot crop a cache of {self.length} to {length}")
        self.length = length
        if length < len(self._prompt):
            del self._prompt[length:]

    def close(self) -> None:
        """Give the cache back; the session is over."""
        if self._cache is not None:
            self.llama.release(self._cache)
        self._cache, self._capacity, self.length = None, 0, 0

    def _next_position(self) -> int:
        extra = self.length - len(self._prompt)
        return (self._prompt[-1] + 1 if self._prompt else 0) + extra

    def _reserve(self, capacity: int) -> None:
        if capacity <= self._capacity:
            return
        capacity = min(capacity, self._limit)
        self._cache = self.llama.widened(self._cache, self.length, capacity)
        self._capacity = capacity


def choose_layers(layers: str | Sequence[int], depth: int) -> list[int]:
    """Indices of "first k", "spread k", "0,4,9" or a list; checked against ``depth``."""
    if isinstance(layers, str):
        kind, _, count = layers.strip().partition(" ")
        try:
            if kind in ("first", "spread"):
                k = int(count)
                steps = range(k) if kind == "first" else _spread(k, depth)
                layers = list(steps)
            else:
                layers = [int(part) for part in layers.split(",")]
        except ValueError:
            raise PcgError("Layers are named as 'first 3', 'spread 3' or '0,4,9'.") from None
    chosen = [int(i) for i in layers]
    if not chosen or chosen != sorted(set(chosen)) or chosen[0] < 0 or chosen[-1] >= depth:
        raise PcgError(f"Layers must be rising numbers from 0 to {depth - 1}.")
    return chosen


def _spread(k: int, depth: int) -> list[int]:
    if k == 1:
        return [0]
    return sorted({round(i * (depth - 1) / (k - 1)) for i in range(k)})


def load(
    source: str | Path,
    device: str = "auto",
    dtype: str = "auto",
    speech_head: bool = True,
    max_positions: int = MAX_POSITIONS,
) -> SpeechLM:
    """Load a speech model from a folder or a hub id; see :mod:`pcg.loading`."""
    from pcg.loading import load_speech_lm

    return load_speech_lm(source, device, dtype, speech_head, max_positions)
