"""Choice of rules to compare, each with its own parameters."""

from __future__ import annotations

from typing import Any, ClassVar

from pcg.ui.components.base import WebComponent


class RulePicker(WebComponent):
    """A list of rules; value `[{"rule": name, "params": {...}}, ...]`.

    `registry` is `[{"name", "label", "description", "guarantee", "parameters"}, ...]`.
    """

    view: ClassVar[str] = "picker"
    triggers: ClassVar[tuple[str, ...]] = ("change",)

    def __init__(
        self,
        value: Any = None,
        *,
        registry: list[dict[str, Any]] | None = None,
        most: int = 9,
        **kw: Any,
    ) -> None:
        super().__init__(value=value or [], registry=registry or [], most=most, **kw)
