"""The guard counts, limits and logs every request, however it ends."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pcg.errors import PcgError
from pcg.serving.guard import Guard, start_up, visitor_of
from pcg.serving.health import Health
from pcg.settings import Limits, Server, Settings


def request(address: str, forwarded: str = "") -> Any:
    headers = {"x-forwarded-for": forwarded} if forwarded else {}
    return SimpleNamespace(client=SimpleNamespace(host=address), headers=headers)


def make(host: str) -> Guard:
    limits = Limits(visitor_requests_per_minute=2)
    return Guard(Settings(limits=limits, server=Server(host=host)), Health())


def test_budgets_hold_where_others_can_reach() -> None:
    guard = make("0.0.0.0")
    for _ in range(2):
        with guard("say", request("198.51.100.1")):
            assert guard.health.active == 1
    with pytest.raises(PcgError, match="Too many"), guard("say", request("198.51.100.1")):
        pass
    with guard("say", request("198.51.100.2")):
        pass
    assert (guard.health.active, guard.health.served) == (0, 4)


def test_one_user_at_home_has_no_budget() -> None:
    guard = make("127.0.0.1")
    for _ in range(9):
        with guard("say", None):
            pass


def test_a_failure_leaves_nothing_behind() -> None:
    guard = make("0.0.0.0")
    with pytest.raises(RuntimeError), guard("say", request("a")):
        raise RuntimeError
    assert guard.health.active == 0


def test_a_stopped_generator_leaves_nothing_behind() -> None:
    guard = make("0.0.0.0")

    def run() -> Any:
        with guard("say", request("a")):
            yield 1
            yield 2

    running = run()
    next(running)
    running.close()
    assert guard.health.active == 0


def test_only_the_nearest_proxy_is_believed() -> None:
    honest = visitor_of(request("10.0.0.1", "198.51.100.1"))
    lying = visitor_of(request("10.0.0.1", "203.0.113.9, 198.51.100.1"))
    assert honest == lying != visitor_of(request("10.0.0.1"))


def test_missing_weights_are_said_and_do_not_stop_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = Health()
    monkeypatch.setattr("pcg.serving.guard.HEALTH", health)
    assert "config.json" in start_up(Settings(model=str(tmp_path)))
    assert health.state == "failed"
