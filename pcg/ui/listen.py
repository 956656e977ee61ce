"""Listen: take a blind test, make one from Compare or from recordings, read the results."""

from __future__ import annotations

import html
import json
import secrets
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import gradio as gr
from gradio import processing_utils, utils
from starlette.routing import BaseRoute

from pcg.errors import PcgError
from pcg.listening.analysis.page import fragment
from pcg.listening.analysis.report import analyse
from pcg.listening.backup import from_environment
from pcg.listening.desk import Desk
from pcg.listening.export import flat_rows, to_csv, to_json
from pcg.listening.page import script, style
from pcg.listening.routes import routes
from pcg.listening.sources import Recording, build_study, pack, read_folder, unpack
from pcg.listening.store import Unknown, default_root
from pcg.serving.guard import guard
from pcg.ui import runtime
from pcg.ui.components.base import WebComponent
from pcg.ui.visitor import Run, Visitor

KINDS = {
    "Which sounds better (AB)": "ab",
    "Can they be told apart (ABX)": "abx",
    "How natural, 1 to 5 (MOS)": "mos",
    "How close to a reference (MUSHRA)": "mushra",
}
REVEALS = {"after each answer": "each", "at the end": "end", "never": "never"}
FROM_COMPARE, FROM_FILES, FROM_ZIP = "Outputs of Compare", "Recordings", "A packed test"
FILES_HELP = (
    "Recordings named ITEM__SYSTEM.wav (two underscores), or any names with a manifest.csv of "
    "file,item,system and optionally text and practice."
)
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "minimal"}


class ListenView(WebComponent):
    """Taking a test; value: `{"study": id or None}`. The view's code travels with the component."""

    view: ClassVar[str] = "listen"
    triggers: ClassVar[tuple[str, ...]] = ("finished",)

    def __init__(self, value: Any = None, **props: Any) -> None:
        super().__init__(
            value=value or {"study": None},
            base="listening",
            empty="Make a test below, or open one with its id, to take it here.",
            **props,
        )
        mount: str = self.js_on_load
        self.js_on_load: str = f"if (!PCG.views.listen) {{ {script()} }}\n{mount}"


def root() -> Path:
    """Where tests and votes lie: below the settings' `data_dir`, else the library's default."""
    kept = runtime.settings().data_dir
    return Path(kept) / "listening" if kept else default_root()


@cache
def desk() -> Desk:
    """The one desk of this process, opened at its first use; its backup starts with it."""
    opened = Desk(root())
    from_environment(opened)
    return opened


def http_routes() -> list[BaseRoute]:
    """What the view talks to; to be given to the application that serves the page."""
    return list(routes(desk()).routes)


def build(visitor: gr.State | None = None) -> ListenView:
    """The tab's content; call inside a `gr.Tab`. `visitor` holds the runs of Compare."""
    gr.HTML(f"<style>{style()}</style>", apply_default_css=False, visible="hidden")
    view = ListenView(elem_id="listen-view")
    with gr.Accordion("Make a test", open=True, elem_id="listen-make"):
        made = _make_part(visitor, view)
    with gr.Accordion("Results", open=False, elem_id="listen-results"):
        _results_part(*made)
    return view


def _make_part(visitor: gr.State | None, view: ListenView) -> tuple[gr.Textbox, gr.Textbox]:
    visitor = visitor or gr.State(Visitor())
    with gr.Row():
        source = gr.Radio(
            [FROM_COMPARE, FROM_FILES, FROM_ZIP], value=FROM_COMPARE, label="Made from"
        )
        kind = gr.Dropdown(list(KINDS), value=next(iter(KINDS)), label="Question", min_width=300)
    files = gr.File(
        file_count="multiple", label=FILES_HELP, visible=False, elem_id="listen-files", height=140
    )
    with gr.Row(visible=True) as rules:
        title = gr.Textbox("Listening test", label="Title", max_length=120)
        reference = gr.Textbox("", label="Reference system (MUSHRA)", max_length=120, visible=False)
        reveal = gr.Dropdown(list(REVEALS), value="at the end", label="Names are shown")
        tie = gr.Checkbox(False, label="Allow “no preference” (AB)")
    with gr.Row():
        practice = gr.Number(0, label="Practice items", precision=0, minimum=0, maximum=10)
        repeats = gr.Number(
            1, label="Times each question comes", precision=0, minimum=1, maximum=50
        )
        seed = gr.Number(0, label="Seed of the orders", precision=0, minimum=0)
    create = gr.Button("Make the test", variant="primary", elem_id="listen-create")
    status = gr.HTML(elem_id="listen-status", apply_default_css=False, min_height=24)
    with gr.Row(visible=False) as done:
        study = gr.Textbox(label="Id of the test", elem_id="listen-id", buttons=["copy"])
        key = gr.Textbox(
            label="Owner's key, shown only now: it opens the results",
            elem_id="listen-key",
            buttons=["copy"],
        )
        packed = gr.DownloadButton("Save the test", elem_id="listen-pack")
    source.change(_source_changed, source, [files, rules], queue=False, **PRIVATE)
    kind.change(
        lambda name: gr.update(visible=KINDS[name] == "mushra"),
        kind,
        reference,
        queue=False,
        **PRIVATE,
    )
    create.click(
        make_test,
        [visitor, source, files, kind, title, reference, reveal, tie, practice, repeats, seed],
        [view, status, done, study, key, packed],
        **PRIVATE,
    )
    return study, key


def _source_changed(source: str) -> tuple[Any, Any]:
    return gr.update(visible=source != FROM_COMPARE), gr.update(visible=source != FROM_ZIP)


