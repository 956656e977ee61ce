"""A button that plays the chosen voice prompt."""

from __future__ import annotations

from typing import ClassVar

from pcg.ui.components.base import WebComponent


class VoiceSample(WebComponent):
    """Value: the name of a bundled voice, or "" to hide the button."""

    view: ClassVar[str] = "voice"
