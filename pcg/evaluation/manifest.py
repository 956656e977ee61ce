"""Corpora: which text is spoken in which voice.

Three sources: sentences kept out of the bundled model's training, in its bundled voices; LibriTTS
test-clean from a folder, each text spoken with another sentence of the same reader as the prompt;
any CSV with columns ``prompt`` (audio file), ``transcript``, ``text`` and, optionally, ``id`` and
``audio`` (a recording of ``text``).
"""

from __future__ import annotations

import csv
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcg.errors import PcgError

ASSETS = Path(__file__).resolve().parents[2] / "assets"


@dataclass(frozen=True)
class Utterance:
    """One text to speak. ``voice`` names a bundled voice, or ``prompt`` is a recording of
    ``transcript``. ``audio``: a recording of ``text`` itself, where there is one.
    """

    id: str
    text: str
    voice: str = ""
    prompt: str = ""
    transcript: str = ""
    audio: str = ""


def _bundled_texts() -> list[str]:
    """Held-out sentences: the model's own list if it ships one, else the evaluation's."""
    own = ASSETS / "bundled" / "held_out.json"
    if own.exists():
        return [
            item if isinstance(item, str) else item["text"] for item in json.loads(own.read_text())
        ]
    lines = (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip()]


def bundled(n: int, voices: list[str]) -> list[Utterance]:
    """``n`` held-out sentences, the bundled voices in turn."""
    if not voices:
        raise PcgError("This model has no bundled voices: give --csv or --libritts.")
    texts = _bundled_texts()
    if n > len(texts) * len(voices):
        raise PcgError(f"There are {len(texts) * len(voices)} bundled utterances: ask for fewer.")
    return [
        Utterance(f"b{i:04d}", texts[i % len(texts)], voices[(i + i // len(texts)) % len(voices)])
        for i in range(n)
    ]


def libritts(
    folder: Path, n: int = 500, seed: int = 0, seconds: tuple[float, float] = (4.0, 10.0)
) -> list[Utterance]:
    """Cross-sentence cloning from a LibriTTS folder (test-clean, files *.wav + *.normalized.txt).

    Texts whose recording lasts ``seconds``; the prompt is another sentence, 2..6 s long, of the
    same reader. Selection and pairing follow ``seed`` alone, whatever order the disk lists.
    """
    import soundfile

    readers: dict[str, list[tuple[Path, str, float]]] = {}
    for wav in sorted(folder.rglob("*.wav")):
        words = wav.with_suffix(".normalized.txt")
        if words.exists():
            info = soundfile.info(wav)
            item = (wav, words.read_text(encoding="utf-8").strip(), info.frames / info.samplerate)
            readers.setdefault(wav.name.split("_")[0], []).append(item)
    rng = random.Random(seed)
    pairs = []
    for reader in sorted(readers):
        prompts = [item for item in readers[reader] if 2 <= item[2] <= 6]
        for wav, text, length in readers[reader]:
            others = [item for item in prompts if item[0] != wav]
            if seconds[0] <= length <= seconds[1] and others:
                prompt, transcript, _ = rng.choice(others)
                pairs.append(Utterance(wav.stem, text, "", str(prompt), transcript, str(wav)))
    if len(pairs) < n:
        raise PcgError(
            f"{folder} has {len(pairs)} usable LibriTTS utterances of the {n} asked for."
        )
    return sorted(rng.sample(pairs, n), key=lambda utterance: utterance.id)


def from_csv(path: Path, n: int | None = None) -> list[Utterance]:
    """Utterances of a CSV; paths are relative to it. A row without text is an error here, but a
    missing or damaged recording or transcript becomes a failed row of the run, not a crash.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if not {"prompt", "transcript", "text"} <= set(reader.fieldnames or ()):
                raise PcgError(f"{path.name} needs the columns prompt, transcript and text.")
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PcgError(f"Cannot read {path}: {error}.") from error
    utterances = [_from_row(row, number, path.parent) for number, row in enumerate(rows, start=1)]
    if len({item.id for item in utterances}) < len(utterances):
        raise PcgError(f"{path.name} has the same id twice.")
    return utterances[:n]


def _from_row(row: dict[str, Any], number: int, folder: Path) -> Utterance:
    cells = {name: (row.get(name) or "").strip() for name in ("id", "text", "transcript")}
    if not cells["text"]:
        raise PcgError(f"Row {number} of the CSV has no text to speak.")
    files = {
        name: str(folder / value) if (value := (row.get(name) or "").strip()) else ""
        for name in ("prompt", "audio")
    }
    return Utterance(
        id=cells["id"] or f"r{number:05d}",
        text=cells["text"],
        prompt=files["prompt"],
        transcript=cells["transcript"],
        audio=files["audio"],
    )
