"""The round of speculative decoding: draft, verify in one target pass, judge, commit, roll back.

`decode` is a generator of `Round` events over two small models' sessions. Decoding with the target
alone is the same loop with nothing drafted. Ids are those of the compact speech vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

import torch
from torch import Tensor

from pcg.acceptance.rule import Rule, Verdict
from pcg.errors import PcgError
from pcg.randomness import Randomness
from pcg.sampling import Sampling, logits_to_probs


@dataclass(frozen=True)
class Prompt:
    """What both models read before the first speech token.

    ids: the models' own ids. positions: the rotary position of each, None for 0..n-1; generated
    tokens go on from the last one + 1. prompt_codes: how many speech codes of a voice end the ids.
    """

    ids: tuple[int, ...]
    positions: tuple[int, ...] | None = None
    prompt_codes: int = 0
    text: str = ""


class Session(Protocol):
    """One request's cache in one model."""

    length: int

    def prefill(self, prompt: Prompt) -> Tensor:
        """Read the whole prompt; logits (V,) of the first speech token."""
        ...

    def step(self, ids: Sequence[int]) -> Tensor:
        """Append n compact ids to the cache; logits (n, V) of what follows each."""
        ...

    def crop(self, length: int) -> None:
        """Forget all but the first `length` positions."""
        ...

    def close(self) -> None:
        """Give the cache back; nothing may be called after."""
        ...


class SpeechModel(Protocol):
    """A model of speech ids: codes 0..end_id-1, the end of speech `end_id`, maybe others beyond."""

    vocab_size: int
    end_id: int
    max_positions: int

    def open(self) -> Session:
        """A session of its own for one request."""
        ...


class LookaheadPolicy(Protocol):
    """Chooses the next round's lookahead from what the last one did; one object a request."""

    def __call__(self, lookahead: int, drafted: int, accepted: int) -> int: ...


@dataclass
class AdaptiveLookahead:
    """One more after a block kept whole, one fewer after less than half of it was kept."""

    smallest: int = 1
    largest: int = 8

    def __call__(self, lookahead: int, drafted: int, accepted: int) -> int:
        if accepted == drafted:
            return min(lookahead + 1, self.largest)
        return max(lookahead - 1, self.smallest) if 2 * accepted < drafted else lookahead


@dataclass(frozen=True)
class Rows:
    """The probability rows of one round: draft (g, V) and target (g+1, V), float32 on the CPU."""

    draft_probs: Tensor
    target_probs: Tensor


@dataclass(frozen=True)
class Round:
    """One round as it happened.

    start: place in the utterance of the first emitted token. drafted: what the draft proposed.
    emitted: what was committed, an end token included. finished: None, or why this is the last
    round ("end", "budget", "cancelled", "non_speech"). rows: kept on request, not stored by default.
    """

    index: int
    start: int
    drafted: tuple[int, ...]
    verdict: Verdict
    emitted: tuple[int, ...]
    seconds_draft: float
    seconds_verify: float
    seconds_judge: float
    finished: str | None = None
    rows: Rows | None = field(default=None, repr=False, compare=False)


