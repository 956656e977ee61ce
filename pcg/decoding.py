"""Speculative decoding of one utterance as a generator of rounds.

A round: the draft proposes, the target reads the proposals in one pass, a rule judges, the emitted
tokens are committed and both caches are rolled back. Target-only decoding is the same loop with
lookahead 0. Ids are compact: speech codes first, then the end of speech.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pcg.acceptance.rule import Rule, Verdict
from pcg.errors import PcgError
from pcg.randomness import Randomness
from pcg.sampling import Sampling, logits_to_probs

MAX_LOOKAHEAD = 16


@dataclass(frozen=True)
class Prompt:
    """What a model reads before it speaks.

    ``ids``: the model's own ids. ``positions``: the rotary position of each, or None for 0..n-1;
    generated tokens go on at the last position + 1. ``prompt_codes``: how many speech codes of a
    voice prompt end the ids.
    """

    ids: tuple[int, ...]
    positions: tuple[int, ...] | None = None
    prompt_codes: int = 0
    text: str = ""


class Session(Protocol):
    """One request's cache in one model."""

    @property
    def length(self) -> int:
        """Positions in the cache."""
        ...

    def prefill(self, prompt: Prompt) -> Tensor:
        """Reads the whole prompt; logits ``(V,)`` of the first speech token."""
        ...

    def step(self, ids: Sequence[int]) -> Tensor:
        """Appends compact ids; logits ``(n, V)`` after each."""
        ...

    def crop(self, length: int) -> None:
        """Forgets every position from ``length`` on."""
        ...

    def close(self) -> None: ...


class SpeechModel(Protocol):
    """A language model of speech codes."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def end_id(self) -> int: ...

    @property
    def max_positions(self) -> int: ...

    def open(self) -> Session: ...


@dataclass(frozen=True)
class Round:
    """One round of decoding. ``start``: the utterance position of the first emitted token.

    ``emitted`` holds the end token when ``finished`` is "end". ``finished`` is None while the
    utterance goes on, else "end", "budget", "cancelled" or "non_speech". ``rows`` are the draft's
    ``(g, V)`` and the target's ``(g + 1, V)`` probabilities when they were asked for.
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
    rows: tuple[Tensor, Tensor] | None = None


class AdaptiveLookahead:
    """Lookahead from the running acceptance rate, within bounds. Off unless it is passed in."""

    def __init__(self, lowest: int = 1, highest: int = 6, start: int = 3) -> None:
        if not 1 <= lowest <= start <= highest <= MAX_LOOKAHEAD:
            raise PcgError(f"Adaptive lookahead needs 1 <= lowest <= start <= {MAX_LOOKAHEAD}.")
        self.lowest, self.highest = lowest, highest
        self.mean = float(start)

    def choose(self) -> int:
        return max(self.lowest, min(self.highest, round(self.mean)))

    def learn(self, drafted: int, accepted: int) -> None:
        wanted = drafted + 1 if accepted == drafted else accepted + 1
        self.mean = 0.8 * self.mean + 0.2 * max(self.lowest, min(self.highest, wanted))


