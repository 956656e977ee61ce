"""Watch: the rounds as they happen and afterwards, token by token, under the audio."""

from __future__ import annotations

import html
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from pcg.errors import PcgError
from pcg.ui import running, runtime, sounds
from pcg.ui.components.timeline import Timeline
from pcg.ui.trace_view import plain, timeline
from pcg.ui.visitor import Run, Visitor

EMPTY = "Speak something in Compare, or load a trace: every token drafted and judged appears here."


@dataclass
class Watch:
    """The tab's components that the page wires up."""

    choose: gr.Dropdown
    load: gr.UploadButton
    save: gr.DownloadButton
    note: gr.HTML
    view: Timeline


def build(visitor: gr.State) -> Watch:
    """The tab's content; call inside a `gr.Tab`."""
    with gr.Row(elem_classes="pcg-tools"):
        choose = gr.Dropdown(
            [], label="Utterance", elem_id="watch-run", interactive=True, filterable=False, scale=3
        )
        load = gr.UploadButton("Load a trace", file_types=[".jsonl"], elem_id="trace-load", scale=1)
        save = gr.DownloadButton("Save this trace", elem_id="trace-save", scale=1)
    note = gr.HTML(elem_id="watch-note", apply_default_css=False)
    view = Timeline(empty=EMPTY, server_functions=[sounds.hear_codes], elem_id="timeline")
    quiet: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
    choose.input(show_run, [visitor, choose], [view, save], queue=False, **quiet)
    load.upload(load_trace, load, [view, note], **quiet)
    return Watch(choose, load, save, note, view)


def shown_first(visitor: Visitor) -> Run | None:
    """The run to look at after a comparison: the newest PCG run, else the newest."""
    grouped = [run for run in visitor.runs if run.rule == "pcg"]
    return next(reversed(grouped or visitor.runs), None)


def run_choices(visitor: Visitor) -> dict[str, Any]:
    """The dropdown's update after a run."""
    names = [(f"{run.label}: {run.settings['text'][:28]}", run.id) for run in visitor.runs[::-1]]
    first = shown_first(visitor)
    return gr.update(choices=names, value=first.id if first else None)


def show_run(visitor: Visitor, run_id: str | None) -> tuple[Any, Any]:
    """The timeline of a kept run and its trace file."""
    run = visitor.find(run_id)
    if run is None:
        return {}, gr.update(value=None)
    return running.run_timeline(run), gr.update(value=save_trace(run.trace))


def save_trace(trace: Any) -> str:
    """Write a trace where this visitor can fetch it."""
    from gradio import utils

    folder = Path(tempfile.mkdtemp(dir=utils.get_cache_folder()))
    path = folder / "trace.jsonl"
    trace.save(path)
    return str(path)


def load_trace(path: str | None) -> tuple[Any, str]:
    """A stored trace as a timeline, with audio when the codec here fits it."""
    from pcg.trace import Trace

    try:
        if not path:
            raise PcgError("Choose a trace file that was saved here.")
        size, most = Path(path).stat().st_size, runtime.limits().max_trace_mb
        if size > most * 1e6:
            raise PcgError(f"This trace is too large: {most:g} MB are the most here.")
        trace = Trace.load(Path(path))
        value = timeline(trace, f"loaded: {trace.header.get('rule', '')}", f"file-{time.time()}")
        value["file"] = sounds.trace_audio(value)
        return plain(value), ""
    except (PcgError, OSError, ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        text = str(error) if isinstance(error, PcgError) else "This file is not a trace saved here."
        return gr.skip(), f"<p class='pcg-note bad' role='status'>{html.escape(text)}</p>"
