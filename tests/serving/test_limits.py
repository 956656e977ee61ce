"""Whatever a visitor sends is either taken or refused in one sentence."""

from pathlib import Path

import pytest

from pcg.errors import PcgError
from pcg.serving import limits as checks
from pcg.settings import Limits

LIMITS = Limits(max_text_chars=20, max_rules=2, max_upload_mb=0.001)
RIFF = b"RIFF" + bytes(40)


def test_text_is_stripped_and_control_characters_become_spaces() -> None:
    assert checks.check_text("  hello\x00world\n", LIMITS) == "hello world"


@pytest.mark.parametrize("text", ["", "   \n", "x" * 21, None, 3, b"bytes", ["a"]])
def test_bad_texts_are_refused(text: object) -> None:
    with pytest.raises(PcgError):
        checks.check_text(text, LIMITS)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1", None, -0.1, 1.1, [0.5]])
def test_bad_numbers_are_refused(value: object) -> None:
    with pytest.raises(PcgError):
        checks.check_number("Theta", value, 0.0, 1.0)


def test_whole_numbers() -> None:
    assert checks.check_number("Lookahead", 3.0, 1, 8, whole=True) == 3
    with pytest.raises(PcgError, match="whole"):
        checks.check_number("Lookahead", 2.5, 1, 8, whole=True)


def test_rules_must_be_known_few_and_some() -> None:
    assert checks.check_rules(["sd"], ["sd", "pcg"], LIMITS) == ["sd"]
    for wrong in ([], ["sd"] * 3, ["nobody"]):
        with pytest.raises(PcgError):
            checks.check_rules(wrong, ["sd", "pcg"], LIMITS)


def test_upload_inside_its_folder_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "clip.wav"
    file.write_bytes(RIFF)
    assert checks.check_upload(file, LIMITS, [tmp_path]) == file.resolve()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("clip.txt", RIFF, "Upload audio"),
        ("clip.wav", b"", "empty"),
        ("clip.wav", RIFF + bytes(2000), "MB"),
        ("clip.wav", b"<html></html>", "contents"),
        ("clip.pkl", b"\x80\x04.", "Upload audio"),
    ],
)
def test_wrong_uploads(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(PcgError, match=words):
        checks.check_upload(file, LIMITS, [tmp_path])


def test_nothing_outside_the_upload_folder_is_read(tmp_path: Path) -> None:
    uploads, secret = tmp_path / "uploads", tmp_path / "secret.wav"
    uploads.mkdir()
    secret.write_bytes(RIFF)
    link = uploads / "link.wav"
    link.symlink_to(secret)
    for path in (secret, uploads / ".." / "secret.wav", link, "/etc/passwd", "a\x00b", uploads):
        with pytest.raises(PcgError):
            checks.check_upload(path, LIMITS, [uploads])
