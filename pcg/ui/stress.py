"""Stress test: swap tokens inside their groups until it breaks (Table 2), beside two controls."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import stdev
from typing import Any

import gradio as gr

from pcg.errors import PcgError
from pcg.serving.guard import guard
from pcg.ui import inputs, runtime, sounds
from pcg.ui.components.figures import ChartSet
from pcg.ui.components.player import Player, audio_file
from pcg.ui.running import Lane, stat
from pcg.ui.visitor import Run, Visitor

EMPTY = "Speak something in Compare first; then swap its tokens here and listen."
SHARES = (0.25, 0.5, 0.75, 1.0)
PAPER = {"share": 0.914, "wer": 0.007, "similarity": -0.027}
T95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}
CONDITIONS = (
    ("group", "Inside its group"),
    ("mel", "Inside its Mel group"),
    ("shuffled", "Inside another token's group"),
    ("any", "Any other token"),
)


@dataclass
class Stress:
    """The tab's components that the page wires up."""

    choose: gr.Dropdown
    theta: gr.Slider
    share: gr.Slider
    seeds: gr.Slider
    run: gr.Button
    stop: gr.Button
    status: gr.HTML
    board: Player
    charts: ChartSet


@dataclass
class Condition:
    """One kind of swap: its groups, its lane and what was measured, by share."""

    name: str
    label: str
    colour: str
    groups: Any
    control: str
    lane: Lane
    measured: dict[float, list[dict[str, float]]] = field(default_factory=dict)
    realised: float = 0.0


def build(default_theta: float) -> Stress:
    """The tab's content; call inside a `gr.Tab`."""
    with gr.Row(equal_height=False):
        with gr.Column(scale=4, min_width=320):
            choose = gr.Dropdown(
                [], label="Utterance", elem_id="stress-run", interactive=True, filterable=False
            )
            theta = gr.Slider(
                0.0, 1.0, default_theta, step=0.005, label="theta", elem_id="stress-theta"
            )
            share = gr.Slider(
                0.0, 1.0, 0.9, step=0.01, label="Share of tokens to swap", elem_id="stress-share"
            )
            seeds = gr.Slider(1, 5, 3, step=1, label="Random draws for the curves")
        with gr.Column(scale=7, min_width=320):
            with gr.Row():
                run = gr.Button("Swap", variant="primary", elem_id="swap", scale=2)
                stop = gr.Button("Stop", elem_id="swap-stop", scale=1)
            status = gr.HTML(elem_id="swap-status", apply_default_css=False, min_height=24)
            board = Player(empty=EMPTY, live=False, elem_id="swap-board")
    charts = ChartSet(elem_id="swap-charts")
    return Stress(choose, theta, share, seeds, run, stop, status, board, charts)


def swap_run(
    visitor: Visitor,
    run_id: str | None,
    theta: float,
    share: float,
    seeds: float,
    request: gr.Request,
) -> Iterator[tuple[Any, Any, str]]:
    """Swap, let it be heard, then measure; yields (board, charts, status)."""
    event = runtime.stop_event(request.session_hash if request else None)
    skip = gr.skip()
    stack = ExitStack()
    try:
        stack.enter_context(guard()("swap", request))
        run = visitor.find(run_id) or visitor.newest()
        if run is None or not run.codes:
            raise PcgError(EMPTY)
        theta = inputs.number_in(theta, "Theta", -1.0, 1.0)
        share = inputs.number_in(share, "The share", 0.0, 1.0)
        count = int(inputs.number_in(seeds, "The number of draws", 1, 5))
        conditions = _conditions(theta)
        before = Lane("before", "", {}, "Before", run.label, "done", file=run.file)
        lanes = [before, *(c.lane for c in conditions)]
        for condition in conditions:
            _hear(condition, run, share)
            yield _board(lanes), skip, "Swapped; listen while it is measured."
        yield from _measured(run, conditions, share, count, lanes, before, event.is_set)
    except PcgError as error:
        text = f"<p class='pcg-note bad' role='status'>{html.escape(str(error))}</p>"
        yield skip, skip, text
    finally:
        event.set()
        stack.close()


def _conditions(theta: float) -> list[Condition]:
    model = runtime.model()
    if model.groups is None:
        raise PcgError("This model has no stored groups to swap in.")
    groups = model.groups.at(theta)
    made: list[Condition] = []
    for name, label in CONDITIONS:
        own = groups
        if name == "mel":
            if model.mel_groups is None:
                continue
            size = model.groups.mean_size(theta)
            own = model.mel_groups.at(model.mel_groups.calibrate(mean_size=size))
        control = "group" if name in ("group", "mel") else name
        lane = Lane(name, "", {}, label, "", "waiting")
        colour = f"t{len(made) + 2}"  # the lane's own colour; lane 1 is "before"
        made.append(Condition(name, label, colour, own, control, lane))
    return made


