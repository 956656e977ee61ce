"""Server-side checks of what a visitor sends. Each raises `PcgError` with one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from pcg.errors import PcgError
from pcg.settings import Limits

AUDIO_SUFFIXES = frozenset({".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".webm", ".aac"})
# First bytes of the containers above; MPEG and ISO files are told apart in check_upload.
MAGIC = (b"RIFF", b"fLaC", b"OggS", b"ID3", b"\x1a\x45\xdf\xa3", b"RF64")
TRACE_SUFFIXES = frozenset({".jsonl", ".json"})


def check_text(text: object, limits: Limits) -> str:
    """Stripped text of 1..max_text_chars characters; control characters become spaces."""
    if not isinstance(text, str):
        raise PcgError("The text must be a text.")
    clean = "".join(c if c.isprintable() else " " for c in text).strip()
    if not clean:
        raise PcgError("Type a sentence to say.")
    if len(clean) > limits.max_text_chars:
        raise PcgError(
            f"The text has {len(clean)} characters; at most {limits.max_text_chars} are read here."
        )
    return clean


def check_number(
    name: str, value: object, low: float, high: float, *, whole: bool = False
) -> float:
    """A finite number in [low, high]; `whole` wants an integer. Booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise PcgError(f"{name} must be a number between {low:g} and {high:g}.")
    if whole and value != int(value):
        raise PcgError(f"{name} must be a whole number between {low:g} and {high:g}.")
    if not low <= value <= high:
        raise PcgError(f"{name} must lie between {low:g} and {high:g}, not {value:g}.")
    return int(value) if whole else float(value)


def check_rules(names: Iterable[str], known: Iterable[str], limits: Limits) -> list[str]:
    """1..max_rules names, each of them known."""
    chosen, registry = list(names), list(known)
    if not chosen:
        raise PcgError("Choose at least one rule.")
    if len(chosen) > limits.max_rules:
        raise PcgError(f"Choose at most {limits.max_rules} rules at once.")
    for name in chosen:
        if name not in registry:
            raise PcgError(f"There is no rule {name!r}; known: {', '.join(registry)}.")
    return chosen


def check_upload(path: str | Path, limits: Limits, roots: Iterable[Path]) -> Path:
    """An uploaded audio file: inside one of `roots`, of a known kind, and not too large."""
    file = _inside(path, roots)
    if file.suffix.lower() not in AUDIO_SUFFIXES:
        raise PcgError("Upload audio: wav, flac, mp3, ogg, opus, m4a, aac or webm.")
    _check_size(file, limits.max_upload_mb)
    with file.open("rb") as handle:
        head = handle.read(12)
    mpeg = len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0
    if not (head.startswith(MAGIC) or head[4:8] == b"ftyp" or mpeg):
        raise PcgError("This file is named like audio, but its contents are not.")
    return file


def check_trace_upload(path: str | Path, limits: Limits, roots: Iterable[Path]) -> Path:
    """An uploaded trace: inside one of `roots`, JSON lines, and not too large."""
    file = _inside(path, roots)
    if file.suffix.lower() not in TRACE_SUFFIXES:
        raise PcgError("A trace is a .jsonl file saved by this page or the command line.")
    _check_size(file, limits.max_trace_mb)
    return file


def _inside(path: str | Path, roots: Iterable[Path]) -> Path:
    """The resolved path (links followed), which must lie inside one of `roots`."""
    try:
        file = Path(path).resolve(strict=True)
    except (OSError, ValueError, RuntimeError, TypeError):
        raise PcgError("That file is not there any more; upload it again.") from None
    allowed = [Path(root).resolve() for root in roots]
    if not file.is_file() or not any(file.is_relative_to(root) for root in allowed):
        raise PcgError("Only files uploaded to this page can be read.")
    return file


def _check_size(file: Path, most_mb: float) -> None:
    size = file.stat().st_size
    if size == 0:
        raise PcgError("The uploaded file is empty.")
    if size > most_mb * 1_000_000:
        raise PcgError(f"The file has {size / 1e6:.1f} MB; at most {most_mb:g} MB are taken.")
