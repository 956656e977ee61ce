"""`/healthz`: is the process alive, is the model loaded, how much memory does it hold.

Says nothing about visitors. 200 while it can serve, 503 once the model has failed to load.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROUTE = "/healthz"


@dataclass
class Health:
    """State that the page reports; set by whoever loads the model."""

    model: str = ""
    state: str = "idle"  # idle (not loaded yet), ready, failed
    active: int = 0
    served: int = 0
    started: float = field(default_factory=time.time)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def ready(self, model: str) -> None:
        """The model is loaded."""
        self.model, self.state = model, "ready"

    def failed(self) -> None:
        """The model could not be loaded."""
        self.state = "failed"

    def enter(self) -> None:
        """A request starts."""
        with self._lock:
            self.active += 1

    def leave(self) -> None:
        """A request has ended, however it ended."""
        with self._lock:
            self.active -= 1
            self.served += 1

    def report(self) -> dict[str, Any]:
        """Plain values for the route."""
        return {
            "status": "failing" if self.state == "failed" else "ok",
            "model": self.model,
            "model_state": self.state,
            "active": self.active,
            "served": self.served,
            "uptime_seconds": round(time.time() - self.started, 1),
            "resident_mb": resident_mb(),
        }


HEALTH = Health()


def resident_mb() -> float | None:
    """Resident memory of this process in MB, or None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def route(health: Health = HEALTH) -> Any:
    """The route for a Starlette or FastAPI application: `FastAPI(routes=[route()])`."""
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def healthz(_: Request) -> JSONResponse:
        report = health.report()
        headers = {"Cache-Control": "no-store"}
        return JSONResponse(report, 200 if report["status"] == "ok" else 503, headers=headers)

    return Route(ROUTE, healthz, methods=["GET", "HEAD"])
