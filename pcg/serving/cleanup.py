"""Files made for visitors are removed after a while; nothing else is touched."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from pcg.serving import logs


def sweep(folders: Iterable[Path], max_age_seconds: float, now: float | None = None) -> int:
    """Remove files last changed more than `max_age_seconds` ago, and folders left empty.

    Links are removed as links and never followed. Returns how many files went.
    """
    moment = time.time() if now is None else now
    removed = 0
    for folder in folders:
        for parent, directories, files in os.walk(folder, topdown=False, followlinks=False):
            for name in files:
                file = Path(parent, name)
                with contextlib.suppress(OSError):
                    if moment - file.lstat().st_mtime > max_age_seconds:
                        file.unlink()
                        removed += 1
            for name in directories:
                with contextlib.suppress(OSError):  # not empty, a link, or in use
                    Path(parent, name).rmdir()
    return removed


def start(folders: Iterable[Path], hours: float, every_seconds: float = 300.0) -> threading.Event:
    """Sweep in a daemon thread until the returned event is set."""
    kept, stop = [Path(folder) for folder in folders], threading.Event()

    def work() -> None:
        while not stop.wait(every_seconds):
            count = sweep(kept, hours * 3600)
            if count:
                logs.event("temp files removed", files=count)

    threading.Thread(target=work, name="pcg-cleanup", daemon=True).start()
    return stop
