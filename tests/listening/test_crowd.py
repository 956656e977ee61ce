"""Fifty listeners at once over HTTP while the server is killed and comes back."""

from __future__ import annotations

import pytest

from pcg.listening import load


def check(result):
    assert result["kills"] == 1 and result["listeners"] == 50
    assert result["retries"] > 0, "the kill was not noticed, so nothing was tested"
    assert result["lost"] == result["doubled"] == result["unexplained"] == result["refused"] == 0
    assert result["stored"] == result["acknowledged"]
    assert result["repeats_answered_as_known"] > 0
    assert result["numbers_unique"]


def test_no_vote_is_lost_or_doubled_when_the_server_dies(tmp_path):
    result = load.run(tmp_path, listeners=50, seconds=15)
    check(result)
    assert result["stored"] >= 20


@pytest.mark.slow
def test_the_same_for_two_minutes(tmp_path):
    result = load.run(tmp_path, listeners=50, seconds=120)
    check(result)
    assert result["stored"] >= 500


def test_a_store_that_forgets_would_be_noticed(tmp_path, monkeypatch):
    """The check itself can fail: with votes kept in memory only, the kill loses some."""
    votes = load.Store.votes

    def forgetful(self, study_id):
        return votes(self, study_id)[1:]

    monkeypatch.setattr(load.Store, "votes", forgetful)
    assert load.run(tmp_path, listeners=5, seconds=2, kills=0)["lost"] == 1
