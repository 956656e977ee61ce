"""The whole page: head, tabs, launch options. Tabs that need a missing part are left out."""

from __future__ import annotations

from typing import Any

import gradio as gr

from pcg.ui import learn, theme

TITLE = "pcg: speech tokens judged by their sound"
INTRO = (
    "A small model drafts speech, a large one checks it. Hear what happens when drafts are judged "
    "token by token, leniently, or by the group of sounds they belong to."
)
HEAD = f"""<div class="pcg-root"><div class="pcg-head"><div><h1>Judged by its sound</h1>
<p>{INTRO}</p></div><div class="side"><button type="button" class="pcg-btn" id="pcg-theme"
aria-label="Switch between dark and light">Dark / light</button></div></div></div>"""
HEAD_JS = """PCG.restoreTheme();
element.querySelector('#pcg-theme').addEventListener('click', () => PCG.toggleTheme());"""


def build_page() -> gr.Blocks:
    """Build the Blocks; nothing is loaded until a visitor asks for it."""
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as page:
        gr.HTML(HEAD, js_on_load=HEAD_JS, apply_default_css=False)
        with gr.Tabs(elem_id="tabs"), gr.Tab("Learn", id="learn"):
            learn.build()
    return page


def launch_options() -> dict[str, Any]:
    """Arguments of `Blocks.launch` that belong to the page itself."""
    return {
        "theme": theme.theme(),
        "css_paths": [theme.css_path()],
        "head": theme.head(),
        "ssr_mode": False,
        "footer_links": ["api"],
        "max_file_size": "20mb",
        "enable_monitoring": False,
    }
