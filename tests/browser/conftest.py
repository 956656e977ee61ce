"""A real Chromium against the running page; requests to the outside are refused and recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
ARGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]
WEBGL = [  # software WebGL, for the map only: it makes everything else slower
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
SLOW = 120_000  # milliseconds; a busy machine is not a failure
INSIDE = ("http://127.0.0.1", "http://localhost", "data:", "blob:")
SENTENCE = "The rain had stopped."
Open = Callable[..., Any]


@pytest.fixture(scope="session")
def address(request: pytest.FixtureRequest) -> str:
    """The page's address: `PCG_BROWSER_URL`, or one started for these tests."""
    given = os.environ.get("PCG_BROWSER_URL")
    return given or str(request.getfixturevalue("page")[0])


@pytest.fixture(scope="module")
def chromium(request: pytest.FixtureRequest) -> Iterator[Any]:
    """One browser for a module; with WebGL where the module says `WEBGL = True`."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.is_file():
        pytest.skip("chromium is not installed")
    args = [*ARGS, *WEBGL] if getattr(request.module, "WEBGL", False) else ARGS
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=args)
        yield browser
        browser.close()


class Seen:
    """What went wrong in the pages of one test."""

    def __init__(self) -> None:
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.bytes = 0

    def route(self, route: Any) -> None:
        """Let only the page itself through."""
        url = route.request.url
        if url.startswith(INSIDE):
            route.continue_()
        else:
            self.outside.append(url)
            route.abort()

    def forget_cut_streams(self) -> None:
        """Drop what gradio's client says when a page is left in the middle of a run.

        Only that: the streams of the page that was left were cut, as they must be.
        """
        cut = ("AbortError: signal is aborted", "Unexpected error Connection errored out.")
        self.errors[:] = [error for error in self.errors if not error.startswith(cut)]

    def watch(self, tab: Any) -> None:
        """Record a tab's errors and refuse its outside requests."""
        tab.route("**/*", self.route)
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)


def _opener(chromium: Any, address: str, seen: Seen, made: list[Any]) -> Open:
    def visit(width: int = 1280, dark: bool = False, query: str = "", **context: Any) -> Any:
        visitor = chromium.new_context(viewport={"width": width, "height": 900}, **context)
        made.append(visitor)
        tab = visitor.new_page()
        tab.set_default_timeout(SLOW)
        seen.watch(tab)
        theme = "dark" if dark else "light"
        tab.goto(f"{address}/?__theme={theme}{query}")
        tab.wait_for_selector("#board .pcg-root")
        tab.wait_for_selector("#rules .picker-rule")
        return tab

    return visit


@pytest.fixture
def seen() -> Seen:
    """Records of this test."""
    return Seen()


@pytest.fixture
def visit(chromium: Any, address: str, seen: Seen) -> Iterator[Open]:
    """Open the page as a new visitor; at the end nothing outside was asked and nothing failed."""
    made: list[Any] = []
    yield _opener(chromium, address, seen, made)
    for context in made:
        context.close()
    assert seen.outside == []
    assert seen.errors == []


@pytest.fixture(scope="module")
def spoken(chromium: Any, address: str) -> Iterator[Any]:
    """A tab that has compared the default rules once; shared by a module's tests."""
    seen, made = Seen(), []
    tab = _opener(chromium, address, seen, made)()
    tab.fill("#text textarea", SENTENCE)
    speak(tab)
    yield tab
    made[0].close()
    assert seen.outside == []
    assert seen.errors == []


def speak(tab: Any, timeout: float = 2 * SLOW) -> None:
    """Press Speak and wait until every lane is done."""
    status = "document.querySelector('#status').innerText"
    tab.click("#run")
    tab.wait_for_function(f"() => {status}.includes('every rule')")
    tab.wait_for_function(f"() => /Done|Stopped/.test({status})", timeout=timeout)
    tab.wait_for_function(
        "() => [...document.querySelectorAll('#board .board-lane')]"
        ".every(l => ['done', 'stopped'].includes(l.dataset.state))"
    )
    tab.wait_for_function("() => !document.querySelector('#board .board-bar button').disabled")


def open_tab(tab: Any, name: str) -> None:
    """Open one of the page's tabs, also where a narrow page hides it in a menu."""
    button = tab.get_by_role("tab", name=name, exact=True).first
    if button.is_visible():
        button.click()
        return
    tab.locator(".overflow-menu > button").first.click()
    tab.locator(".overflow-dropdown button", has_text=name).click()


def playing(tab: Any) -> dict[str, Any]:
    """State of the board's player."""
    state: dict[str, Any] = tab.evaluate(
        "() => document.querySelector('#board .pcg-root').pcgPlayer.state"
    )
    return state
