"""Table-driven models for tests: the next token depends on the last one only."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pcg.decoding import Prompt

PROMPT = Prompt((0, 1, 2))


class ToySession:
    """Remembers every id it holds, so that a wrong roll-back gives wrong rows."""

    def __init__(self, model: "Toy") -> None:
        self.model, self.prompt, self.ids, self.closed = model, 0, list[int](), False
        model.sessions.append(self)

    @property
    def length(self) -> int:
        return self.prompt + len(self.ids)

    def prefill(self, prompt: Prompt) -> Tensor:
        self.prompt = len(prompt.ids)
        return self.model.logits[-1]

    def step(self, ids: Sequence[int]) -> Tensor:
        assert not self.closed and len(ids)
        self.model.steps += 1
        self.ids += ids
        assert self.length <= self.model.max_positions
        return torch.stack(
            [self.model.row(self.ids[: len(self.ids) - len(ids) + 1 + i]) for i in range(len(ids))]
        )

    def crop(self, length: int) -> None:
        assert self.prompt <= length <= self.length
        del self.ids[length - self.prompt :]

    def close(self) -> None:
        self.closed = True


class Toy:
    """``vocab_size`` ids, the last is the end; the row after token t is drawn from the seed.

    The row also depends on how many tokens came before, so that a shifted cache shows.
    """

    def __init__(
        self,
        seed: int,
        vocab_size: int = 8,
        end: float = -2.0,
        near: "Toy | None" = None,
        max_positions: int = 500,
    ) -> None:
        maker = torch.Generator().manual_seed(seed)
        self.logits = 1.5 * torch.randn(vocab_size + 1, vocab_size, generator=maker)
        if near is not None:
            self.logits = near.logits + 0.5 * self.logits
        self.logits[:, -1] = end
        self.vocab_size, self.end_id, self.max_positions = vocab_size, vocab_size - 1, max_positions
        self.sessions: list[ToySession] = []
        self.steps = 0

    def row(self, ids: Sequence[int]) -> Tensor:
        shifted = self.logits[ids[-1]].clone()
        shifted[len(ids) % (self.vocab_size - 1)] += 1.0
        return shifted

    def open(self) -> ToySession:
        return ToySession(self)
