"""Runs of several rules in turn, as a stream of page states at most ten times a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pcg.errors import PcgError
from pcg.ui import runtime
from pcg.ui.components.player import audio_file, pcm_chunk
from pcg.ui.inputs import Choices, rule_label
from pcg.ui.trace_view import header_view, plain, round_row, timeline
from pcg.ui.visitor import Run, Visitor

UPDATE_SECONDS = 0.12


@dataclass
class Lane:
    """One rule's lane on the board while it runs and afterwards."""

    id: str
    rule: str
    params: dict[str, float]
    label: str
    detail: str
    state: str = "waiting"
    progress: float = 0.0
    message: str = ""
    stats: list[dict[str, Any]] = field(default_factory=list)
    file: dict[str, Any] | None = None

    def view(self) -> dict[str, Any]:
        """The lane as the player's track."""
        keys = ("id", "label", "detail", "state", "progress", "message", "stats", "file")
        return {key: getattr(self, key) for key in keys}


@dataclass
class Page:
    """What the page shows now: the board and the timeline of the rule that speaks."""

    lanes: list[Lane]
    live: dict[str, Any] | None = None
    rounds: list[dict[str, Any]] = field(default_factory=list)
    header: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    kind: str = ""

    def board(self) -> dict[str, Any]:
        """The player's value."""
        tracks = [lane.view() for lane in self.lanes]
        return {"tracks": tracks, "live": self.live, "note": self.note, "kind": self.kind}

    def watch(self) -> dict[str, Any]:
        """The timeline's value while a rule speaks."""
        tokens = sum(len(r["e"]) for r in self.rounds)
        summary = {"rounds": len(self.rounds), "tokens": tokens}
        return {
            "header": self.header,
            "rounds": list(self.rounds),
            "summary": summary,
            "file": None,
            "live": True,
        }


def stat(label: str, value: str, help_text: str = "", main: bool = False) -> dict[str, Any]:
    """One figure under a lane."""
    return {"label": label, "value": value, "help": help_text, "main": main}


def make_lanes(choices: Choices, visitor: Visitor) -> list[Lane]:
    """A waiting lane for every rule of the comparison."""
    lanes = []
    for name, params in choices.rules:
        label, detail = rule_label(name, params)
        lanes.append(Lane(visitor.next_id(), name, params, label, detail))
    return lanes


def make_request(choices: Choices, rule: str, params: dict[str, float], voice: Any) -> Any:
    """The synthesis request of one rule; every rule gets the same seed."""
    from pcg.sampling import Sampling
    from pcg.synthesis import Request

    sampling = Sampling(choices.temperature, choices.top_k, choices.top_p)
    return Request(
        text=choices.text,
        voice=voice,
        rule=rule,
        params=params,
        lookahead=choices.lookahead,
        sampling=sampling,
        seed=choices.seed,
        max_seconds=runtime.limits().max_seconds,
    )


def run_all(
    choices: Choices,
    voice: Any,
    visitor: Visitor,
    should_stop: Callable[[], bool],
    before: Sequence[Run] = (),
) -> Iterator[Page]:
    """Let the rules take turns; yields the page at most every `UPDATE_SECONDS`.

    Finished runs go to `visitor`; those of `before` keep their lanes above the new ones. A stop
    request ends the speaking rule at its next round and keeps what was said. Errors of one rule
    are shown in its lane and do not stop the others.
    """
    model = runtime.model()
    fresh = make_lanes(choices, visitor)
    page = Page([*(lane_of(run) for run in before), *fresh])
    visitor.choices, visitor.voice = choices, voice
    visitor.compared = [lane.id for lane in page.lanes]
    if not before:
        visitor.start_comparison()
    done = list(before)
    yield page
    for lane in fresh:
        if should_stop():
            lane.state, lane.message = "stopped", "not started"
            continue
        try:
            yield from _run_one(model, choices, voice, visitor, should_stop, page, lane, done)
        except PcgError as error:
            lane.state, lane.message = "error", str(error)
        _compare_figures(page, done)
        yield page
    page.live = None
    yield page


def lane_of(run: Run) -> Lane:
    """The finished lane of an earlier run."""
    label, detail = rule_label(run.rule, run.params)
    return Lane(
        run.id, run.rule, run.params, label, detail, "done", 1.0, "", final_stats(run), run.file
    )


