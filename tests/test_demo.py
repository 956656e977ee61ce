"""``python -m pcg demo``: toy tables, no weights."""

import json

import pytest
import torch

from pcg import demo
from pcg.__main__ import build_parser, main
from pcg.commands.demo import Paint, account


def test_the_last_line_is_the_whole_account(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seed", "3", "--tokens", "12", "--json"]) == 0
    text = capsys.readouterr().out
    assert "\x1b[" not in text, "no colour into a pipe"
    found = json.loads(text.splitlines()[-1])
    assert set(found["rules"]) == {"sd", "ssd", "pcg"}
    for one in found["rules"].values():
        spoken = [token for turn in one["rounds"] for token in turn["emitted"]]
        assert len(spoken) == 12 or spoken[-1] == demo.END
        assert one["figures"]["tokens"] == len(spoken)
    figures = {name: one["figures"] for name, one in found["rules"].items()}
    assert figures["sd"]["token_drift"] == pytest.approx(0, abs=1e-6)
    assert figures["pcg"]["expected_acceptance"] > figures["sd"]["expected_acceptance"]
    assert figures["ssd"]["expected_acceptance"] == pytest.approx(
        figures["pcg"]["expected_acceptance"], abs=1e-6
    )
    assert figures["pcg"]["group_drift"] < figures["ssd"]["group_drift"]


def test_every_rule_starts_from_the_same_stream() -> None:
    found = demo.run(5)
    starts = {name: trace.rounds[0].emitted for name, trace in found.traces.items()}
    drafts = {name: trace.rounds[1].drafted for name, trace in found.traces.items()}
    assert len(set(starts.values())) == len(set(drafts.values())) == 1
    again = demo.run(5)
    assert all(found.traces[name].tokens == again.traces[name].tokens for name in starts)


def test_families_are_groups() -> None:
    groups = demo.run(0).groups
    assert groups.members(1).tolist() == [0, 1, 2, 3] or groups.size(1) > 1
    assert groups.members(demo.END).tolist() == [demo.END]
    assert demo.name_of(0) == "a1"
    assert demo.name_of(23) == "s4"
    assert demo.embeddings().shape == (demo.CODES, 3)
    assert bool(torch.isfinite(demo.embeddings()).all())


def test_colours_show_on_a_terminal_only() -> None:
    one = demo.run(1).traces["pcg"].rounds[1]
    assert "\x1b[" in account(one, Paint(True))
    assert "\x1b[" not in account(one, Paint(False))


@pytest.mark.parametrize(
    "words", [["--tokens", "0"], ["--seed", "-1"], ["--lookahead", "99"], ["--theta", "2"]]
)
def test_bad_requests_get_one_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pcg: ") and error.count("\n") == 1


def test_only_the_command_asked_for_is_read() -> None:
    args = build_parser(["demo"]).parse_args(["demo"])
    assert callable(args.run)
    with pytest.raises(SystemExit):
        build_parser(["nothing"]).parse_args(["nothing"])
