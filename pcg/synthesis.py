"""A request to speak, as a stream of events: sentences, rounds, previews, the finished sound."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcg.acceptance import REGISTRY, Rule, make_rule
from pcg.codec.codec import Audio
from pcg.codec.windowed import PreviewStream, decode_long
from pcg.decoding import MAX_LOOKAHEAD, Prompt, Round, decode
from pcg.errors import PcgError
from pcg.sampling import Sampling
from pcg.text import split_text
from pcg.trace import Trace
from pcg.voice_model import VoiceModel
from pcg.voices import VoicePrompt, with_transcript

SEED_STEP = 1_000_003  # between the sentences of a request


@dataclass(frozen=True)
class Request:
    """What to say, in whose voice, and how to decode it.

    Attributes:
        text: any English text; it is put into words and split at sentences.
        voice: the voice prompt, or None for the model's own choice.
        rule: a name of :data:`pcg.acceptance.REGISTRY`; ``params`` are its parameters.
        lookahead: drafted tokens a round.
        sampling: the same for draft and target.
        seed: of the request's generators.
        max_seconds: of speech; what is longer is cut and said to be.
        adaptive: adaptive lookahead, off by default; see :func:`pcg.decoding.decode`.
    """

    text: str
    voice: VoicePrompt | None = None
    rule: str = "pcg"
    params: Mapping[str, Any] = field(default_factory=dict)
    lookahead: int = 3
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    max_seconds: float = 30.0
    adaptive: Any = None


@dataclass(frozen=True)
class Started:
    """The sentences and how many tokens they may take in all."""

    sentences: tuple[str, ...]
    budget: int


@dataclass(frozen=True)
class RoundEvent:
    """One round of the sentence with this number."""

    round: Round
    sentence: int


@dataclass(frozen=True)
class Preview:
    """A chunk of sound decoded before the rest is known; the finished sound differs a little."""

    audio: Audio


@dataclass(frozen=True)
class Finished:
    """The finished sound ``(samples,)``, its trace, its figures and its speech codes."""

    audio: Audio
    trace: Trace
    summary: dict[str, Any]
    codes: list[int]


Event = Started | RoundEvent | Preview | Finished


def speak(
    model: VoiceModel,
    request: Request,
    keep_rows: bool = False,
    should_stop: Callable[[], bool] | None = None,
    preview: bool = True,
) -> Iterator[Event]:
    """Speak a request; closing the generator frees everything it holds.

    Args:
        model: the voice model.
        request: what to say.
        keep_rows: keep every round's probability rows (for sweeps; not stored in traces).
        should_stop: asked at every round; True ends the speech there.
        preview: yield chunks of sound while speaking.

    Raises:
        PcgError: one sentence, before anything is computed where possible.
    """
    plan = _plan(model, request)
    yield Started(plan.sentences, sum(plan.budgets))
    rule = rule_for(model, request)
    trace = Trace(header(model, request, plan.sentences))
    codes: list[int] = []
    preview_seconds, started = 0.0, time.perf_counter()
    stream = PreviewStream(model.codec, np.asarray(plan.codes, np.int64)) if preview else None
    for number, (prompt, budget) in enumerate(zip(plan.prompts, plan.budgets)):
        offset, stopped = len(codes), False
        for turn in _decode(model, request, rule, prompt, budget, number, keep_rows, should_stop):
            spoken = [token for token in turn.emitted if token < model.codec.n_codes]
            codes += spoken
            trace.append(_shifted(turn, offset, len(trace.rounds)))
            yield RoundEvent(turn, number)
            if stream is not None and spoken:
                began = time.perf_counter()
                chunk = stream.push(spoken)
                preview_seconds += time.perf_counter() - began
                if chunk is not None:
                    yield Preview(chunk)
            stopped = turn.finished == "cancelled"
        if stopped:
            break
    if stream is not None and codes and (rest := stream.finish()) is not None:
        yield Preview(rest)
    spent = time.perf_counter() - started
    yield _finished(model, plan, trace, codes, spent, preview_seconds)


def rule_for(model: VoiceModel, request: Request) -> Rule:
    """The acceptance rule of a request, with the model's groups and default theta."""
    spec = REGISTRY.get(request.rule)
    if spec is None:
        raise PcgError(f"There is no rule {request.rule!r}; choose from {', '.join(REGISTRY)}.")
    params = dict(request.params)
    if any(p.name == "theta" for p in spec.parameters):
        params.setdefault("theta", model.default_theta)
    return make_rule(request.rule, groups=model.groups, embeddings=model.embeddings, **params)


