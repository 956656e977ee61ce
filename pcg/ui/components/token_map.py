"""The map of the embedding table."""

from __future__ import annotations

from typing import ClassVar

from pcg.ui.components.base import WebComponent


class TokenMap(WebComponent):
    """WebGL scatter of all speech tokens; the points come as one static float32 file.

    Value: `{"plotly", "points", "columns", "n", "theta", "theta_min", "theta_max", "path"}`.
    """

    view: ClassVar[str] = "map"
