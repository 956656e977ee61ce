"""Making a test: from outputs at hand, from a folder of recordings with a manifest, or from the
clips of a stored run.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from pcg.errors import PcgError
from pcg.listening import loudness as level
from pcg.listening.study import MAX_CLIP_SECONDS, Clip, Item, Study, load_study, save_study

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
MAX_ZIP_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True)
class Recording:
    """One output: which item, which system, the sound (float or int, mono or stereo) and its rate
    in Hz.
    """

    item: str
    system: str
    audio: Any
    rate: int
    text: str = ""
    practice: bool = False


def build_study(
    recordings: Iterable[Recording],
    folder: Path,
    *,
    kind: str,
    title: str = "Listening test",
    practice: int = 0,
    anchor: bool | None = None,
    target: float = level.TARGET_LUFS,
    **rules: Any,
) -> Study:
    """Match loudness, write the clips under hashed names and `study.json` into `folder`, and return
    the test.

    `practice`: how many of the first items become practice when none is marked. `anchor`: add a 3.5
    kHz low anchor made from the reference (default: only for MUSHRA). Other `rules` are fields of
    `Study`.
    """
    found = list(recordings)
    if not found:
        raise PcgError("There is nothing to listen to: give at least one recording.")
    rate = max(recording.rate for recording in found)
    sounds = _sounds(found, rate)
    systems = list(dict.fromkeys(recording.system for recording in found))
    reference = rules.get("reference")
    if anchor or (anchor is None and kind == "mushra"):
        rules["anchor"] = _add_anchor(sounds, reference, rate)
        systems.append(rules["anchor"])
    keys = list(sounds)
    matched, common = level.match_loudness([sounds[key] for key in keys], rate, target)
    clips = {
        key: _write_clip(sound, rate, folder) for key, sound in zip(keys, matched, strict=True)
    }
    study = Study(
        kind=kind,
        title=title,
        systems=tuple(systems),
        items=_items(found, clips, practice),
        loudness=round(common, 2),
        sample_rate=rate,
        **rules,
    )
    save_study(study, folder)
    return study


def _sounds(found: list[Recording], rate: int) -> dict[tuple[str, str], level.Audio]:
    sounds: dict[tuple[str, str], level.Audio] = {}
    for recording in found:
        key = (recording.item, recording.system)
        if key in sounds:
            raise PcgError(
                f"Item {recording.item!r} has two clips of {recording.system!r}: keep one."
            )
        audio = level.mono(recording.audio)
        if len(audio) > MAX_CLIP_SECONDS * recording.rate:
            raise PcgError(
                f"Item {recording.item!r} is longer than {MAX_CLIP_SECONDS:.0f} seconds: cut it."
            )
        sounds[key] = level.resample(audio, recording.rate, rate)
    return sounds


def _add_anchor(
    sounds: dict[tuple[str, str], level.Audio], reference: str | None, rate: int
) -> str:
    name = "anchor 3.5 kHz"
    for item, system in [key for key in sounds if key[1] == reference]:
        sounds[item, name] = level.low_anchor(sounds[item, system], rate)
    if not any(system == name for _, system in sounds):
        raise PcgError("A low anchor is made from the reference: name the reference system.")
    return name


def _write_clip(sound: level.Audio, rate: int, folder: Path) -> Clip:
    data = level.wav_bytes(level.to_int16(sound), rate)
    name = hashlib.sha256(data).hexdigest()[:32] + ".wav"
    (folder / "clips").mkdir(parents=True, exist_ok=True)
    (folder / "clips" / name).write_bytes(data)
    return Clip(file=name, seconds=round(len(sound) / rate, 4))


def _items(
    found: list[Recording], clips: Mapping[tuple[str, str], Clip], practice: int
) -> tuple[Item, ...]:
    names = list(dict.fromkeys(recording.item for recording in found))
    marked = {recording.item for recording in found if recording.practice} or set(names[:practice])
    texts = {recording.item: recording.text for recording in reversed(found) if recording.text}
    return tuple(
        Item(
            name=name,
            text=texts.get(name, ""),
            practice=name in marked,
            clips={system: clip for (item, system), clip in clips.items() if item == name},
        )
        for name in names
    )


def from_outputs(outputs: Iterable[Mapping[str, Any]]) -> list[Recording]:
    """Recordings from the outputs of Compare: mappings with `system`, `audio` ((rate, samples) or
    samples + `sample_rate`), and optionally `item` and `text`.
    """
    recordings = []
    for output in outputs:
        audio = output["audio"]
        rate, samples = audio if isinstance(audio, tuple) else (output["sample_rate"], audio)
        text = str(output.get("text", ""))
        recordings.append(
            Recording(
                str(output.get("item") or text or "item 1"),
                str(output["system"]),
                samples,
                int(rate),
                text,
            )
        )
    return recordings


def read_folder(folder: Path, manifest: Path | None = None) -> list[Recording]:
    """Recordings of a folder.

    With a manifest (CSV, or JSON / JSONL with the same keys) of columns
    `file,item,system[,text][,practice]`. Without one, either `SYSTEM/ITEM.wav` in sub-folders or
    `ITEM__SYSTEM.wav` side by side.
    """
    if not folder.is_dir():
        raise PcgError(f"There is no folder {folder}.")
    if manifest is None:
        manifest = next(
            (
                path
                for path in map(
                    folder.joinpath, ("manifest.csv", "manifest.json", "manifest.jsonl")
                )
                if path.exists()
            ),
            None,
        )
    rows = _manifest_rows(manifest) if manifest else _guess_rows(folder)
    if not rows:
        raise PcgError(
            f"{folder} holds no manifest and no recordings named SYSTEM/ITEM.wav or "
            "ITEM__SYSTEM.wav."
        )
    return [_read_row(folder, row) for row in rows]


def _manifest_rows(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PcgError(f"The manifest {path.name} cannot be read ({error}).") from error
    try:
        if path.suffix == ".json":
            rows = json.loads(text)
            rows = rows.get("clips", []) if isinstance(rows, dict) else rows
        elif path.suffix == ".jsonl":
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            rows = list(csv.DictReader(io.StringIO(text)))
    except ValueError as error:
        raise PcgError(f"The manifest {path.name} is not valid ({error}).") from error
    if not all(isinstance(row, dict) and {"file", "item", "system"} <= row.keys() for row in rows):
        raise PcgError(f"Every row of {path.name} needs file, item and system.")
    return list(rows)


def _guess_rows(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in AUDIO_SUFFIXES:
            continue
        parts = path.relative_to(folder).parts
        if len(parts) == 2:
            rows.append({"file": "/".join(parts), "item": path.stem, "system": parts[0]})
        elif len(parts) == 1 and "__" in path.stem:
            item, system = path.stem.rsplit("__", 1)
            rows.append({"file": path.name, "item": item, "system": system})
    return rows


def _read_row(folder: Path, row: Mapping[str, Any]) -> Recording:
    path = (folder / str(row["file"])).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise PcgError(f"The manifest names {row['file']!r}, which lies outside the folder.")
    try:
        audio, rate = soundfile.read(path, dtype="float32")
    except (soundfile.LibsndfileError, OSError) as error:
        raise PcgError(f"{row['file']} cannot be read as audio ({error}).") from error
    practice = str(row.get("practice") or "").strip().lower() in ("1", "true", "yes")
    return Recording(
        str(row["item"]), str(row["system"]), audio, int(rate), str(row.get("text") or ""), practice
    )


def pack(folder: Path) -> bytes:
    """A test and its clips as one zip, to share."""
    study = load_study(folder)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("study.json", json.dumps(study.to_json(), ensure_ascii=False))
        for name in sorted({clip.file for item in study.items for clip in item.clips.values()}):
            archive.write(folder / "clips" / name, f"clips/{name}")
    return buffer.getvalue()


def unpack(data: bytes, folder: Path, new_id: str | None = None) -> Study:
    """Open a shared zip into `folder`; only `study.json` and the clips it names are written,
    whatever else the zip holds.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        if sum(entry.file_size for entry in archive.infolist()) > MAX_ZIP_BYTES:
            raise PcgError("This test is too large to open here.")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "study.json").write_bytes(archive.read("study.json"))
        study = load_study(folder)
        (folder / "clips").mkdir(exist_ok=True)
        for name in {clip.file for item in study.items for clip in item.clips.values()}:
            clip = archive.read(f"clips/{name}")
            level.read_wav(clip)
            (folder / "clips" / name).write_bytes(clip)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise PcgError(f"This is not a listening test that was packed here ({error}).") from error
    if new_id is not None:
        study = replace(study, id=new_id)
        save_study(study, folder)
    return study


def demo_recordings(
    items: int = 3,
    seconds: float = 0.6,
    rate: int = 16000,
    systems: tuple[str, ...] = ("clean", "hiss"),
) -> list[Recording]:
    """Recordings made of tones, each system with more noise than the one before: for trying a test
    out and for load runs.
    """
    time = np.arange(int(seconds * rate)) / rate
    out = []
    for item in range(items):
        tone = 0.2 * np.sin(2 * np.pi * (220 + 40 * item) * time) * np.hanning(len(time))
        for place, system in enumerate(systems):
            noise = np.random.default_rng(1000 * item + place).normal(
                0, 0.004 + 0.03 * place, len(time)
            )
            out.append(
                Recording(
                    f"tone {item + 1}", system, tone + noise, rate, text=f"Tone number {item + 1}"
                )
            )
    return out
