"""Build the page and launch it."""

from __future__ import annotations

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from pcg.ui.page import build_page, launch_options

demo = build_page()

if __name__ == "__main__":
    demo.launch(**launch_options())