def header(model: VoiceModel, request: Request, sentences: tuple[str, ...]) -> dict[str, Any]:
    """What a trace says about its origin."""
    voice = request.voice
    return {
        "model": model.name,
        "dtype": model.target.dtype,
        "device": str(model.target.device),
        "draft": model.draft.name if model.draft is not None else None,
        "rule": request.rule,
        "params": dict(request.params),
        "lookahead": 0 if request.rule == "target" else request.lookahead,
        "sampling": dataclasses.asdict(request.sampling),
        "seed": request.seed,
        "voice": voice.name if voice is not None else None,
        "text": request.text,
        "sentences": list(sentences),
        "hop": model.codec.hop,
        "sample_rate": model.codec.sample_rate,
        "n_codes": model.codec.n_codes,
        "vocab_size": model.target.vocab_size,
        "theta": dict(request.params).get("theta", model.default_theta),
    }


@dataclass(frozen=True)
class _Plan:
    sentences: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    budgets: tuple[int, ...]
    codes: tuple[int, ...]  # of the voice prompt


def _plan(model: VoiceModel, request: Request) -> _Plan:
    if request.rule != "target" and model.draft is None:
        raise PcgError(f"{model.name} has no draft: choose the rule 'target' or name a draft.")
    if not 0 <= request.lookahead <= MAX_LOOKAHEAD:
        raise PcgError(f"The lookahead must be between 0 and {MAX_LOOKAHEAD}.")
    if not request.max_seconds > 0:
        raise PcgError("The longest duration must be above zero.")
    sentences = split_text(request.text, english_only=model.english_only)
    voice = with_transcript(request.voice) if request.voice is not None else None
    codes = model.voice_codes(voice)
    left = int(request.max_seconds * model.codec.tokens_per_second)
    prompts, budgets = [], []
    for sentence in sentences:
        prompt = model.prompts.build(sentence, voice, codes)
        room = model.target.max_positions - 1 - _used(prompt)
        budget = min(model.prompts.estimate_tokens(sentence, voice), left, room - request.lookahead)
        if room < 32:
            raise PcgError("Voice prompt and text are too long together: use a shorter prompt.")
        if budget < 1:
            break
        left -= budget
        prompts.append(prompt)
        budgets.append(budget)
    kept = tuple(sentences[: len(prompts)])
    return _Plan(kept, tuple(prompts), tuple(budgets), codes)


def _used(prompt: Prompt) -> int:
    highest = max(prompt.positions) + 1 if prompt.positions else 0
    return max(len(prompt.ids), highest)


def _decode(
    model: VoiceModel,
    request: Request,
    rule: Rule,
    prompt: Prompt,
    budget: int,
    number: int,
    keep_rows: bool,
    should_stop: Callable[[], bool] | None,
) -> Iterator[Round]:
    alone = request.rule == "target" or request.lookahead == 0
    return decode(
        model.target,
        None if alone else model.draft,
        prompt,
        rule,
        sampling=request.sampling,
        lookahead=0 if alone else request.lookahead,
        max_tokens=budget,
        seed=request.seed + SEED_STEP * number,
        keep_rows=keep_rows,
        adaptive=request.adaptive,
        should_stop=should_stop,
    )


def _shifted(turn: Round, offset: int, index: int) -> Round:
    """A round of a later sentence, counted from the start of the request."""
    return dataclasses.replace(turn, start=turn.start + offset, index=index)


def _finished(
    model: VoiceModel, plan: _Plan, trace: Trace, codes: list[int], spent: float, preview: float
) -> Finished:
    began = time.perf_counter()
    audio = np.zeros(0, np.float32)
    if codes:
        whole = decode_long(model.codec, np.asarray([*plan.codes, *codes], np.int64))
        audio = whole[len(plan.codes) * model.codec.hop :]
    summary = dict(trace.summary())
    ends = [turn.finished for turn in trace.rounds if turn.finished]
    summary |= {
        "finished": ends[-1] if ends else None,
        "sentences": len(plan.sentences),
        "audio_seconds": len(audio) / model.codec.sample_rate,
        "wall_seconds": spent,
        "preview_seconds": preview,
        "codec_seconds": time.perf_counter() - began,
        "dtype": model.target.dtype,
    }
    return Finished(audio, trace, summary, codes)
