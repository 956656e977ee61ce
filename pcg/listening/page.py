"""A page of its own for one listening test: no framework, nothing from outside, no system name in
it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

WEB = Path(__file__).resolve().parents[2] / "assets" / "web"
SCRIPTS = ("listen_player.js", "listen.js")
_SHELL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><link rel="icon" href="data:,"><title>{title}</title>
<style>{css}
body {{ margin: 0; background: var(--page); font-family: system-ui, sans-serif; }}
main {{ max-width: 900px; margin: 0 auto; padding: 16px; }}</style></head>
<body><script>
if (matchMedia("(prefers-color-scheme: dark)").matches) document.body.classList.add("dark");
</script>
<main class="pcg-root"><div id="listen"><div class="pcg-root"></div></div></main>
<script>{code}</script>
<script>
PCG.restoreTheme();
const nothing = () => {{}};
PCG.mount("listen", document.getElementById("listen"), {props}, nothing, nothing, null);
</script>
</body></html>"""


@cache
def script() -> str:
    """The code of the view `listen`, to run after `base.js`."""
    return "\n".join((WEB / name).read_text(encoding="utf-8") for name in SCRIPTS)


@cache
def style() -> str:
    """The style of the view, to be used beside `page.css`."""
    return (WEB / "listen.css").read_text(encoding="utf-8")


def standalone(about: Mapping[str, Any]) -> str:
    """HTML for taking the test that `about` (see `Desk.public`) describes; served below
    `/listening/take/`.
    """
    props = json.dumps({"value": {"study": about["id"]}, "base": ".."}).replace("<", "\\u003c")
    base = (WEB / "base.js").read_text(encoding="utf-8")
    css = (WEB / "page.css").read_text(encoding="utf-8") + style()
    return _SHELL.format(
        title=html.escape(str(about["title"])), css=css, code=base + "\n" + script(), props=props
    )
