"""Compare: one text, one voice, one seed, several rules; heard on one playhead."""

from __future__ import annotations

import html
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from pcg.errors import PcgError
from pcg.serving.guard import guard
from pcg.ui import bundle, inputs, running, runtime, voice_input, watch
from pcg.ui.components.picker import RulePicker
from pcg.ui.components.player import Player
from pcg.ui.visitor import Run, Visitor

EXAMPLES = (
    "The rain had stopped, and the street was quiet.",
    "She sells fresh bread at the corner every morning.",
    "Please call me back before seven o'clock.",
)
EMPTY = "Press “Speak” and every rule says the same text here, one lane each."
LOG = logging.getLogger("pcg.ui")
Prepared = tuple[inputs.Choices, Any, list[Run]]
LINK_JS = """(text, rules, lookahead, temperature, top_p, top_k, seed, voice) => {
  const q = new URLSearchParams();
  const put = (k, v) => q.set(k, typeof v === 'string' ? v : JSON.stringify(v));
  put('text', text); put('rules', rules); put('lookahead', lookahead);
  put('temperature', temperature); put('top_p', top_p); put('top_k', top_k);
  put('seed', seed); put('voice', voice);
  const link = location.origin + location.pathname + '?' + q;
  history.replaceState(null, '', link);
  if (navigator.clipboard) navigator.clipboard.writeText(link).catch(() => {});
  return [text, rules, lookahead, temperature, top_p, top_k, seed, voice];
}"""


@dataclass
class Compare:
    """The tab's components that other tabs and the page wire up."""

    text: gr.Textbox
    preview: gr.HTML
    voice: voice_input.VoiceInput
    rules: RulePicker
    lookahead: gr.Slider
    temperature: gr.Slider
    top_p: gr.Slider
    top_k: gr.Number
    seed: gr.Number
    lock: gr.Checkbox
    run: gr.Button
    stop: gr.Button
    board: Player
    status: gr.HTML
    download: gr.DownloadButton
    link: gr.Button
    examples: list[tuple[gr.Button, str]]

    def settings(self) -> list[Any]:
        """Inputs of `run_comparison` after the visitor's state."""
        plain = [self.text, self.rules, self.lookahead, self.temperature]
        plain += [self.top_p, self.top_k, self.seed, self.lock]
        return plain + self.voice.inputs()


def build() -> Compare:
    """The tab's content; call inside a `gr.Tab`."""
    registry, limits = _registry(), runtime.limits()
    with gr.Row(equal_height=False):
        with gr.Column(scale=4, min_width=320):
            text = gr.Textbox(
                EXAMPLES[0], label="Text", lines=3, max_length=limits.max_text_chars, elem_id="text"
            )
            preview = gr.HTML(elem_id="preview", apply_default_css=False)
            with gr.Row(elem_classes="pcg-chips"):
                examples = [
                    (gr.Button(_short(t), size="sm", elem_classes="pcg-chip"), t) for t in EXAMPLES
                ]
            voice = voice_input.build()
            gr.HTML("<h2 class='pcg-h'>Rules to compare</h2>", apply_default_css=False)
            rules = RulePicker(
                inputs.default_rules(registry),
                registry=registry,
                most=limits.max_rules,
                elem_id="rules",
            )
            with gr.Accordion("Sampling and seed", open=False):
                lookahead = gr.Slider(1, limits.max_lookahead, 3, step=1, label="Lookahead")
                temperature = gr.Slider(0.0, 2.0, 0.8, step=0.05, label="Temperature")
                top_p = gr.Slider(0.05, 1.0, 1.0, step=0.01, label="Top-p")
                top_k = gr.Number(0, label="Top-k (0: all)", minimum=0, precision=0)
                seed = gr.Number(7, label="Seed", minimum=0, precision=0, elem_id="seed")
                lock = gr.Checkbox(True, label="Keep this seed for the next run", elem_id="lock")
        with gr.Column(scale=7, min_width=320):
            with gr.Row():
                run = gr.Button("Speak", variant="primary", elem_id="run", scale=2)
                stop = gr.Button("Stop", elem_id="stop", scale=1)
            status = gr.HTML(elem_id="status", apply_default_css=False, min_height=24)
            board = Player(empty=EMPTY, elem_id="board")
            with gr.Row():
                download = gr.DownloadButton(
                    "Download all (zip)", elem_id="download", interactive=False
                )
                link = gr.Button("Copy a link to these settings", elem_id="link")
    preview_args = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    for event in (text.input, voice.name.change):
        event(text_preview, [text, *voice.inputs()], preview, **preview_args)
    link.click(
        None,
        [text, rules, lookahead, temperature, top_p, top_k, seed, voice.name],
        None,
        js=LINK_JS,
        api_visibility="private",
    )
    return Compare(
        text, preview, voice, rules, lookahead, temperature, top_p, top_k, seed, lock, run, stop,
        board, status, download, link, examples,
    )  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) < 34 else text[:32].rsplit(" ", 1)[0] + " …"


