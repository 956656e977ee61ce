"""The eight-token world of the Learn tab, with one server function that checks its arithmetic."""

from __future__ import annotations

from typing import ClassVar

from pcg.ui.components.base import WebComponent


class LearnWorld(WebComponent):
    """Distributions, groups, a stepper and exact laws; everything moves in the browser."""

    view: ClassVar[str] = "learn"
