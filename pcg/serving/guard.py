"""What every endpoint goes through: the visitor's budget, the health counters, one log line.

    with guard("compare", request, rules=4):
        ...

`request` is whatever the web framework gives: `.client.host`, `.headers` and `.session_hash` are
read where they are there. A process that listens on this machine only has one user, so budgets
hold only where the settings' host is open to others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from pcg.errors import PcgError
from pcg.serving import logs
from pcg.serving.budget import Budgets
from pcg.serving.health import HEALTH, Health
from pcg.settings import Settings, load_settings

LOOPBACK = ("127.", "localhost", "::1")


class Guard:
    """Budgets, counters and logs of one process."""

    def __init__(self, settings: Settings, health: Health = HEALTH) -> None:
        self.settings = settings
        self.budgets = Budgets(settings.limits)
        self.health = health
        self.open_to_others = not settings.server.host.startswith(LOOPBACK)

    @contextmanager
    def __call__(
        self, endpoint: str, request: Any = None, **facts: Any
    ) -> Iterator[dict[str, Any]]:
        """Admit, count, time and log one request; raises PcgError when a budget is used up.

        The yielded dict takes more facts for the log line (only `logs.ALLOWED` are written).
        """
        visitor = visitor_of(request)
        self.health.enter()
        try:
            with logs.timed(endpoint, endpoint=endpoint, visitor=visitor, **facts) as more:
                if self.open_to_others:
                    with self.budgets.spend(visitor):
                        yield more
                else:
                    yield more
        finally:
            self.health.leave()


def visitor_of(request: Any) -> str:
    """A visitor's hash, from the address that the nearest proxy saw, else the peer's.

    Only the last entry of X-Forwarded-For is used: the ones before it are the visitor's to invent.
    """
    headers = getattr(request, "headers", None) or {}
    try:
        forwarded = str(headers.get("x-forwarded-for") or "").split(",")[-1].strip()
    except AttributeError:
        forwarded = ""
    peer = getattr(getattr(request, "client", None), "host", None)
    return logs.visitor_id(forwarded or peer)


@cache
def guard() -> Guard:
    """The process's guard, with the process's settings; logging starts with it."""
    settings = load_settings()
    logs.set_up(settings.server.log_level)
    return Guard(settings)


def start_up(settings: Settings) -> str:
    """Log the start; returns one sentence when the model's weights are not there, else "".

    The page starts all the same: lessons and stored traces need no model. `/healthz` says failing.
    """
    logs.set_up(settings.server.log_level)
    logs.event("starting", config=settings.config, model=settings.model, device=settings.device)
    try:
        settings.check_weights()
    except PcgError as error:
        HEALTH.failed()
        return str(error)
    return ""
