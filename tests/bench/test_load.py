"""The load script counts honestly and never leaves this machine."""

import pytest

from pcg.bench import load
from pcg.errors import PcgError


@pytest.mark.parametrize(
    "url", ["http://example.org", "http://10.0.0.1:7860", "http://127.0.0.1.x"]
)
def test_only_this_machine_is_loaded(url: str) -> None:
    with pytest.raises(PcgError, match="this machine"):
        load.check_address(url)


def test_sentences_and_traces_are_told_apart() -> None:
    assert load.is_sentence("Type a sentence to say.")
    for words in (
        "",
        "x" * 500,
        "Traceback (most recent call last)",
        "'NoneType' has no attribute",
    ):
        assert not load.is_sentence(words)


def test_cross_talk_is_noticed() -> None:
    tally = load.Tally()
    tally.compare_spoken(("a", 1, "sd"), [1, 2])
    tally.compare_spoken(("a", 1, "sd"), [1, 2])
    assert tally.crosstalk == 0
    tally.compare_spoken(("a", 1, "sd"), [1, 3])
    assert tally.crosstalk == 1


def test_a_visitor_counts_refusals_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = load.Tally()
    visitor = load.VisitorLoop("http://127.0.0.1:1", 0, tally)
    words = iter(["Type a sentence to say.", "Traceback (most recent call last)"])

    def act(_: str) -> str:
        raise RuntimeError(next(words, "Type a sentence to say."))

    clock = iter(float(n) for n in range(100))
    monkeypatch.setattr(visitor, "act", act)
    monkeypatch.setattr(load.time, "sleep", lambda _: None)
    monkeypatch.setattr(load.time, "monotonic", lambda: next(clock))
    visitor.run(6.0)
    assert tally.outcomes["refused"] == 1
    assert tally.outcomes["failed"] == 1