def _hear(condition: Condition, run: Run, share: float) -> None:
    from pcg.swap import swap_codes

    swapped = swap_codes(run.codes, condition.groups, share, 0, condition.control)  # type: ignore[arg-type]
    audio = sounds.decode(swapped.codes)
    lane = condition.lane
    lane.file, lane.state = audio_file(audio, run.sample_rate), "done"
    condition.realised = swapped.realised
    lane.stats = [
        stat("swapped", f"{swapped.realised:.1%}", "Share of all tokens that changed.", main=True),
        stat("could be", f"{swapped.possible / len(run.codes):.0%}", "Not alone in a group."),
    ]


def _board(lanes: list[Lane]) -> dict[str, Any]:
    return {"tracks": [lane.view() for lane in lanes], "note": "", "kind": ""}


def _measured(
    run: Run,
    conditions: list[Condition],
    share: float,
    count: int,
    lanes: list[Lane],
    before: Lane,
    stopped: Callable[[], bool],
) -> Iterator[tuple[Any, Any, str]]:
    from pcg.swap import swap_codes

    base = quality(run.settings["text"], run.audio, run.audio, run.sample_rate)
    if base is None:
        note = "Words and voice are not measured here: no recogniser is installed. Listen instead."
        yield _board(lanes), {"note": note}, ""
        return
    before.stats = [stat("WER", f"{base['wer']:.0%}"), stat("CER", f"{base['cer']:.0%}")]
    shares = sorted({*SHARES, round(share, 2)})
    jobs = [(c, s, seed) for seed in range(count) for s in shares for c in conditions]
    for done, (condition, part, seed) in enumerate(jobs, 1):
        if stopped():
            break
        codes = swap_codes(run.codes, condition.groups, part, seed, condition.control)  # type: ignore[arg-type]
        audio = sounds.decode(codes.codes)
        got = quality(run.settings["text"], audio, run.audio, run.sample_rate)
        if got is not None:
            change = {key: got[key] - base[key] for key in ("wer", "cer")}
            row = {**change, "similarity": got["similarity"] - 1.0, "realised": codes.realised}
            condition.measured.setdefault(part, []).append(row)
        if done % len(conditions) == 0:
            yield _board(lanes), charts(conditions), f"Measured {done} of {len(jobs)} swaps."
    word = "Stopped" if stopped() else "Done"
    yield _board(lanes), charts(conditions), f"{word}: {count} draws of {len(shares)} shares."


def quality(text: str, audio: Any, original: Any, rate: int) -> dict[str, float] | None:
    """WER, CER and similarity to the unswapped audio, or None without the models."""
    if not runtime.settings().metrics:
        return None
    from pcg.metrics.speaker import speaker_similarity
    from pcg.metrics.wer import transcribe, word_errors

    try:
        words = word_errors(text, transcribe(audio))
        alike = speaker_similarity(original, audio)
        return {"wer": words.wer, "cer": words.cer, "similarity": float(alike)}
    except (PcgError, ImportError):
        return None


def charts(conditions: list[Condition]) -> dict[str, Any]:
    """Curves over the share really swapped, and the table of all numbers."""

    def point(rows: list[dict[str, float]], key: str) -> list[float]:
        mean = sum(r[key] for r in rows) / len(rows)
        x = sum(r["realised"] for r in rows) / len(rows)
        if len(rows) < 2:
            return [x, mean]
        half = T95[len(rows)] * stdev(r[key] for r in rows) / len(rows) ** 0.5
        return [x, mean, mean - half, mean + half]

    def chart(key: str, title: str, note: str) -> dict[str, Any]:
        series: list[dict[str, Any]] = [
            {
                "name": c.label,
                "colour": c.colour,
                "points": sorted(point(rows, key) for rows in c.measured.values()),
                "shape": "exact",
            }
            for c in conditions
            if c.measured
        ]
        if key in PAPER:
            paper = {"name": "the paper's point (LLaSA-8B, another model)", "colour": "t8"}
            paper |= {"points": [[PAPER["share"], PAPER[key]]], "dots": True, "open": True}  # type: ignore[dict-item]
            series.append({**paper, "shape": "bonus"})
        x = {"label": "share of tokens really swapped", "min": 0, "max": 1}
        return {"title": title, "note": note, "x": x, "y": {"label": ""}, "series": series}

    rows = []
    for c in conditions:
        for part, found in sorted(c.measured.items()):
            cells = [f"{100 * point(found, 'wer')[0]:.1f} %"]
            for key in ("wer", "cer", "similarity"):
                p = point(found, key)
                spread = f" [{p[2]:+.3f}, {p[3]:+.3f}]" if len(p) > 2 else ""
                cells.append(f"{p[1]:+.3f}{spread}")
            rows.append([c.label, f"{part:.0%}", *cells])
    head = ["swap", "asked", "swapped", "WER change", "CER change", "similarity change"]
    words = "Change of the word error rate; bars are 95 % t-intervals over the draws."
    voice = "Change of the voice's similarity to the unswapped sound."
    return {
        "charts": [chart("wer", "Words", words), chart("similarity", "Voice", voice)],
        "table": {"title": "All swaps", "head": head, "rows": rows},
    }
