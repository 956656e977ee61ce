"""A clock that tests turn by hand, and tests made of tones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pcg.listening.desk import Desk
from pcg.listening.sources import build_study, demo_recordings
from pcg.listening.study import Study

SECRET_NAMES = ("zebra-exact", "yeti-biased", "xenon-grouped")


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[Desk]:
    desk = Desk(tmp_path / "root", clock)
    yield desk
    desk.close()


@pytest.fixture
def make(tmp_path: Path, desk: Desk) -> Callable[..., Study]:
    def make(
        kind: str = "ab", items: int = 3, systems: int = 2, seconds: float = 0.5, **rules: Any
    ) -> Study:
        sounds = demo_recordings(items, seconds, systems=SECRET_NAMES[:systems])
        folder = tmp_path / f"{kind}-{items}-{systems}"
        if kind == "mushra":
            rules.setdefault("reference", SECRET_NAMES[0])
        study = build_study(sounds, folder, kind=kind, **rules)
        desk.add(folder)
        return study

    return make


def answer_for(question: dict[str, Any]) -> dict[str, Any]:
    """Some valid answer."""
    if question["kind"] == "mos":
        return {"score": 3.5}
    if question["kind"] == "mushra":
        return {"scores": {slot["label"]: 50 for slot in question["slots"] if slot["label"] != "R"}}
    return {"choice": "A"}


def listen(desk: Desk, clock: Clock, question: dict[str, Any]) -> dict[str, float]:
    """Fetch every clip and let the time pass; returns what was heard."""
    for slot in question["slots"]:
        desk.clip(slot["clip"])
    clock.now += sum(slot["seconds"] for slot in question["slots"]) + 1
    return {slot["label"]: slot["seconds"] for slot in question["slots"]}