def decode(
    target: SpeechModel,
    draft: SpeechModel | None,
    prompt: Prompt,
    rule: Rule,
    *,
    sampling: Sampling,
    lookahead: int = 3,
    max_tokens: int,
    seed: int = 0,
    keep_rows: bool = False,
    adaptive: AdaptiveLookahead | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[Round]:
    """Yields the rounds of one utterance; closing the generator closes both caches.

    ``lookahead`` 0..16 drafted tokens a round (0, or the rule "target", needs no draft);
    ``max_tokens`` caps the emitted tokens, the end token included. The same seed gives the same
    tokens. Arguments are checked at the call, before the first round.

    Raises:
        PcgError: for arguments out of range, vocabularies that differ, or a prompt too long.
    """
    if rule.name == "target":
        lookahead = 0
    if lookahead < 0 or lookahead > MAX_LOOKAHEAD or int(lookahead) != lookahead:
        raise PcgError(f"The lookahead must be a whole number from 0 to {MAX_LOOKAHEAD}.")
    if max_tokens < 1:
        raise PcgError("The token budget must be at least 1.")
    if lookahead and draft is None:
        raise PcgError(f"The rule {rule.name!r} needs a draft model: choose one, or target only.")
    ids = (target.vocab_size, target.end_id)
    if lookahead and draft is not None and (draft.vocab_size, draft.end_id) != ids:
        raise PcgError("Draft and target have different vocabularies: they cannot work together.")
    positions = target.max_positions
    if lookahead and draft is not None:
        positions = min(positions, draft.max_positions)
    room = positions - len(prompt.ids)
    if not prompt.ids or room < 1:
        raise PcgError(
            f"The text and voice prompt take {len(prompt.ids)} of {positions} "
            "positions: shorten one of them."
        )
    loop = _Loop(
        target,
        draft if lookahead else None,
        prompt,
        rule,
        sampling,
        lookahead,
        min(max_tokens, room),
        seed,
        keep_rows,
        adaptive,
        should_stop,
    )
    return loop.rounds()


class _Loop:
    """State of one utterance: both sessions, the committed tokens, the random streams."""

    def __init__(
        self,
        target: SpeechModel,
        draft: SpeechModel | None,
        prompt: Prompt,
        rule: Rule,
        sampling: Sampling,
        lookahead: int,
        budget: int,
        seed: int,
        keep_rows: bool,
        adaptive: AdaptiveLookahead | None,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        self.target, self.draft, self.prompt, self.rule = target, draft, prompt, rule
        self.sampling, self.lookahead, self.budget = sampling, lookahead, budget
        self.keep_rows, self.adaptive, self.should_stop = keep_rows, adaptive, should_stop
        self.randomness = Randomness(torch.Generator().manual_seed(seed))
        self.emitted: list[int] = []
        self.sessions: list[Session] = []
        self.index = 0

    def rounds(self) -> Iterator[Round]:
        try:
            yield from self._speak()
        finally:
            for session in self.sessions:
                session.close()

    def _speak(self) -> Iterator[Round]:
        main = self.target.open()
        self.sessions.append(main)
        helper = self.draft.open() if self.draft else None
        if helper:
            self.sessions.append(helper)
        result = self._first(main, helper)
        yield result
        while result.finished is None:
            self._check(main, 0)
            if helper:
                self._check(helper, 1)
            result = self._round(main, helper)
            yield result

    def _check(self, session: Session, lag: int) -> None:
        """The cache holds all that is committed but the last token, and ``lag`` fewer at most."""
        missing = len(self.prompt.ids) + len(self.emitted) - 1 - session.length
        if not 0 <= missing <= lag:
            raise RuntimeError(f"cache holds {session.length} positions, {missing} too few")

    def _first(self, main: Session, helper: Session | None) -> Round:
        """Round 0: the first token, from the target's own row after the prompt."""
        began = time.perf_counter()
        target_probs = logits_to_probs(main.prefill(self.prompt)[None], self.sampling)
        verified = time.perf_counter()
        if helper:
            helper.prefill(self.prompt)
        drafted = time.perf_counter()
        empty = target_probs[:0]
        verdict = self.rule.judge((), empty, target_probs, self.randomness)
        return self._commit(
            (),
            verdict,
            (drafted - verified, verified - began, time.perf_counter() - drafted),
            (empty, target_probs),
        )

    def _round(self, main: Session, helper: Session | None) -> Round:
        began = time.perf_counter()
        lookahead = self._lookahead()
        ids, draft_probs = self._propose(helper, lookahead)
        drafted = time.perf_counter()
        logits = main.step((self.emitted[-1], *ids))
        target_probs = logits_to_probs(logits, self.sampling)
        if draft_probs is None:
            draft_probs = target_probs[:0]
        verified = time.perf_counter()
        verdict = self.rule.judge(ids, draft_probs, target_probs, self.randomness)
        seconds = (drafted - began, verified - drafted, time.perf_counter() - verified)
        if self.adaptive:
            self.adaptive.learn(len(ids), verdict.accepted)
        result = self._commit(ids, verdict, seconds, (draft_probs, target_probs))
        self._roll_back(main, helper)
        return result

    def _lookahead(self) -> int:
        """Never more than the budget leaves room for beside the round's last token."""
        if self.draft is None:
            return 0
        wanted = self.adaptive.choose() if self.adaptive else self.lookahead
        return max(0, min(wanted, self.budget - len(self.emitted) - 1))

    def _propose(
        self, helper: Session | None, lookahead: int
    ) -> tuple[tuple[int, ...], Tensor | None]:
        """Drafted ids and the very rows ``(g, V)`` they were drawn from; stops at the end token.

        The draft first reads what it has not: the last token, and after a block that was kept
        whole also the one before, in the same step.
        """
        if helper is None:
            return (), None
        ids: list[int] = []
        rows: list[Tensor] = []
        unread = self.emitted[helper.length - len(self.prompt.ids) :]
        for _ in range(lookahead):
            row = logits_to_probs(helper.step(unread)[-1:], self.sampling)[0]
            ids.append(self.randomness.categorical(row))
            rows.append(row)
            unread = ids[-1:]
            if ids[-1] == self.target.end_id:
                break
        return tuple(ids), torch.stack(rows) if rows else None

    def _commit(
        self,
        ids: tuple[int, ...],
        verdict: Verdict,
        seconds: tuple[float, float, float],
        rows: tuple[Tensor, Tensor],
    ) -> Round:
        """Truncates to the budget, then at the first end token, and counts what is left."""
        start = len(self.emitted)
        tokens = [*ids[: verdict.accepted], verdict.next_token]
        tokens = tokens[: self.budget - start]
        finished = None
        for place, token in enumerate(tokens):
            if token >= self.target.end_id:
                tokens = tokens[: place + 1]
                finished = "end" if token == self.target.end_id else "non_speech"
                break
        self.emitted += tokens
        if finished is None and len(self.emitted) >= self.budget:
            finished = "budget"
        if finished is None and self.should_stop and self.should_stop():
            finished = "cancelled"
        result = Round(
            self.index,
            start,
            ids,
            verdict,
            tuple(tokens),
            *seconds,
            finished,
            rows if self.keep_rows else None,
        )
        self.index += 1
        return result

    def _roll_back(self, main: Session, helper: Session | None) -> None:
        """Both caches to committed - 1; the draft's may lack one more (see :meth:`_propose`)."""
        wanted = len(self.prompt.ids) + len(self.emitted) - 1
        for session in (main, helper):
            if session is not None and session.length > wanted:
                session.crop(wanted)
