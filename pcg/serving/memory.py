"""Memory given back while the page is served.

glibc gives every few threads an arena of its own and keeps what they freed there: a page that
speaks in many threads seems to grow with its visitors. Few arenas, emptied now and then, keep it
flat. Elsewhere than on glibc nothing is done.
"""

from __future__ import annotations

import ctypes
import threading

ARENAS = 2
EVERY_SECONDS = 20.0
_M_ARENA_MAX = -8  # <malloc.h>


def settle(arenas: int = ARENAS) -> bool:
    """Bound the arenas of threads that start from now on; whether the C library took it."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, arenas))
    except (AttributeError, OSError, TypeError):
        return False


def hand_back() -> bool:
    """Return freed pages to the system; whether any went."""
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError, TypeError):
        return False


def keep_handing_back(every_seconds: float = EVERY_SECONDS) -> threading.Event:
    """Hand back in a daemon thread until the returned event is set."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(every_seconds):
            hand_back()

    threading.Thread(target=work, name="memory", daemon=True).start()
    return stop
