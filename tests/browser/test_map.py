"""Map: points, groups, members and the utterance's path, in software WebGL."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.browser.conftest import open_tab

pytestmark = pytest.mark.browser
WEBGL = True


def _open_map(tab: Any) -> None:
    open_tab(tab, "Map")
    tab.wait_for_function(
        "() => window.PCG.mapReady > 0"
        " || document.querySelector('#map .pcg-empty').innerText.includes('no stored map')"
    )
    if tab.evaluate("() => !window.PCG.mapReady"):
        pytest.skip("this model has no stored map")


def test_map_shows_a_group_and_its_members(spoken: Any) -> None:
    began = time.monotonic()
    _open_map(spoken)
    assert time.monotonic() - began < 12
    spoken.fill("#map .map-find", "7")
    spoken.keyboard.press("Enter")
    spoken.wait_for_selector("#map .map-members li")
    assert "s_7" in spoken.inner_text("#map .map-side h2")
    spoken.fill("#map .map-find", "99999999")
    spoken.keyboard.press("Enter")
    spoken.wait_for_selector("#map .map-side .pcg-note.bad")


def test_map_answers_a_click(spoken: Any) -> None:
    _open_map(spoken)
    x, y = spoken.evaluate(
        """() => { const gd = document.querySelector('#map .map-plot'), d = gd._fullData[0];
        const fl = gd._fullLayout, r = gd.getBoundingClientRect();
        return [r.left + fl._size.l + fl.xaxis.c2p(d.x[20]),
                r.top + fl._size.t + fl.yaxis.c2p(d.y[20])]; }"""
    )
    spoken.mouse.move(x, y)
    time.sleep(0.4)
    spoken.mouse.click(x, y)
    spoken.wait_for_function(
        "() => document.querySelector('#map .map-side h2')?.innerText.startsWith('Token s_')"
    )


def test_map_plays_the_path(spoken: Any) -> None:
    _open_map(spoken)
    spoken.get_by_role("button", name="Play the utterance's path").click()
    spoken.wait_for_function("() => document.querySelector('#map .map-plot').data[3].x.length > 1")
