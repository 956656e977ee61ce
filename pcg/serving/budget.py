"""What one visitor may use: requests a minute, and seconds of computing an hour."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pcg.errors import PcgError
from pcg.settings import Limits

MINUTE, HOUR = 60.0, 3600.0
MOST_VISITORS = 4096  # remembered at once; the longest unseen is forgotten first


@dataclass
class _Use:
    starts: deque[float] = field(default_factory=deque)
    work: deque[tuple[float, float]] = field(default_factory=deque)  # (ended at, seconds)


class Budgets:
    """Per-visitor budgets; safe to share between threads, bounded in memory."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._uses: OrderedDict[str, _Use] = OrderedDict()

    @contextmanager
    def spend(self, visitor: str) -> Iterator[float]:
        """Count one request and its wall-clock seconds; yields its deadline on the clock.

        Raises PcgError when the visitor has used up a budget. Time is counted however it ends.
        """
        began = self.admit(visitor)
        try:
            yield began + self.limits.request_seconds
        finally:
            self.charge(visitor, self._clock() - began)

    def admit(self, visitor: str) -> float:
        """Count one request now, or raise PcgError; returns the time on the clock."""
        with self._lock:
            now = self._clock()
            use = self._use(visitor, now)
            if len(use.starts) >= self.limits.visitor_requests_per_minute:
                wait = max(1, round(MINUTE - (now - use.starts[0])))
                raise PcgError(f"Too many requests in one minute; try again in {wait} s.")
            spent = sum(seconds for _, seconds in use.work)
            if spent >= self.limits.visitor_compute_seconds_per_hour:
                wait = max(1, round((HOUR - (now - use.work[0][0])) / 60))
                raise PcgError(f"This hour's share is used up; come back in {wait} min.")
            use.starts.append(now)
            return now

    def charge(self, visitor: str, seconds: float) -> None:
        """Add seconds of computing to a visitor's hour."""
        with self._lock:
            now = self._clock()
            self._use(visitor, now).work.append((now, max(0.0, seconds)))

    def spent(self, visitor: str) -> float:
        """Seconds of computing in the last hour."""
        with self._lock:
            return sum(seconds for _, seconds in self._use(visitor, self._clock()).work)

    def __len__(self) -> int:
        return len(self._uses)

    def _use(self, visitor: str, now: float) -> _Use:
        use = self._uses.setdefault(visitor, _Use())
        self._uses.move_to_end(visitor)
        while len(self._uses) > MOST_VISITORS:
            self._uses.popitem(last=False)
        while use.starts and now - use.starts[0] >= MINUTE:
            use.starts.popleft()
        while use.work and now - use.work[0][0] >= HOUR:
            use.work.popleft()
        return use
