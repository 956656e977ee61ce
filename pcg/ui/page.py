"""The whole page: head, tabs, what a run in one tab changes in the others, launch options."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gradio as gr

from pcg.serving import health
from pcg.ui import about, api, compare, learn, map, runtime, stress, theme, tune, watch
from pcg.ui.visitor import Visitor

TITLE = "pcg: speech tokens judged by their sound"
INTRO = (
    "A small model drafts speech, a large one checks it. Hear what happens when drafts are judged "
    "token by token, leniently, or by the group of sounds they belong to."
)
HEAD = f"""<div class="pcg-root"><div class="pcg-head"><div><h1>Judged by its sound</h1>
<p>{INTRO}</p></div><div class="side"><button type="button" class="pcg-btn" id="pcg-theme"
>Dark / light</button></div></div></div>"""
HEAD_JS = """PCG.restoreTheme();
element.querySelector('#pcg-theme').addEventListener('click', () => PCG.toggleTheme());"""
STATE_SECONDS = 3600
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}


def build_page() -> gr.Blocks:
    """Build the Blocks; a visitor's state lives in one `gr.State` and nowhere else."""
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as page:
        visitor = gr.State(Visitor(), time_to_live=STATE_SECONDS)
        gr.HTML(HEAD, js_on_load=HEAD_JS, apply_default_css=False)
        with gr.Tabs(elem_id="tabs") as tabs:
            parts = _tabs(visitor)
        _wire_runs(page, tabs, visitor, parts)
        if runtime.settings().server.api:
            api.register()
    server = runtime.settings().server
    hours = int(3600 * server.temp_hours)
    page.delete_cache = (min(300, hours), hours)
    return page.queue(
        max_size=server.queue_size,
        default_concurrency_limit=8,
        api_open=False,
    )


def _tabs(visitor: gr.State) -> SimpleNamespace:
    p = SimpleNamespace()
    with gr.Tab("Compare", id="compare"):
        p.compare = compare.build()
    with gr.Tab("Watch", id="watch", render_children=True) as p.watch_tab:
        p.watch = watch.build(visitor)
    with gr.Tab("Tune", id="tune", render_children=True) as p.tune_tab:
        p.tune = tune.build()
    with gr.Tab("Map", id="map-tab", render_children=True) as p.map_tab:
        p.map = map.build()
    with gr.Tab("Stress test", id="stress", render_children=True) as p.stress_tab:
        p.stress = stress.build(_default_theta())
    _listen_tab(visitor)
    with gr.Tab("Learn", id="learn"):
        learn.build()
    with gr.Tab("About", id="about"):
        about.build()
    return p


def _default_theta() -> float:
    return runtime.default_theta() or 0.4


def _listen_tab(visitor: gr.State) -> None:
    """The blind listening test, when that part is there."""
    try:
        from pcg.ui import listen
    except ImportError:
        return
    with gr.Tab("Listen", id="listen"):
        listen.build(visitor)


def _listening_routes() -> list[Any]:
    try:
        from pcg.ui import listen
    except ImportError:
        return []
    return listen.http_routes()


def _wire_runs(page: gr.Blocks, tabs: gr.Tabs, visitor: gr.State, p: SimpleNamespace) -> None:
    c = p.compare
    outputs = [visitor, c.board, p.watch.view, c.status, c.seed, c.download]
    heavy: dict[str, Any] = {
        "api_visibility": "private",
        "concurrency_id": "model",
        "concurrency_limit": runtime.settings().server.concurrency,
        "show_progress": "minimal",
        "show_progress_on": c.status,
    }
    speak = c.run.click(compare.run_comparison, [visitor, *c.settings()], outputs, **heavy)
    _after_run(speak, visitor, p)
    for button, text in c.examples:
        chosen = button.click(lambda text=text: text, None, c.text, queue=False, **PRIVATE)
        run = chosen.then(compare.run_comparison, [visitor, *c.settings()], outputs, **heavy)
        _after_run(run, visitor, p)
    hear = p.tune.hear_theta(tune_rules, [c.rules], [c.rules, tabs], **PRIVATE)
    _after_run(hear.success(compare.run_theta, [visitor, c.rules], outputs, **heavy), visitor, p)
    s = p.stress
    s.run.click(
        stress.swap_run,
        [visitor, s.choose, s.theta, s.share, s.seeds],
        [s.board, s.charts, s.status],
        **{**heavy, "show_progress_on": s.status},
    )
    for button in (c.stop, s.stop):
        button.click(compare.stop_run, None, None, queue=False, **PRIVATE)
    p.tune_tab.select(tune.refresh, visitor, p.tune, **PRIVATE)
    p.map_tab.select(map.refresh, visitor, p.map, **PRIVATE)
    link = [c.text, c.rules, c.lookahead, c.temperature, c.top_p, c.top_k, c.seed, c.voice.name]
    opened = page.load(compare.from_link, None, link, **PRIVATE)
    opened.then(compare.text_preview, [c.text, *c.voice.inputs()], c.preview, **PRIVATE)
    page.unload(forget)


def _after_run(event: Any, visitor: gr.State, p: SimpleNamespace) -> None:
    """Bring the other tabs up to date once a run has ended."""
    event.then(
        after_run,
        visitor,
        [p.watch.choose, p.watch.save, p.stress.choose],
        **PRIVATE,
    )


def after_run(visitor: Visitor) -> tuple[Any, ...]:
    """New values for the utterance lists and the trace download; Tune and Map ask when opened."""
    run = watch.shown_first(visitor)
    save = gr.update(value=watch.save_trace(run.trace)) if run else gr.skip()
    return watch.run_choices(visitor), save, watch.run_choices(visitor)


def tune_rules(rules: list[dict[str, Any]], event: gr.EventData) -> tuple[Any, Any]:
    """Add PCG at the tuner's theta to the rules and show Compare."""
    theta = round(tune.theta_of(event), 4)
    added = {"rule": "pcg", "params": {"theta": theta}}
    most = runtime.limits().max_rules
    kept = [rule for rule in rules if rule != added][: most - 1]
    return [*kept, added], gr.Tabs(selected="compare")


def forget(request: gr.Request) -> None:
    """A closed tab: stop what still runs for it."""
    runtime.stop(request.session_hash)


def launch_options() -> dict[str, Any]:
    """Arguments of `Blocks.launch` that belong to the page itself."""
    server = runtime.settings().server
    return {
        "server_name": server.host,
        "server_port": server.port,
        "mcp_server": server.mcp,
        "app_kwargs": {"routes": [health.route(), *_listening_routes()]},
        "theme": theme.theme(),
        "css_paths": [theme.css_path()],
        "head": theme.head(),
        "ssr_mode": False,
        "footer_links": ["api"],
        "max_file_size": f"{runtime.limits().max_upload_mb:g}mb",
        "enable_monitoring": False,
    }