def decode(
    target: SpeechModel,
    draft: SpeechModel | None,
    prompt: Prompt,
    rule: Rule,
    *,
    sampling: Sampling,
    lookahead: int = 3,
    max_tokens: int,
    seed: int,
    keep_rows: bool = False,
    adaptive: LookaheadPolicy | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[Round]:
    """Decode one utterance, a `Round` at a time.

    Round 0 is the first token, drawn from the target's prefill. At most `max_tokens` ids are
    emitted, fewer if the positions of a model run out. `should_stop` is asked once a round. When a
    round is handed out the caches already hold the prompt and all emitted ids but the last; closing
    the generator closes both sessions. Raises `PcgError` at once for arguments that do not fit.
    """
    if rule.name == "target" or draft is None:
        lookahead = 0 if rule.name == "target" else lookahead
    _check(target, draft, prompt, rule, lookahead, max_tokens)
    used_draft = draft if lookahead > 0 else None
    for model in (target, used_draft):
        if model is not None:
            max_tokens = min(max_tokens, model.max_positions - len(prompt.ids))
    request = _Request(target, used_draft, prompt, rule, sampling, lookahead, max_tokens, seed)
    return request.rounds(keep_rows, adaptive, should_stop or (lambda: False))


def _check(
    target: SpeechModel, draft: SpeechModel | None, prompt: Prompt, rule: Rule, lookahead: int,
    max_tokens: int,
) -> None:  # fmt: skip
    if lookahead < 0 or lookahead != int(lookahead):
        raise PcgError(f"lookahead must be a whole number, 0 or more, not {lookahead}.")
    if max_tokens < 1:
        raise PcgError(f"max_tokens must be 1 or more, not {max_tokens}.")
    if draft is None and lookahead > 0:
        raise PcgError(f"The rule {rule.name!r} needs a draft model; give one or use 'target'.")
    for model in (target, draft) if lookahead > 0 else (target,):
        if model is not None and len(prompt.ids) >= model.max_positions:
            raise PcgError(
                f"The prompt takes {len(prompt.ids)} of the model's {model.max_positions} "
                "positions; shorten the text or the voice clip."
            )
    if draft is not None and (draft.vocab_size, draft.end_id) != (target.vocab_size, target.end_id):
        raise PcgError("Draft and target have different speech vocabularies; pair them anew.")


class _Request:
    """The state of one request: two caches, what is committed, and its own stream of chance."""

    def __init__(
        self, target: SpeechModel, draft: SpeechModel | None, prompt: Prompt, rule: Rule,
        sampling: Sampling, lookahead: int, max_tokens: int, seed: int,
    ) -> None:  # fmt: skip
        self.models = (target, draft)
        self.prompt = prompt
        self.rule = rule
        self.sampling = sampling
        self.lookahead = lookahead
        self.max_tokens = max_tokens
        self.source = Randomness.seeded(seed)
        self.end_id = target.end_id
        self.committed: list[int] = []

    def rounds(
        self, keep_rows: bool, adaptive: LookaheadPolicy | None, should_stop: Callable[[], bool]
    ) -> Iterator[Round]:
        target_model, draft_model = self.models
        with ExitStack() as stack:
            target = stack.enter_context(closing(target_model.open()))
            draft = stack.enter_context(closing(draft_model.open())) if draft_model else None
            last = self._first_round(target, draft, keep_rows, should_stop)
            yield last
            index = 1
            while last.finished is None:
                last = self._round(index, target, draft, keep_rows, should_stop)
                yield last
                if adaptive is not None and last.drafted:
                    kept = min(last.verdict.accepted, len(last.emitted))
                    self.lookahead = adaptive(self.lookahead, len(last.drafted), kept)
                index += 1

    def _first_round(
        self, target: Session, draft: Session | None, keep_rows: bool,
        should_stop: Callable[[], bool],
    ) -> Round:  # fmt: skip
        clock = perf_counter()
        if draft is not None:
            draft.prefill(self.prompt)
        drafted_at = perf_counter()
        target_probs = self._probs(target.prefill(self.prompt)[None])
        verified_at = perf_counter()
        draft_probs = target_probs[:0]
        verdict = self.rule.judge((), draft_probs, target_probs, self.source)
        judged_at = perf_counter()
        emitted, finished = self._commit((), verdict, should_stop)
        self._roll_back(target, draft)
        rows = Rows(draft_probs, target_probs) if keep_rows else None
        return Round(
            0, 0, (), verdict, emitted, drafted_at - clock, verified_at - drafted_at,
            judged_at - verified_at, finished, rows,
        )  # fmt: skip

    def _round(
        self, index: int, target: Session, draft: Session | None, keep_rows: bool,
        should_stop: Callable[[], bool],
    ) -> Round:  # fmt: skip
        self._assert_caches(target, draft)
        start = len(self.committed)
        clock = perf_counter()
        drafted, draft_rows = self._draft(draft)
        drafted_at = perf_counter()
        target_probs = self._probs(target.step([self.committed[-1], *drafted]))
        verified_at = perf_counter()
        draft_probs = torch.stack(draft_rows) if draft_rows else target_probs[:0]
        verdict = self.rule.judge(drafted, draft_probs, target_probs, self.source)
        judged_at = perf_counter()
        emitted, finished = self._commit(drafted, verdict, should_stop)
        self._roll_back(target, draft)
        rows = Rows(draft_probs, target_probs) if keep_rows else None
        return Round(
            index, start, drafted, verdict, emitted, drafted_at - clock, verified_at - drafted_at,
            judged_at - verified_at, finished, rows,
        )  # fmt: skip

    def _draft(self, draft: Session | None) -> tuple[tuple[int, ...], list[Tensor]]:
        """Draw up to `lookahead` tokens, fewer near the budget, none after an end of speech.

        The first step feeds what the draft has not read yet: the last committed token, and after a
        block accepted whole also the last drafted one.
        """
        count = min(self.lookahead, self.max_tokens - len(self.committed) - 1)
        drafted: list[int] = []
        rows: list[Tensor] = []
        if draft is None or count <= 0:
            return (), rows
        unread = self.committed[draft.length - len(self.prompt.ids) :]
        while len(drafted) < count:
            probs = self._probs(draft.step(unread)[-1])
            token = self.source.categorical(probs)[0]
            drafted.append(token)
            rows.append(probs)
            if token >= self.end_id:
                break
            unread = [token]
        return tuple(drafted), rows

    def _commit(
        self, drafted: tuple[int, ...], verdict: Verdict, should_stop: Callable[[], bool]
    ) -> tuple[tuple[int, ...], str | None]:
        """Add what was accepted and the next token: cut to the budget, then at the first end."""
        room = self.max_tokens - len(self.committed)
        emitted = (*drafted[: verdict.accepted], verdict.next_token)[:room]
        finished: str | None = None
        for place, token in enumerate(emitted):
            if token >= self.end_id:
                emitted = emitted[: place + 1]
                finished = "end" if token == self.end_id else "non_speech"
                break
        self.committed.extend(emitted)
        if finished is None and len(self.committed) >= self.max_tokens:
            finished = "budget"
        if finished is None and should_stop():
            finished = "cancelled"
        return emitted, finished

    def _roll_back(self, target: Session, draft: Session | None) -> None:
        """Drop what was read but not committed: all but the last committed token stays."""
        length = len(self.prompt.ids) + len(self.committed) - 1
        for session in (target, draft):
            if session is not None and session.length > length:
                session.crop(length)

    def _assert_caches(self, target: Session, draft: Session | None) -> None:
        length = len(self.prompt.ids) + len(self.committed) - 1
        if target.length != length:
            raise AssertionError(f"target cache holds {target.length} positions, not {length}")
        if draft is not None and draft.length not in (length, length - 1):
            raise AssertionError(f"draft cache holds {draft.length}, not {length} or one fewer")

    def _probs(self, logits: Tensor) -> Tensor:
        """Rows as the rules want them: float32 on the CPU, where the random stream is."""
        return logits_to_probs(logits, self.sampling).cpu()
