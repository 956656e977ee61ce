"""Freed memory goes back to the system."""

import sys
import threading
from pathlib import Path

import pytest

from pcg.serving import memory


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_what_threads_freed_is_handed_back() -> None:
    assert memory.settle()

    def hold() -> None:
        blocks = [bytearray(60_000) for _ in range(1500)]  # below the size that is mapped alone
        kept.append(bytearray(60_000))  # at the top of the arena: the rest cannot shrink by itself
        del blocks

    kept: list[bytearray] = []
    threads = [threading.Thread(target=hold) for _ in range(4)]
    before = resident_mb()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown = resident_mb() - before
    memory.hand_back()
    assert resident_mb() - before < max(25.0, 0.4 * grown)


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _name: object())
    assert not memory.settle()
    assert not memory.hand_back()


def test_the_thread_hands_back_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    called = threading.Event()
    monkeypatch.setattr(memory, "hand_back", called.set)
    stop = memory.keep_handing_back(0.01)
    assert called.wait(5)
    stop.set()
