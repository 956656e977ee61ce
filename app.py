"""Build the page and launch it."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from pcg.errors import PcgError
from pcg.serving import memory
from pcg.serving.guard import start_up
from pcg.ui import runtime
from pcg.ui.page import build_page, launch_options

try:
    demo = build_page()
except PcgError as error:
    raise SystemExit(f"pcg: {error}") from None

if __name__ == "__main__":
    if problem := start_up(runtime.settings()):
        print(f"pcg: {problem}", file=sys.stderr)
    memory.settle()
    memory.keep_handing_back()
    runtime.warm_up()
    demo.launch(**launch_options())
