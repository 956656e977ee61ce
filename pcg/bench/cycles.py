"""`python -m pcg bench cycles`: start a run and stop it, many times; what is left behind.

Real clicks in headless Chromium, on a text that would speak for many seconds. The server's memory
is read when it is warm and at the end.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from typing import Any

from pcg.bench.load import health, served
from pcg.errors import PcgError

TEXT = "The rain had stopped, and the street was quiet, and nobody was about. " * 4
WARM = 5  # cycles before memory counts: models and kernels are loaded lazily
PATIENCE = 60.0  # seconds for anything on a busy machine


def add_parser(subparsers: Any) -> None:
    """Add `cycles` to `bench`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "cycles", help="start and stop runs", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--url", help="a page on this machine (default: start one)")
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--out", type=Path, help="store the figures here")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command; 1 when something was left running or memory grew by over 10 %."""
    if not 1 <= args.cycles <= 1000:
        raise PcgError("There must be 1 to 1000 cycles.")
    if args.url:
        report = cycle(args.url, args.cycles)
    else:
        with served() as (url, _):
            report = cycle(url, args.cycles)
    print(
        f"{args.cycles} cycles: memory {report['memory_mb']}, growth {report['growth']:+.1%}, "
        f"slowest end {report['slowest_end_seconds']} s"
    )
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    if args.json:
        print(json.dumps(report))
    return int(report["active_at_end"] > 0 or report["growth"] > 0.10)


def cycle(url: str, cycles: int) -> dict[str, Any]:
    """Press Speak and Stop ``cycles`` times at ``url``, after :data:`WARM` times not counted."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise PcgError("This benchmark presses real buttons: pip install playwright.") from error

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--headless=new", "--no-sandbox", "--disable-background-networking"],
        )
        tab = browser.new_page()
        tab.set_default_timeout(1000 * PATIENCE)
        tab.goto(url)
        tab.fill("#text textarea", TEXT)
        ended: list[float] = []
        warm = 0.0
        for number in range(WARM + cycles):
            if number == WARM:
                warm = _settled_mb(url)
            ended.append(_start_and_stop(tab, url))
        last = _settled_mb(url)
        browser.close()
    return {
        "cycles": cycles,
        "memory_mb": {"warm": warm, "end": last},
        "growth": round(last / warm - 1, 4),
        "slowest_end_seconds": round(max(ended), 2),
        "active_at_end": health(url)["active"],
    }


def _start_and_stop(tab: Any, url: str) -> float:
    """One cycle; seconds from pressing Stop to a server without a run."""
    tab.click("#run")
    tab.wait_for_selector("#board .board-lane[data-state=running]")
    tab.wait_for_timeout(300)
    began = time.monotonic()
    tab.click("#stop")
    tab.wait_for_function("() => document.querySelector('#status').innerText.includes('Stopped')")
    while health(url)["active"]:
        if time.monotonic() - began > PATIENCE:
            raise PcgError(f"A stopped run was still there after {PATIENCE:.0f} s.")
        time.sleep(0.05)
    return time.monotonic() - began


def _settled_mb(url: str) -> float:
    """Memory once freed pages have gone back (see :mod:`pcg.serving.memory`)."""
    from pcg.serving.memory import EVERY_SECONDS

    time.sleep(EVERY_SECONDS + 2)
    return float(health(url)["resident_mb"])
