"""Watch, Tune, Stress test and About after one comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Open, open_tab

pytestmark = pytest.mark.browser


def test_watch_shows_every_round_and_explains_a_token(spoken: Any) -> None:
    open_tab(spoken, "Watch")
    spoken.wait_for_selector("#timeline .watch-strip .mark")
    rounds = spoken.locator("#timeline .watch-strip > g").count()
    assert rounds > 3
    mark = spoken.locator("#timeline .watch-strip > g:nth-child(2) .mark").first
    mark.click()
    assert len(spoken.inner_text("#timeline .watch-what p")) > 10
    spoken.wait_for_function("() => window.PCG.lastSnippet?.length > 0.05")
    heard = spoken.evaluate("() => window.PCG.lastSnippet.length")
    assert heard <= 0.35


def test_watch_replays_steps_and_scrubs(spoken: Any) -> None:
    open_tab(spoken, "Watch")
    spoken.get_by_role("button", name="‹ Step").click()
    rounds = spoken.locator("#timeline .watch-strip > g").count()
    assert spoken.inner_text("#timeline .watch-count") == f"round {rounds - 1} of {rounds}"
    assert spoken.locator("#timeline .watch-strip > g.ahead").count() == 1
    spoken.select_option("#timeline .watch-bar select", "20")
    spoken.locator("#timeline .watch-bar input[type=range]").fill("1")
    spoken.get_by_role("button", name="Replay").click()
    counter = "document.querySelector('#timeline .watch-count').innerText"
    spoken.wait_for_function(f"() => {counter}.startsWith('round {rounds} ')")


def test_watch_moves_by_arrow_keys(spoken: Any) -> None:
    open_tab(spoken, "Watch")
    spoken.locator("#timeline .watch-strip").focus()
    before = spoken.inner_text("#timeline .watch-what")
    spoken.keyboard.press("ArrowLeft")
    assert spoken.inner_text("#timeline .watch-what") != before


def test_a_saved_trace_loads_again(spoken: Any, tmp_path: Path) -> None:
    open_tab(spoken, "Watch")
    before = spoken.locator("#timeline .watch-strip > g").count()
    with spoken.expect_download() as download:
        spoken.locator("#trace-save").click()
    path = tmp_path / "trace.jsonl"
    download.value.save_as(path)
    spoken.set_input_files("input[type=file][accept*=jsonl]", str(path))
    spoken.wait_for_function(
        "() => document.querySelector('#timeline .watch-title').innerText.includes('loaded')"
    )
    assert spoken.locator("#timeline .watch-strip > g").count() == before


def test_a_file_that_is_no_trace_is_refused_in_one_sentence(spoken: Any, tmp_path: Path) -> None:
    open_tab(spoken, "Watch")
    path = tmp_path / "nonsense.jsonl"
    path.write_text("{not json")
    spoken.set_input_files("input[type=file][accept*=jsonl]", str(path))
    spoken.wait_for_selector("#watch-note .pcg-note.bad")


def test_tune_follows_the_slider_at_once(spoken: Any) -> None:
    open_tab(spoken, "Tune")
    spoken.wait_for_selector("#tune .tune-read dd")
    slider = spoken.locator("#tune .tune-slider input")
    low, high = (float(slider.get_attribute(edge)) for edge in ("min", "max"))
    sizes = []
    for theta in (low, high):
        began = spoken.evaluate("() => performance.now()")
        slider.fill(f"{theta:.3f}")
        done = spoken.evaluate("() => window.PCG.tunePainted")
        assert done - began < 200
        sizes.append(float(spoken.locator("#tune .tune-read dd").first.inner_text()))
    assert sizes[0] >= sizes[1] >= 1
    assert spoken.locator("#tune .chart svg").count() >= 2


def test_tune_lets_a_theta_be_heard(spoken: Any) -> None:
    open_tab(spoken, "Tune")
    spoken.wait_for_selector("#tune .tune-read dd")
    spoken.get_by_role("button", name="Hear it here").click()
    spoken.wait_for_function("() => document.querySelectorAll('#rules .picker-rule').length === 5")
    spoken.wait_for_function(
        "() => document.querySelector('#status').innerText.includes('Done')"
        " && document.querySelectorAll('#board .board-lane').length === 5"
    )


def test_stress_swaps_and_lets_it_be_heard(spoken: Any) -> None:
    open_tab(spoken, "Stress test")
    spoken.click("#swap")
    spoken.wait_for_function(
        "() => document.querySelectorAll('#swap-board .board-lane[data-state=done]').length >= 4"
    )
    assert "swapped" in spoken.inner_text("#swap-board")
    spoken.click("#swap-stop")


def test_about_names_the_model(visit: Open) -> None:
    tab = visit()
    open_tab(tab, "About")
    tab.wait_for_selector("#facts dl")
    assert "voice model" in tab.inner_text("#facts")
