"""Figures drawn in the browser: the theta tuner and a plain set of charts with a table."""

from __future__ import annotations

from typing import Any, ClassVar

from pcg.ui.components.base import WebComponent


class ThetaTuner(WebComponent):
    """A theta slider over curves computed once in Python; every read-out follows at once."""

    view: ClassVar[str] = "tune"
    triggers: ClassVar[tuple[str, ...]] = ("hear_theta",)


class ChartSet(WebComponent):
    """`{"charts": [{"title", "note", "x", "y", "series"}], "table": {"head", "rows"}, "note"}`."""

    view: ClassVar[str] = "chartset"

    def __init__(self, value: Any = None, *, empty: str = "", **kw: Any) -> None:
        super().__init__(value=value or {}, empty=empty, **kw)
