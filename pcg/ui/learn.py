"""Learn: the method in a world of eight tokens, three guided lessons, checked by the library."""

from __future__ import annotations

from typing import Any

import gradio as gr

from pcg.errors import PcgError
from pcg.ui.components.learn_world import LearnWorld

WORLD_TOKENS = 8


def build() -> LearnWorld:
    """The tab's content; call inside a `gr.Tab`."""
    with gr.Column():
        return LearnWorld(server_functions=[check_world], elem_id="learn-world")


def check_world(world: dict[str, Any]) -> dict[str, Any]:
    """The three rules' laws by `pcg.theory`, or `{"error": sentence}`.

    Args:
        world: `draft` and `target` (8 probabilities each), `links` (8 x 8 zeros and ones, a
            symmetric reflexive relation) and `beta` in 0..1.
    """
    try:
        from pcg.ui.laws import world_laws

        return world_laws(world)
    except PcgError as error:
        return {"error": str(error)}
    except ImportError:
        return {"error": "The library's own arithmetic is not installed here."}