def _run_one(
    model: Any,
    choices: Choices,
    voice: Any,
    visitor: Visitor,
    should_stop: Callable[[], bool],
    page: Page,
    lane: Lane,
    done: list[Run],
) -> Iterator[Page]:
    from pcg import synthesis

    began = last = time.monotonic()
    deadline = began + runtime.limits().request_seconds
    late = False

    def stop_now() -> bool:
        nonlocal late
        late = late or time.monotonic() > deadline
        return late or should_stop()

    lane.state = "running"
    header = {"rule": lane.rule, "seed": choices.seed, "text": choices.text}
    header |= {"hop": model.codec.hop, "sample_rate": model.codec.sample_rate}
    header["n_codes"] = model.codec.n_codes
    page.header = header_view(header, _full_label(lane), lane.id)
    page.rounds = []
    page.live = {"track": lane.id, "sample_rate": model.codec.sample_rate, "chunks": []}
    yield page
    rows: list[tuple[Any, Any]] = []
    tokens = budget = spoken = offset = sentence = 0
    request = make_request(choices, lane.rule, lane.params, voice)
    for event in synthesis.speak(model, request, keep_rows=True, should_stop=stop_now):
        if isinstance(event, synthesis.Started):
            budget = int(event.budget)
        elif isinstance(event, synthesis.RoundEvent):
            if event.sentence != sentence:
                sentence, offset = event.sentence, spoken
            row = round_row(event.round, offset)
            page.rounds.append(row)
            tokens += len(row["e"])
            spoken += sum(token < model.codec.n_codes for token in row["e"])
            kept = getattr(event.round, "rows", None)
            if kept is not None and event.round.drafted:
                own, target = kept  # halves of what the tuner reads: they stay with the visitor
                rows.append((own.half(), target[: len(own)].half()))
            lane.progress = min(0.98, tokens / budget) if budget else 0.0
        elif isinstance(event, synthesis.Preview):
            page.live["chunks"].append(pcm_chunk(event.audio))
            last = 0.0
        elif isinstance(event, synthesis.Finished):
            run = _finish(event, lane, choices, visitor, rows)
            done.append(run)
        now = time.monotonic()
        if now - last >= UPDATE_SECONDS and lane.state == "running":
            last = now
            lane.stats = _running_stats(tokens, budget, now - began)
            yield page
    if lane.state == "running":
        lane.state, lane.message = "stopped", "stopped"
    if late:
        lane.message = "stopped at this page's time limit"
    elif should_stop() and lane.state == "done":
        lane.state, lane.message = "stopped", "stopped here"


def _full_label(lane: Lane) -> str:
    return f"{lane.label} ({lane.detail})" if lane.detail else lane.label


def _running_stats(tokens: int, budget: int, seconds: float) -> list[dict[str, Any]]:
    rate = tokens / seconds if seconds > 0 else 0.0
    left = max(0, budget - tokens) / rate if rate and budget else None
    stats = [stat("tokens", f"{tokens}"), stat("tokens/s", f"{rate:.0f}")]
    if left is not None:
        stats.append(stat("left at most", f"{left:.0f} s", "If the whole budget is used."))
    return stats


def _finish(
    event: Any, lane: Lane, choices: Choices, visitor: Visitor, rows: list[tuple[Any, Any]]
) -> Run:
    model = runtime.model()
    rate = model.codec.sample_rate
    run = Run(
        id=lane.id,
        label=_full_label(lane),
        rule=lane.rule,
        params=lane.params,
        audio=event.audio,
        sample_rate=rate,
        trace=event.trace,
        summary=plain(event.summary),
        codes=[int(code) for code in event.codes],
        settings={**choices.as_dict(), "rule": lane.rule, "params": lane.params},
        rows=rows,
    )
    if len(event.audio):
        run.file = audio_file(event.audio, rate)
    lane.file, lane.state, lane.progress = run.file, "done", 1.0
    lane.message = "" if len(event.audio) else "no sound came out"
    visitor.keep(run)
    return run


