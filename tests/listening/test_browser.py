"""Sessions in a real browser: consent, sound check, practice, keyboard, reload, votes, reveal."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pcg.listening.desk import Desk
from pcg.listening.export import flat_rows
from pcg.listening.load import free_port
from pcg.listening.sources import build_study, demo_recordings
from tests.listening.conftest import SECRET_NAMES

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser
CHROMIUM = Path("/usr/bin/chromium")
ARGS = ["--headless=new", "--no-sandbox", "--disable-quic", "--disable-background-networking"]

VOTE_UNHEARD = """async () => {
  const key = Object.keys(localStorage).find((k) => k.startsWith('pcg-listener-'));
  const listener = localStorage.getItem(key), heard = { A: 0.1, B: 0 };
  const body = JSON.stringify({ listener, trial: 0, answer: { choice: 'A' }, heard });
  const url = location.pathname.replace('take', 'studies') + '/votes';
  const headers = { 'Content-Type': 'application/json' };
  return (await fetch(url, { method: 'POST', headers, body })).status;
}"""
HEARD = "n => document.querySelectorAll('.listen-clip')[n].classList.contains('done')"
PLAYING = "document.querySelector('.listen').pcgListen.player.state.playing"
HEARD_OR_STILL = f"n => ({HEARD})(n) || !{PLAYING}"
SWITCH = """async () => {
  const p = document.querySelector('.listen').pcgListen.player;
  const wait = (ms) => new Promise((r) => setTimeout(r, ms));
  p.play('A'); await wait(250);
  const before = p.state.position; p.choose('B'); const after = p.state.position;
  await wait(60);
  const later = p.state; p.stop();
  return { before, after, later: later.position, active: later.active,
    a: p.seconds('A'), b: p.seconds('B') };
}"""


class Place:
    """A served store and what a browser saw of it."""

    def __init__(self, root: Path, port: int) -> None:
        self.root, self.url = root, f"http://127.0.0.1:{port}"
        self.seen: list[str] = []
        self.outside: list[str] = []
        self.errors: list[str] = []

    def add(self, folder: Path, kind: str, items: int, systems: int = 2, **rules: Any) -> Any:
        """Make a test of tones and open it."""
        sounds = demo_recordings(items, 0.5, systems=SECRET_NAMES[:systems])
        study = build_study(sounds, folder, kind=kind, **rules)
        desk = Desk(self.root)
        desk.add(folder)
        desk.close()
        return study

    def watch(self, page: Any) -> None:
        """Keep every request and response of a page."""
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda r: self.seen.append(f"{r.url} {r.headers} {r.post_data or ''}"))
        page.on("response", self._response)
        page.on(
            "request", lambda r: None if r.url.startswith(self.url) else self.outside.append(r.url)
        )

    def _response(self, response: Any) -> None:
        self.seen.append(json.dumps(response.headers))
        self.seen.append(response.body().decode("latin1"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """(root, port) of a server; tests may be added to its root while it runs."""
    if not CHROMIUM.exists():
        pytest.skip("needs chromium")
    root, port = tmp_path_factory.mktemp("served"), free_port()
    Desk(root).close()
    command = [sys.executable, "-m", "pcg.listening.serve", str(root), "--port", str(port)]
    server = subprocess.Popen(command)
    try:
        for _ in range(300):
            try:
                httpx.get(f"http://127.0.0.1:{port}/", timeout=1)
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield root, port
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def place(served: tuple[Path, int]) -> Place:
    return Place(*served)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGS)
        yield browser
        browser.close()


def start(page: Any, headphones: bool = False) -> None:
    """Through consent and the sound check."""
    button = page.get_by_role("button", name="Start", exact=True)
    sync_api.expect(button).to_be_disabled()
    page.get_by_role("checkbox").check()
    button.click()
    page.get_by_text("Set your sound").wait_for()
    if not headphones:
        page.get_by_role("button", name="I use loudspeakers").click()
        return
    for number in (1, 2, 3):
        page.get_by_text(f"Round {number} of 3").wait_for()
        page.get_by_role("button", name="Play three tones").click()
        page.locator("button:enabled", has_text="Tone 1").click(timeout=15_000)


def hear_all(page: Any, count: int) -> None:
    """Play every clip by its key, again where switching came late, until all were heard."""
    page.locator(".listen-clip").first.wait_for()
    for number in range(1, count + 1):
        for _ in range(20):
            page.keyboard.press(str(number))
            try:
                page.wait_for_function(HEARD_OR_STILL, arg=number - 1, timeout=5000)
            except sync_api.TimeoutError:
                continue
            if page.evaluate(HEARD, number - 1):
                break
        assert page.evaluate(HEARD, number - 1)


def test_a_full_ab_session_by_keyboard(place, browser, tmp_path):
    study = place.add(tmp_path / "test", "ab", items=3, systems=2, practice=1)
    page = browser.new_context().new_page()
    place.watch(page)
    page.goto(f"{place.url}/listening/take/{study.id}")
    start(page, headphones=True)
    page.get_by_text("Practice, does not count.").wait_for()

    # nothing can be answered yet, neither on the page nor past it
    for button in page.locator(".listen-answer").all():
        sync_api.expect(button).to_be_disabled()
    status = page.evaluate(VOTE_UNHEARD)
    assert status == 409
    place.errors.clear()  # the browser reports the refusal just provoked

    hear_all(page, 2)
    page.keyboard.press("Shift+B")
    page.keyboard.press("Enter")
    page.get_by_text("Question 2 of 3").wait_for()

    # one clip heard, a reload, and the place and what was heard are kept
    hear_all(page, 1)
    page.keyboard.press("Space")
    page.reload()
    page.get_by_text("Question 2 of 3").wait_for()
    assert page.locator(".listen-clip.done").count() == 1
    hear_all(page, 2)
    page.keyboard.press("Shift+A")
    before = page.content()
    page.keyboard.press("Enter")
    page.get_by_text("Question 3 of 3").wait_for()
    assert not any(name in before + page.content() + "".join(place.seen) for name in SECRET_NAMES)

    hear_all(page, 2)
    page.locator(".listen-answer").first.click()
    page.get_by_role("button", name="Confirm").click()
    page.get_by_text("Thank you").wait_for()
    page.get_by_text("What you heard").click()
    assert SECRET_NAMES[0] in page.inner_text(".listen-table")
    assert not any(name in line.split(" ", 1)[0] for line in place.seen for name in SECRET_NAMES)
    assert place.outside == [] and place.errors == []

    desk = Desk(place.root)
    rows = flat_rows(study, desk.store, practice=True)
    checks = list(desk.store.checks(study.id).values())
    desk.close()
    assert [(row["trial"], row["side"]) for row in rows] == [(0, "B"), (1, "A"), (2, "A")]
    assert checks[0][0] == "headphones" and checks[0][2] == 3
    page.reload()
    page.get_by_text("Thank you").wait_for()


@pytest.mark.parametrize("kind", ["abx", "mos", "mushra"])
def test_the_other_kinds(kind, place, browser, tmp_path):
    reference = SECRET_NAMES[0] if kind == "mushra" else None
    study = place.add(
        tmp_path / "test", kind, items=1, systems=2, reference=reference, reveal="each"
    )
    page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    place.watch(page)
    page.goto(f"{place.url}/listening/take/{study.id}")
    start(page)
    for _ in range(len(study.conditions)):
        page.locator(".listen-clip").first.wait_for()
        if kind == "mos":
            page.keyboard.press("Space")
            page.locator(".listen-clip.done").wait_for()
            page.keyboard.press("3")
            page.keyboard.press(".")
            assert page.locator("[aria-checked=true]").inner_text().startswith("3.5")
        else:
            hear_all(page, page.locator(".listen-clip").count())
        if kind == "abx":
            page.get_by_text("X is B").click()
        if kind == "mushra":
            for slider in page.locator(".listen-sliders input").all():
                slider.focus()
                page.keyboard.press("ArrowUp")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390
        page.get_by_role("button", name="Confirm").click()
        page.get_by_text("Saved").wait_for()
        assert any(name in page.inner_text(".listen-names") for name in SECRET_NAMES)
        page.get_by_role("button", name="Next").click()
    page.get_by_text("Thank you").wait_for()
    assert place.errors == [] and place.outside == []
    desk = Desk(place.root)
    votes = desk.store.votes(study.id)
    desk.close()
    assert len(votes) == len(study.conditions)
    if kind == "mos":
        assert {vote["answer"]["score"] for vote in votes} == {3.5}
    if kind == "mushra":
        assert all(set(vote["answer"]["scores"].values()) == {51.0} for vote in votes)


def test_switching_clips_keeps_the_playhead(place, browser, tmp_path):
    study = place.add(tmp_path / "test", "ab", items=1)
    page = browser.new_context().new_page()
    page.goto(f"{place.url}/listening/take/{study.id}")
    start(page)
    page.locator(".listen-clip").first.wait_for()
    found = page.evaluate(SWITCH)
    assert found["before"] > 0 and found["after"] - found["before"] < 0.05
    assert found["later"] > found["after"] and found["active"] == "B"
    assert abs(found["a"] - found["after"]) < 0.06, "only what was heard of a clip counts for it"
    assert found["b"] < 0.15
