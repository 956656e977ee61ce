"""What every component shares: a root element, a view by name, a value that is plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import gradio as gr


class WebComponent(gr.HTML):
    """A `gr.HTML` drawn by `PCG.views[view]`; its value is JSON data, never markup.

    `triggers` names what the view may trigger; each becomes a listener, `component.name(fn, ...)`.
    """

    view: ClassVar[str] = ""
    triggers: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        value: Any = None,
        *,
        server_functions: Sequence[Callable[..., Any]] | None = None,
        **props: Any,
    ) -> None:
        names = ", ".join(f"'{name}'" for name in self.triggers)
        super().__init__(
            value=value,
            html_template="<div class='pcg-root'></div>",
            js_on_load=(
                f"/* events: {names} */ PCG.mount('{self.view}', element, props, trigger, watch, "
                "typeof server === 'undefined' ? null : server);"
            ),
            apply_default_css=False,
            server_functions=list(server_functions or []) or None,
            **props,
        )

    def preprocess(self, payload: Any) -> Any:
        """The view's JSON as it came; the listener checks it."""
        return payload

    def postprocess(self, value: Any) -> Any:
        """JSON data for the view; files in it are `FileData` dicts and get an address."""
        return value

    def api_info(self) -> dict[str, Any]:
        """Any JSON object."""
        return {"type": "object"}

    def example_payload(self) -> Any:
        """An empty object."""
        return {}
