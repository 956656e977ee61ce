"""The eight-token world of the Learn tab, with one server function that checks its arithmetic."""

from __future__ import annotations

from typing import ClassVar

from pcg.ui.components.base import WebComponent

from gradio.events import Dependency

class LearnWorld(WebComponent):
    """Distributions, groups, a stepper and exact laws; everything moves in the browser."""

    view: ClassVar[str] = "learn"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component