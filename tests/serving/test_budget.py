"""Budgets slide, count failures, keep visitors apart and stay bounded."""

import pytest

from pcg.errors import PcgError
from pcg.serving import budget
from pcg.serving.budget import Budgets
from pcg.settings import Limits


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


LIMITS = Limits(visitor_requests_per_minute=3, visitor_compute_seconds_per_hour=10.0)


def test_requests_a_minute_slide() -> None:
    clock = Clock()
    budgets = Budgets(LIMITS, clock)
    for _ in range(3):
        budgets.admit("a")
    with pytest.raises(PcgError, match="try again in 60 s"):
        budgets.admit("a")
    budgets.admit("b")
    clock.now = 61.0
    budgets.admit("a")


def test_computing_is_counted_even_when_it_fails() -> None:
    clock = Clock()
    budgets = Budgets(LIMITS, clock)
    with pytest.raises(RuntimeError), budgets.spend("a") as deadline:
        assert deadline == LIMITS.request_seconds
        clock.now = 11.0
        raise RuntimeError
    assert budgets.spent("a") == 11.0
    with pytest.raises(PcgError, match="come back"):
        budgets.admit("a")
    clock.now = 4000.0
    budgets.admit("a")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MOST_VISITORS", 5)
    budgets = Budgets(LIMITS, Clock())
    for number in range(50):
        budgets.admit(str(number))
    assert len(budgets) == 5
