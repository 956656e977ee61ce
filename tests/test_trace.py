"""Rounds to JSON lines and back, and the figures that summarise them."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pcg import theory
from pcg.acceptance.rule import Judgement, Verdict
from pcg.decoding import Round
from pcg.errors import PcgError
from pcg.trace import VERSION, Trace, round_to_dict, summarise
from tests.test_decoding import speak


def made(name: str = "pcg", keep_rows: bool = False) -> Trace:
    trace = Trace({"rule": name, "n_codes": 7, "seed": 3, "text": "Grüße — 你好"})
    for one in speak(name, 3, 40, keep_rows=keep_rows):
        trace.append(one)
    return trace


def judgement(position: int, accepted: bool, exact: bool = True, ratio: float = 1.0) -> Judgement:
    return Judgement(position, 1, 0.5, 0.5, 0.25, ratio, accepted, exact, "Because.")


def a_round(index: int, kept: int, drafted: int, emitted: int, trials: int = 0) -> Round:
    judged = [judgement(i, True, exact=i > 0) for i in range(kept)]
    if kept < drafted:
        judged.append(judgement(kept, False))
    kind = "bonus" if kept == drafted else "residual"
    verdict = Verdict(tuple(judged), kept, 2, kind, 0.5, trials=trials)
    return Round(index, 0, (1,) * drafted, verdict, (1,) * emitted, 0.1, 0.2, 0.05)


@pytest.mark.parametrize("name", ["target", "sd", "ssd", "pcg", "gsd"])
def test_a_trace_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    trace = made(name)
    trace.save(tmp_path / "a.jsonl")
    again = Trace.load(tmp_path / "a.jsonl")
    assert again.header == trace.header
    assert again.rounds == trace.rounds
    assert again.summary() == trace.summary()
    assert again.tokens == trace.tokens
    assert again.codes == [token for token in trace.tokens if token < 7]
    lines = (tmp_path / "a.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(trace.rounds) + 1
    assert json.loads(lines[0])["pcg_trace"] == VERSION


def test_infinite_ratios_are_valid_json() -> None:
    one = a_round(1, 0, 1, 1)
    verdict = Verdict((judgement(0, True, ratio=math.inf),), 1, 2, "bonus", 0.5)
    trace = Trace({}, [Round(1, 0, (1,), verdict, (1, 2), 0.0, 0.0, 0.0), one])
    text = "\n".join(trace.lines())
    for line in text.splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(word))
    assert Trace.parse(text).rounds == trace.rounds


def test_rows_are_kept_beside_the_trace(tmp_path: Path) -> None:
    trace = made(keep_rows=True)
    trace.save(tmp_path / "a.jsonl", rows=True)
    again = Trace.load(tmp_path / "a.jsonl")
    draft, target = theory.stack_rows(trace.rounds)
    for exact, stored in zip((draft, target), theory.stack_rows(again.rounds), strict=True):
        assert torch.allclose(exact, stored, atol=1e-3)
        assert torch.allclose(stored.sum(1), torch.ones(len(stored)))


def test_the_summary_counts_what_it_says() -> None:
    rounds = [
        a_round(0, 0, 0, 1),
        a_round(1, 3, 3, 4),
        a_round(2, 1, 3, 2, trials=4),
        a_round(3, 0, 3, 1, trials=2),
    ]
    found = summarise(rounds)
    assert found["judged"] == 3 + 2 + 1
    assert found["accepted"] == 4
    assert found["acceptance_rate"] == pytest.approx(4 / 6), "the bonus token is not in it"
    assert found["tokens_per_round"] == pytest.approx(7 / 3), "the bonus token is in it"
    assert found["tokens"] == 8
    assert found["drafted"] == 9
    assert found["by_position"] == pytest.approx([2 / 3, 1 / 2, 1.0])
    assert found["histogram"] == {1: 1, 2: 1, 4: 1}
    assert found["group_only"] == 2
    assert found["trials_mean"] == 3.0
    assert found["trials_max"] == 4
    assert found["seconds"]["total"] == pytest.approx(4 * 0.35)
    assert found["tokens_per_second"] == pytest.approx(8 / 1.4)


def test_nothing_gives_no_figures() -> None:
    found = summarise([])
    assert found["acceptance_rate"] is found["tokens_per_round"] is found["finished"] is None
    assert found["tokens"] == 0


BROKEN = [
    "",
    "nonsense",
    "{}",
    "[]",
    "null",
    '{"pcg_trace": 1}\n{}',
    '{"pcg_trace": 1}\n[1]',
    '{"pcg_trace": 1}\n{"verdict": 3}',
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_not_a_trace_is_refused(text: str) -> None:
    with pytest.raises(PcgError, match="not a trace"):
        Trace.parse(text)


def test_versions_files_and_lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PcgError, match="version 99"):
        Trace.parse('{"pcg_trace": 99}')
    with pytest.raises(PcgError, match="cannot be read"):
        Trace.load(tmp_path / "none.jsonl")
    (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PcgError, match="cannot be read"):
        Trace.load(tmp_path / "b.jsonl")
    monkeypatch.setattr("pcg.trace.MAX_ROUNDS", 2)
    with pytest.raises(PcgError, match="may hold 2 rounds"):
        Trace.parse("\n".join(made().lines()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner, max_size=2),
    max_leaves=4,
)
FIELDS = sorted(round_to_dict(a_round(1, 0, 1, 1)))


@given(st.sampled_from(FIELDS), JSON)
@settings(max_examples=150, deadline=None)
def test_a_spoilt_field_is_refused_or_harmless(name: str, value: object) -> None:
    spoilt = {**round_to_dict(a_round(1, 1, 2, 2)), name: value}
    try:
        trace = Trace.parse(json.dumps({"pcg_trace": VERSION}) + "\n" + json.dumps(spoilt))
    except PcgError:
        return
    trace.summary()
    assert Trace.parse("\n".join(trace.lines())).rounds == trace.rounds


@given(st.sampled_from(sorted(vars(judgement(0, True)))), JSON)
@settings(max_examples=150, deadline=None)
def test_a_spoilt_judgement_is_refused_or_harmless(name: str, value: object) -> None:
    spoilt = round_to_dict(a_round(1, 1, 2, 2))
    spoilt["verdict"]["judgements"][0][name] = value
    try:
        trace = Trace.parse(json.dumps({"pcg_trace": VERSION}) + "\n" + json.dumps(spoilt))
    except PcgError:
        return
    trace.summary()