def _registry() -> list[dict[str, Any]]:
    return inputs.registry_view(runtime.default_theta())


def text_preview(text: str, name: str, recording: str | None, transcript: str) -> str:
    """Sentences, their estimated durations and the budget, as escaped HTML."""
    try:
        from pcg.text import split_text

        checked = inputs.check_text(text)
        model = runtime.model()
        voice = voice_input.read(name, recording, transcript)
        rate = model.codec.sample_rate / model.codec.hop
        parts = []
        for sentence in split_text(checked):
            seconds = model.prompts.estimate_tokens(sentence, voice) / rate
            parts.append(f"<li>{html.escape(sentence)} <b>≈ {seconds:.1f} s</b></li>")
        return f"<ol class='pcg-split'>{''.join(parts)}</ol>"
    except PcgError as error:
        return _sentence(str(error))
    except ImportError:
        return ""


def _sentence(text: str, bad: bool = False) -> str:
    kind = " bad" if bad else ""
    return f"<p class='pcg-note{kind}' role='status'>{html.escape(text)}</p>"


def run_comparison(
    visitor: Visitor,
    text: str,
    rules: Any,
    lookahead: float,
    temperature: float,
    top_p: float,
    top_k: float,
    seed: float,
    lock: bool,
    voice_name: str,
    recording: str | None,
    transcript: str,
    request: gr.Request,
) -> Iterator[tuple[Any, ...]]:
    """Run the rules; yields (visitor, board, timeline, status, seed, download)."""

    def prepare() -> Prepared:
        used = seed if lock else inputs.new_seed()
        choices = inputs.check(text, rules, lookahead, temperature, top_p, top_k, used)
        return choices, voice_input.read(voice_name, recording, transcript), []

    yield from _stream(visitor, prepare, request)


def run_theta(
    visitor: Visitor, rules: list[dict[str, Any]], request: gr.Request
) -> Iterator[tuple[Any, ...]]:
    """Run only the newest rule of the picker beside the last comparison, with its settings."""

    def prepare() -> Prepared:
        if visitor.choices is None:
            raise PcgError("Speak something first: then a theta can be heard beside it.")
        chosen = inputs.check_rules(rules[-1:])
        before = [run for name in visitor.compared if (run := visitor.find(name))]
        before = before[-(runtime.limits().max_rules - 1) :]
        return replace(visitor.choices, rules=chosen), visitor.voice, before

    yield from _stream(visitor, prepare, request)


def _stream(
    visitor: Visitor, prepare: Callable[[], Prepared], request: gr.Request
) -> Iterator[tuple[Any, ...]]:
    skip = gr.skip()
    event = runtime.stop_event(request.session_hash if request else None)
    stack = ExitStack()
    seed: Any = skip
    try:
        stack.enter_context(guard()("compare", request))
        choices, voice, before = prepare()
        seed = choices.seed
        began = time.monotonic()
        status = f"<p class='pcg-muted'>Seed {seed}, the same for every rule.</p>"
        page = None
        for page in running.run_all(choices, voice, visitor, event.is_set, before):
            yield skip, page.board(), page.watch(), status, seed, skip
        assert page is not None
        shown = running.run_timeline(watch.shown_first(visitor))
        yield visitor, page.board(), shown, status, seed, skip
        if not event.is_set():
            for measured in running.measure(page, visitor, voice, event.is_set):
                yield visitor, measured.board(), skip, status, seed, skip
        runs = [run for lane in page.lanes if (run := visitor.find(lane.id))]
        ready = skip
        if runs:
            facts = choices.as_dict() | {"voice": voice.name}
            ready = gr.update(value=bundle.comparison_zip(runs, facts), interactive=True)
        word = "Stopped" if event.is_set() else "Done"
        took = time.monotonic() - began
        status = f"<p class='pcg-muted'>{word} after {took:.1f} s. Seed {seed}.</p>"
        yield visitor, page.board(), shown, status, seed, ready
    except PcgError as error:
        yield skip, skip, skip, _sentence(str(error), bad=True), seed, skip
    except Exception:
        LOG.exception("a comparison failed")
        sorry = "Something went wrong on the server; try again, and tell us if it stays so."
        yield skip, skip, skip, _sentence(sorry, bad=True), seed, skip
    finally:
        event.set()
        stack.close()


def stop_run(request: gr.Request) -> None:
    """End this visitor's run at its next round."""
    runtime.stop(request.session_hash)


def from_link(request: gr.Request) -> list[Any]:
    """Values of a permalink for text, rules, lookahead, temperature, top-p, top-k, seed, voice."""
    found = bundle.read_link(dict(request.query_params))
    return [found.get(key, gr.skip()) for key in bundle.FIELDS]
