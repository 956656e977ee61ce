"""Compare: speak, listen on one playhead, stop, share, and keep visitors apart."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import SENTENCE, Open, Seen, open_tab, playing, speak

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=window.hacked=1> Hello <b>there</b>."
MODEL = "bundled"
LONG = "The rain had stopped, and the street was quiet, and nobody was about. " * 4


def test_four_rules_speak_and_report(spoken: Any) -> None:
    lanes = spoken.locator("#board .board-lane")
    assert lanes.count() == 4
    text = lanes.nth(3).inner_text()
    for figure in ("speed-up", "tokens/s", "kept", "tokens a round", "length"):
        assert figure in text
    assert "seed" in spoken.inner_text("#status").lower()


def test_keys_choose_play_loop_and_seek(spoken: Any) -> None:
    open_tab(spoken, "Compare")
    spoken.evaluate("() => document.activeElement.blur()")
    for key, lane in (("3", 2), ("1", 0), ("2", 1)):
        spoken.keyboard.press(key)
        chosen = f"#board .board-lane:nth-child({lane + 1}).on"
        spoken.wait_for_selector(chosen)
    spoken.keyboard.press("Space")
    spoken.wait_for_function(
        "() => document.querySelector('#board .pcg-root').pcgPlayer.state.position > 0.1"
    )
    assert playing(spoken)["playing"]
    before = playing(spoken)["position"]
    spoken.keyboard.press("4")
    after = playing(spoken)
    assert after["playing"] and after["position"] >= before
    spoken.keyboard.press("Space")
    assert not playing(spoken)["playing"]
    spoken.keyboard.press("l")
    assert playing(spoken)["looping"]
    spoken.keyboard.press("l")


def test_a_drag_loops_a_region(spoken: Any) -> None:
    box = spoken.locator("#board .board-wave").first.bounding_box()
    y = box["y"] + box["height"] / 2
    spoken.mouse.move(box["x"] + box["width"] * 0.2, y)
    spoken.mouse.down()
    spoken.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    spoken.mouse.up()
    state = playing(spoken)
    assert state["looping"]
    low, high = (edge / state["duration"] for edge in state["region"])
    assert 0.15 < low < 0.25 and 0.45 < high < 0.55
    spoken.keyboard.press("l")


def test_the_zip_holds_sounds_traces_and_settings(spoken: Any) -> None:
    with spoken.expect_download() as download:
        spoken.locator("#download").click()
    archive = zipfile.ZipFile(io.BytesIO(open(download.value.path(), "rb").read()))
    names = archive.namelist()
    assert sum(name.endswith(".wav") for name in names) == 4
    assert sum(name.endswith(".jsonl") for name in names) == 4
    settings = json.loads(archive.read("settings.json"))["settings"]
    assert settings["text"] == SENTENCE and len(settings["rules"]) == 4


def test_the_page_says_what_the_command_line_says(spoken: Any, tmp_path: Path) -> None:
    with spoken.expect_download() as download:
        spoken.locator("#download").click()
    archive = zipfile.ZipFile(io.BytesIO(open(download.value.path(), "rb").read()))
    report = json.loads(archive.read("settings.json"))
    chosen, shown = report["settings"], [run["summary"] for run in report["runs"]]
    traces = [n for n in sorted(archive.namelist()) if n.endswith(".jsonl")]
    heads = [json.loads(archive.read(name).splitlines()[0]) for name in traces]
    words = [
        rule["rule"] + ":" * bool(rule["params"])
        + ",".join(f"{key}={value}" for key, value in rule["params"].items())
        for rule in chosen["rules"]
    ]  # fmt: skip
    options = {key: chosen[key] for key in ("seed", "lookahead", "temperature", "voice")}
    options |= {"max-seconds": 2, "dtype": heads[0]["dtype"], "out": tmp_path, "model": MODEL}
    command = [sys.executable, "-m", "pcg", "compare", chosen["text"], "--rules", " ".join(words)]
    command += [f"--{key}={value}" for key, value in options.items()]
    out = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    told = [rule["summary"] for rule in json.loads(out.stdout.splitlines()[-1])["rules"]]
    assert len(told) == len(shown) == 4
    for lane, mine, theirs in zip(range(4), shown, told, strict=True):
        for key in ("tokens", "rounds", "accepted", "acceptance_rate", "tokens_per_round"):
            rounded = mine[key] if mine[key] is None else round(mine[key], 6)
            assert rounded == theirs[key], (words[lane], key)
        text = spoken.locator("#board .board-lane").nth(lane).inner_text()
        assert f"{theirs['audio_seconds']:.2f} s" in text
        if words[lane] != "target":
            assert f"{100 * theirs['acceptance_rate']:.0f} %" in text
            assert f"{theirs['tokens_per_round']:.2f}" in text


def test_a_link_brings_the_settings_back(visit: Open) -> None:
    first = visit()
    first.fill("#text textarea", "A quiet morning.")
    first.locator("#rules .picker-x").first.click()
    first.click("#link")
    first.wait_for_function("() => location.search.includes('text=')")
    query = first.evaluate("() => location.search").lstrip("?")
    second = visit(query="&" + query)
    second.wait_for_function(
        "() => document.querySelector('#text textarea').value === 'A quiet morning.'"
    )
    second.wait_for_function("() => document.querySelectorAll('#rules .picker-rule').length === 3")


def test_stop_ends_within_a_round_and_the_next_run_works(visit: Open) -> None:
    tab = visit()
    tab.fill("#text textarea", LONG)
    tab.click("#run")
    tab.wait_for_selector("#board .board-lane[data-state=running]")
    began = time.monotonic()
    tab.click("#stop")
    tab.wait_for_function("() => document.querySelector('#status').innerText.includes('Stopped')")
    assert time.monotonic() - began < 30  # one round and the page; slack for a busy machine
    tab.fill("#text textarea", "Again.")
    speak(tab)
    assert "Done" in tab.inner_text("#status")


def test_hostile_text_is_shown_as_text(visit: Open, seen: Seen) -> None:
    tab = visit()
    tab.fill("#text textarea", HOSTILE)
    tab.locator("#rules .picker-x").first.click()
    tab.click("#run")
    tab.wait_for_function(
        "() => document.querySelector('#status').innerText.match(/Done|Stopped|letters|text/i)"
    )
    open_tab(tab, "Watch")
    time.sleep(1.0)
    assert tab.evaluate("() => window.hacked") is None
    assert tab.locator("img[src=x]").count() == 0


def test_an_empty_text_is_one_sentence(visit: Open) -> None:
    tab = visit()
    tab.fill("#text textarea", "   ")
    tab.click("#run")
    tab.wait_for_selector("#status .pcg-note.bad")
    assert tab.inner_text("#status .pcg-note").count(".") == 1


def test_two_visitors_never_see_each_other(visit: Open) -> None:
    one, two = visit(), visit()
    one.fill("#text textarea", "The first visitor speaks.")
    two.fill("#text textarea", "The second one answers.")
    for _ in range(2):
        two.locator("#rules .picker-x").first.click()
    one.click("#run")
    two.click("#run")
    for tab in (one, two):
        tab.wait_for_function("() => document.querySelector('#status').innerText.includes('Done')")
    assert one.locator("#board .board-lane").count() == 4
    assert two.locator("#board .board-lane").count() == 2
    for tab, mine, other in ((one, "first", "second"), (two, "second", "first")):
        open_tab(tab, "Watch")
        tab.wait_for_selector("#timeline .watch-title")
        title = tab.inner_text("#timeline .watch-title")
        assert mine in title and other not in title


def test_a_reload_starts_clean(visit: Open, seen: Seen) -> None:
    tab = visit()
    tab.click("#run")
    tab.wait_for_selector("#board .board-lane")
    tab.reload()
    tab.wait_for_selector("#board .pcg-empty")
    seen.forget_cut_streams()
    assert tab.locator("#board .board-lane").count() == 0


def test_a_phone_shows_everything_without_sideways_scrolling(visit: Open) -> None:
    tab = visit(width=390)
    for name in ("Compare", "Watch", "Tune", "Map", "Stress test", "Learn", "About"):
        open_tab(tab, name)
        time.sleep(0.4)
        assert tab.evaluate("() => document.documentElement.scrollWidth") <= 390, name


def test_the_keyboard_alone_is_enough(visit: Open) -> None:
    tab = visit()
    tab.focus("#text textarea")
    reached = set()
    for _ in range(60):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("() => document.activeElement.closest('[id]')?.id || ''"))
        if "stop" in reached:
            break
    assert {"run", "stop"} <= reached
    tab.focus("#run")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#board .board-lane")


def test_the_first_load_is_small(chromium: Any, address: str) -> None:
    context = chromium.new_context()
    tab = context.new_page()
    session = context.new_cdp_session(tab)
    session.send("Network.enable")
    total = [0.0]
    session.on(
        "Network.loadingFinished",
        lambda event: total.__setitem__(0, total[0] + event["encodedDataLength"]),
    )
    tab.goto(address)
    tab.wait_for_selector("#board .pcg-root")
    time.sleep(2.0)
    context.close()
    assert 0 < total[0] < 3_000_000
