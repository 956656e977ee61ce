"""The token timeline of the Watch tab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pcg.ui.components.base import WebComponent


class Timeline(WebComponent):
    """Rounds of one utterance on its own time axis; value from `pcg.ui.trace_view.timeline`.

    `hear_codes` among the server functions lets a visitor hear a place with the rejected draft.
    """

    view: ClassVar[str] = "timeline"

    def __init__(
        self,
        value: Any = None,
        *,
        empty: str = "",
        server_functions: Sequence[Callable[..., Any]] | None = None,
        **kw: Any,
    ) -> None:
        super().__init__(value=value or {}, empty=empty, server_functions=server_functions, **kw)
