"""Many listeners at once over HTTP, with the server killed and restarted in the middle: is every
acknowledged vote kept, once?
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from pcg.listening.desk import Desk
from pcg.listening.sources import build_study, demo_recordings
from pcg.listening.store import Store

START_SECONDS = 120.0


@dataclass
class Tally:
    """What the listeners saw; `acknowledged`: (listener, trial) -> the confirmed answer."""

    acknowledged: dict[tuple[str, int], str] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    retries: int = 0
    repeated: int = 0
    problems: list[str] = field(default_factory=list)


async def _ask(
    client: httpx.AsyncClient, tally: Tally, method: str, url: str, **kw: Any
) -> httpx.Response:
    """Send until the server answers, as the page does."""
    for attempt in range(200):
        try:
            start = time.perf_counter()
            answer = await client.request(method, url, **kw)
            if answer.status_code < 500:
                tally.latencies.append(time.perf_counter() - start)
                return answer
        except httpx.HTTPError:
            pass
        tally.retries += 1
        await asyncio.sleep(min(1.0, 0.05 * 2 ** min(attempt, 5)))
    raise RuntimeError("the server never came back")


async def _listener(
    client: httpx.AsyncClient, study: str, tally: Tally, end: float, rng: random.Random
) -> None:
    base = f"/listening/studies/{study}"
    while time.monotonic() < end:
        name = f"{rng.getrandbits(128):032x}"
        answer = await _ask(
            client, tally, "POST", base + "/join", json={"listener": name, "consent": True}
        )
        state = answer.json()
        while state["state"] == "question" and time.monotonic() < end:
            for slot in state["slots"]:
                await _ask(client, tally, "GET", f"/listening/clips/{slot['clip']}")
            await asyncio.sleep(
                sum(slot["required"] for slot in state["slots"]) + rng.uniform(0.05, 0.4)
            )
            choice = rng.choice("AB")
            vote = {
                "listener": name,
                "trial": state["trial"],
                "answer": {"choice": choice},
                "heard": {slot["label"]: slot["seconds"] for slot in state["slots"]},
            }
            answer = await _ask(client, tally, "POST", base + "/votes", json=vote)
            if answer.status_code != 200:
                tally.problems.append(answer.text)
                return
            tally.acknowledged[name, state["trial"]] = choice
            if state["trial"] == 0 or rng.random() < 0.1:
                again = await _ask(client, tally, "POST", base + "/votes", json=vote)
                tally.repeated += again.status_code == 200 and not again.json()["new"]
            state = answer.json()["next"]


def _start(root: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pcg.listening.serve", str(root), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            httpx.get(f"http://127.0.0.1:{port}/", timeout=1)
            return server
        except httpx.HTTPError:
            time.sleep(0.1)
    server.kill()
    raise RuntimeError("the server did not start")


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _crowd(
    root: Path, port: int, study: str, listeners: int, seconds: float, kills: int
) -> tuple[Tally, int]:
    tally, killed = Tally(), 0
    server = await asyncio.to_thread(_start, root, port)
    end = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=listeners, max_keepalive_connections=listeners)
    try:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", limits=limits, timeout=15
        ) as client:
            work = [
                asyncio.create_task(_listener(client, study, tally, end, random.Random(place)))
                for place in range(listeners)
            ]
            for _ in range(kills):
                await asyncio.sleep(seconds / (kills + 1))
                server.send_signal(signal.SIGKILL)
                await asyncio.to_thread(server.wait)
                killed += 1
                server = await asyncio.to_thread(_start, root, port)
            await asyncio.gather(*work)
    finally:
        server.kill()
        server.wait()
    return tally, killed


def run(
    folder: Path, listeners: int = 50, seconds: float = 120.0, kills: int = 1
) -> dict[str, Any]:
    """Run the crowd in `folder` and compare what was acknowledged with what is stored.

    `lost`: acknowledged votes that are not stored as acknowledged; `doubled`: (listener, trial)
    stored more than once; `unexplained`: stored votes no listener was told of. All three must be 0.
    """
    study = build_study(
        demo_recordings(items=10, seconds=0.12), folder / "test", kind="ab", title="load"
    )
    root = folder / "root"
    desk = Desk(root)
    desk.add(folder / "test")
    desk.close()
    tally, killed = asyncio.run(_crowd(root, free_port(), study.id, listeners, seconds, kills))
    store = Store(root)
    try:
        votes = store.votes(study.id)
        numbers = [
            row["number"]
            for row in store.rows("SELECT number FROM listeners WHERE study = ?", (study.id,))
        ]
    finally:
        store.close()
    stored = {(vote["listener"], vote["trial"]): vote["answer"]["choice"] for vote in votes}
    counts = Counter((vote["listener"], vote["trial"]) for vote in votes)
    latencies = np.array(tally.latencies) * 1000
    return {
        "listeners": listeners,
        "seconds": seconds,
        "kills": killed,
        "acknowledged": len(tally.acknowledged),
        "stored": len(votes),
        "lost": sum(stored.get(key) != answer for key, answer in tally.acknowledged.items()),
        "doubled": sum(count > 1 for count in counts.values()),
        "unexplained": len(stored.keys() - tally.acknowledged.keys()),
        "repeats_answered_as_known": tally.repeated,
        "retries": tally.retries,
        "refused": len(tally.problems),
        "numbers_unique": len(set(numbers)) == len(numbers),
        "requests": len(latencies),
        "median_ms": round(float(np.median(latencies)), 1),
        "p95_ms": round(float(np.percentile(latencies, 95)), 1),
    }