def _compare_figures(page: Page, done: list[Run]) -> None:
    """Fill every finished lane's figures; speed-up is over target-only of this same run."""
    base = next((run for run in done if run.rule == "target"), None)
    for lane in page.lanes:
        run = next((run for run in done if run.id == lane.id), None)
        if run is not None:
            run.figures |= costs(run, base)
            lane.stats = final_stats(run)


def costs(run: Run, base: Run | None) -> dict[str, Any]:
    """Measured speed-up, and the expected one from this run's own acceptance and costs."""
    from pcg import theory

    figures: dict[str, Any] = {}
    rate = run.summary.get("tokens_per_second")
    if base is None or not rate:
        return figures
    base_rate = base.summary.get("tokens_per_second")
    if base_rate:
        figures["speedup"] = rate / base_rate
    seconds, base_seconds = run.summary.get("seconds"), base.summary.get("seconds")
    rounds, tokens = run.summary.get("rounds"), base.summary.get("tokens")
    lookahead = int(run.settings["lookahead"])
    alpha = run.summary.get("acceptance_rate")
    if run.rule == "target" or not (seconds and base_seconds and rounds and tokens):
        return figures
    one = base_seconds["total"] / tokens
    if alpha is None or one <= 0:
        return figures
    figures["c"] = seconds["draft"] / (rounds * lookahead) / one
    figures["v"] = seconds["verify"] / rounds / one
    figures["expected_speedup"] = float(
        theory.expected_speedup(alpha, lookahead, figures["c"], figures["v"])
    )
    return figures


def final_stats(run: Run) -> list[dict[str, Any]]:
    """The figures of a finished lane, each with one sentence of explanation."""
    s, f = run.summary, run.figures
    stats = []
    if "speedup" in f and run.rule != "target":
        help_text = "Tokens a second over those of target-only in this same run."
        stats.append(stat("speed-up", f"{f['speedup']:.2f}×", help_text, main=True))
    if "expected_speedup" in f:
        help_text = "From the acceptance rate and the measured draft and verify times."
        stats.append(stat("expected", f"{f['expected_speedup']:.2f}×", help_text))
    if s.get("tokens_per_second"):
        stats.append(stat("tokens/s", f"{s['tokens_per_second']:.0f}"))
    if s.get("acceptance_rate") is not None and run.rule != "target":
        help_text = "Share of judged drafts kept; the bonus token is not counted."
        stats.append(stat("kept", f"{100 * s['acceptance_rate']:.0f} %", help_text))
        help_text = "Mean, the bonus or replacement token included."
        stats.append(stat("tokens a round", f"{s['tokens_per_round']:.2f}", help_text))
    stats.append(stat("length", f"{len(run.audio) / run.sample_rate:.2f} s"))
    for key, label, form in (("wer", "WER", "{:.0%}"), ("similarity", "similarity", "{:.2f}")):
        if f.get(key) is not None:
            stats.append(stat(label, form.format(f[key]), f.get(f"{key}_model", "")))
    return stats


def measure(page: Page, visitor: Visitor, voice: Any, stop: Callable[[], bool]) -> Iterator[Page]:
    """Add WER and speaker similarity to the finished lanes when the metric models are there."""
    if not runtime.settings().metrics:
        return
    for lane in page.lanes:
        run = visitor.find(lane.id)
        if run is None or not len(run.audio) or "wer" in run.figures or stop():
            continue
        run.figures |= take_measures(run, voice)
        lane.stats = final_stats(run)
        yield page


def take_measures(run: Run, voice: Any) -> dict[str, Any]:
    """WER and similarity of one run; what cannot be measured is left out."""
    from pcg.metrics.speaker import speaker_similarity
    from pcg.metrics.wer import wer

    taken: dict[str, Any] = {}
    try:
        words = wer(run.settings["text"], run.audio)
        if words.ok:
            taken |= {"wer": float(words), "wer_model": words.model}
        if voice is not None and len(voice.audio):
            alike = speaker_similarity(voice.audio, run.audio)
            if alike.ok:
                taken |= {"similarity": float(alike), "similarity_model": alike.model}
    except PcgError:
        return taken
    return taken


def run_timeline(run: Run | None) -> dict[str, Any]:
    """The timeline's value for a kept run."""
    return timeline(run.trace, run.label, run.id, run.file) if run else {}
