"""A Space is assembled from tracked files, checked, and uploaded only when asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from pcg import publish
from pcg.commands import publish as command
from pcg.errors import PcgError
from pcg.settings import ROOT

README = "---\ntitle: x\nsuggested_hardware: cpu-basic\nsdk: gradio\n---\n# Body\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name, text in {
        "app.py": "x = 1\n",
        "requirements.txt": "numpy\n",
        "README.md": README,
        "pcg/__init__.py": "",
        "pcg/__pycache__/junk.pyc": "x",
        "assets/bundled/target/config.json": "{}",
        "tests/test_x.py": "",
        ".secret": "x",
    }.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_assembles_what_a_space_needs_and_no_more(checkout: Path, tmp_path: Path) -> None:
    made = publish.assemble(tmp_path / "space", "cpu-basic", checkout)
    assert made.files == (
        "README.md",
        "app.py",
        "assets/bundled/target/config.json",
        "packages.txt",
        "pcg/__init__.py",
        "requirements.txt",
    )
    assert made.variables == {"PCG_CONFIG": "cpu-basic"}


def test_hardware_follows_the_config(checkout: Path, tmp_path: Path) -> None:
    made = publish.assemble(tmp_path / "space", "zerogpu", checkout)
    header = (made.folder / "README.md").read_text().split("---")[1]
    assert header.count("suggested_hardware") == 1
    assert "suggested_hardware: zero-a10g" in header


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("pcg/key.py", "token = 'hf_" + "a" * 34 + "'", "secret"),
        ("assets/bundled/model.pkl", "x", "pickle"),
    ],
)
def test_refusals(checkout: Path, tmp_path: Path, name: str, text: str, words: str) -> None:
    (checkout / name).write_text(text)
    with pytest.raises(PcgError, match=words):
        publish.assemble(tmp_path / "space", "cpu-basic", checkout)


def test_a_folder_in_use_and_a_missing_voice_are_refused(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(PcgError, match="not empty"):
        publish.assemble(checkout, "cpu-basic", checkout)
    (checkout / "assets/bundled/target/config.json").unlink()
    with pytest.raises(PcgError, match="silent"):
        publish.assemble(tmp_path / "space", "cpu-basic", checkout)


def test_upload_needs_a_token_and_a_proper_name(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    made = publish.assemble(tmp_path / "space", "cpu-basic", checkout)
    with pytest.raises(PcgError, match="HF_TOKEN"):
        publish.publish("me/space", made)
    for wrong in ("space", "a/b/c", "../x", "me/sp ace"):
        with pytest.raises(PcgError, match="owner/name"):
            publish.publish(wrong, made, dry_run=True)


def test_upload_calls(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []

    class Api:
        def __init__(self, token: str) -> None:
            assert token == "from-the-environment"

        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: calls.append((name, (args, kwargs)))

    monkeypatch.setenv("HF_TOKEN", "from-the-environment")
    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    made = publish.assemble(tmp_path / "space", "gpu", checkout)
    publish.publish("me/space", made)
    assert [name for name, _ in calls] == ["create_repo", "add_space_variable", "upload_folder"]
    assert calls[0][1][1]["private"] is True
    assert "from-the-environment" not in str(calls)


@pytest.mark.bundled
def test_dry_run_of_this_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not (ROOT / "assets/bundled/target").is_dir():
        pytest.skip("the bundled voice is not in this checkout")
    parser = command.argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["publish", "me/space", "--dry-run", "--json"])
    assert args.run(args) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["uploaded"] is False
    assert report["megabytes"] < 200
