"""The README is true: header, commands, snippets, names of files and tables."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from pcg.bench.load import StartUp
from pcg.settings import BUNDLED_DIR, ROOT, available_configs

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"(<!-- [^\n]* -->\n)?```(\w+)\n(.*?)```", README, re.DOTALL)
HEADER: dict[str, Any] = yaml.safe_load(README.split("---\n")[1])


def commands() -> list[str]:
    """Lines of the shell blocks that start this program, with their line ends joined."""
    text = "\n".join(body for _, kind, body in BLOCKS if kind == "bash").replace("\\\n", " ")
    return [line for line in text.splitlines() if "python -m pcg " in line]


def snippets(served: bool) -> list[str]:
    """Python blocks, those that need a running page or the others."""
    return [
        body
        for note, kind, body in BLOCKS
        if kind == "python"
        and ("running page" in note) == served
        and "example of a rule" not in note
    ]


def test_the_header_is_what_a_space_wants() -> None:
    assert HEADER["sdk"] == "gradio"
    assert (ROOT / HEADER["app_file"]).is_file()
    assert len(HEADER["short_description"]) <= 60
    assert HEADER["license"] == "apache-2.0"
    low, high = re.search(
        r"^gradio>=([\d.]+),<([\d.]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE
    ).groups()  # type: ignore[union-attr]
    pinned = tuple(map(int, HEADER["sdk_version"].split(".")))
    assert tuple(map(int, low.split("."))) <= pinned < tuple(map(int, high.split(".")))


def test_the_two_commands_stand_as_they_are() -> None:
    assert "pip install -r requirements.txt && python app.py\n" in README
    assert "pip install -r requirements-dev.txt && python -m pytest\n" in README


@pytest.mark.parametrize("line", commands())
def test_every_command_parses(line: str) -> None:
    from pcg.__main__ import build_parser

    words = shlex.split(line.split("python -m pcg ", 1)[1])
    args = build_parser(words).parse_args(words)
    assert callable(args.run)


@pytest.mark.bundled
@pytest.mark.parametrize("source", snippets(served=False))
def test_snippets_run(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (BUNDLED_DIR / "target").is_dir():
        pytest.skip("the bundled voice is not in this checkout")
    monkeypatch.chdir(tmp_path)
    exec(compile(source, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.server
@pytest.mark.parametrize("source", snippets(served=True))
def test_snippets_against_a_page_run(source: str, page: tuple[str, StartUp]) -> None:
    here = source.replace("http://127.0.0.1:7860", page[0])
    assert here != source
    exec(compile(here, "README.md", "exec"), {"__name__": "readme"})


def test_every_file_it_names_is_there() -> None:
    named = set(re.findall(r"(?:^|[\s`(])((?:pcg|tests|assets|spaces_config)/[\w/.-]+)", README))
    named |= {f"spaces_config/{name}.toml" for name in available_configs()}
    made_later = {"pcg/acceptance/coin.py"}  # the worked example writes it
    missing = [
        name for name in sorted(named - made_later) if not (ROOT / name.rstrip(".")).exists()
    ]
    assert missing == []


def test_tables_are_those_of_the_stored_results() -> None:
    from pcg.evaluation.readme import refreshed

    assert refreshed(README, ROOT / "assets" / "results") == README, (
        "stale tables: python -m pcg evaluate report --readme README.md"
    )