def _results_part(made_id: gr.Textbox, made_key: gr.Textbox) -> None:
    with gr.Row():
        study = gr.Textbox(label="Id of the test", elem_id="results-id", max_length=40)
        key = gr.Textbox(label="Owner's key", type="password", elem_id="results-key", max_length=80)
    show = gr.Button("Show the results", elem_id="results-show")
    page = gr.HTML(elem_id="results-page", apply_default_css=False, min_height=24)
    with gr.Row():
        as_csv = gr.DownloadButton("Votes as CSV", interactive=False)
        as_json = gr.DownloadButton("Votes as JSON", interactive=False)
        as_report = gr.DownloadButton("Report as JSON", interactive=False)
    made_id.change(lambda value: value, made_id, study, queue=False, **PRIVATE)
    made_key.change(lambda value: value, made_key, key, queue=False, **PRIVATE)
    show.click(results, [study, key], [page, as_csv, as_json, as_report], **PRIVATE)


def _sentence(text: str, bad: bool = False) -> str:
    tag = "pcg-note bad" if bad else "pcg-note"
    return f"<p class='{tag}' role='status'>{text}</p>"


def _download(name: str, data: bytes) -> str:
    """The path of a file in the cache that the page empties."""
    return str(processing_utils.save_bytes_to_cache(data, name, str(utils.get_cache_folder())))


def make_test(
    visitor: Visitor,
    source: str,
    files: list[str] | None,
    kind: str,
    title: str,
    reference: str,
    reveal: str,
    tie: bool,
    practice: float,
    repeats: float,
    seed: float,
    request: gr.Request,
) -> tuple[Any, ...]:
    """Make a test and open it; returns (view, status, row, id, key, packed test)."""
    folder = Path(tempfile.mkdtemp(prefix="pcg-test-"))
    try:
        with guard()("listen", request):
            if source == FROM_ZIP:
                unpack(_one_zip(files), folder, new_id=secrets.token_hex(5))
            else:
                code = KINDS[kind]
                sounds = from_runs(visitor.runs) if source == FROM_COMPARE else from_files(files)
                if code == "mushra" and not reference:
                    raise PcgError("Name the reference system: one of " + _names(sounds) + ".")
                build_study(
                    sounds,
                    folder,
                    kind=code,
                    title=title.strip() or "Listening test",
                    practice=int(practice or 0),
                    repeats=int(repeats or 1),
                    seed=int(seed or 0),
                    reveal=REVEALS[reveal],
                    allow_tie=bool(tie),
                    reference=reference.strip() or None if code == "mushra" else None,
                )
            study, key = desk().add(folder)
        packed = _download(f"listening-test-{study.id}.zip", pack(desk().folder(study.id)))
        link = f"listening/take/{study.id}"
        text = (
            "Ready above. To invite others, send them "
            f"<a href='{link}' target='_blank'>{link}</a> on this site: that page knows no names. "
            "Keep the owner's key to read the results."
        )
        found = (_sentence(text), gr.update(visible=True), study.id, key)
        return {"study": study.id}, *found, gr.update(value=packed)
    except PcgError as error:
        return (gr.skip(), _sentence(html.escape(str(error)), bad=True), *(gr.skip(),) * 4)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _names(sounds: Iterable[Recording]) -> str:
    return ", ".join(dict.fromkeys(sound.system for sound in sounds))


def _one_zip(files: list[str] | None) -> bytes:
    zips = [path for path in files or [] if path.endswith(".zip")]
    if len(zips) != 1:
        raise PcgError("Choose the one .zip that “Save the test” gave.")
    return Path(zips[0]).read_bytes()


def from_files(files: list[str] | None) -> list[Recording]:
    """Recordings of uploaded files, by their own names or by a manifest among them."""
    if not files:
        raise PcgError("Choose the recordings first.")
    with tempfile.TemporaryDirectory(prefix="pcg-upload-") as folder:
        for path in files:
            shutil.copy(path, Path(folder) / Path(path).name)
        return read_folder(Path(folder))


def from_runs(runs: list[Run]) -> list[Recording]:
    """Recordings of what Compare made: a text is an item and a rule a system.

    The newest text says which rules take part; older texts join when all these rules spoke them.
    """
    texts: dict[str, dict[str, Run]] = {}
    for run in runs:
        text = str(run.settings.get("text") or run.trace.header.get("text", ""))
        texts.setdefault(text, {})[run.label] = run
    newest = next(reversed(texts.values()), {})
    if len(newest) < 2:
        raise PcgError("Let at least two rules say one sentence in Compare first.")
    return [
        Recording(f"item {place}", label, spoken[label].audio, spoken[label].sample_rate, text)
        for place, (text, spoken) in enumerate(texts.items(), 1)
        if newest.keys() <= spoken.keys()
        for label in newest
    ]


def results(study_id: str, key: str, request: gr.Request) -> tuple[Any, ...]:
    """(report as HTML, CSV, JSON, report JSON) of a test, for its owner."""
    try:
        with guard()("listen", request):
            study_id = study_id.strip()
            try:
                owner = desk().is_owner(study_id, key)
            except Unknown:
                owner = False
            if not owner:
                raise PcgError("No test has this id and this owner's key.")
            study = desk().study(study_id)
            rows = flat_rows(study, desk().store)
            report = analyse(study, rows, desk().store.checks(study_id))
        made = {
            f"votes-{study_id}.csv": to_csv(study, rows),
            f"votes-{study_id}.json": to_json(study, rows),
            f"report-{study_id}.json": json.dumps(report, indent=1),
        }
        ready = [
            gr.update(value=_download(name, text.encode()), interactive=True)
            for name, text in made.items()
        ]
        return (f"<div class='pcg-root'>{fragment(report)}</div>", *ready)
    except PcgError as error:
        return (_sentence(html.escape(str(error)), bad=True), *(gr.update(interactive=False),) * 3)
