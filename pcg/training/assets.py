"""Puts the trained parts together as the folder that :mod:`pcg.catalog` loads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from pcg.atlas import make_atlas, mel_table
from pcg.codec.bundled import BundledCodec
from pcg.durations import FILE as DURATIONS
from pcg.groups import NestedGroups
from pcg.training.voices import make_voices

LICENCE = "Apache-2.0; trained on speech of hibari-tts (Apache-2.0) and flite, texts of WordNet"


def assemble(
    parts: Path, out: Path, cache: Path, default_theta: float = 0.4, atlas: bool = True
) -> dict[str, Any]:
    """Copies target, draft, codec and durations of ``parts`` to ``out``; makes voices, groups and
    atlas. Returns the folder's size in bytes by part."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("target", "draft", "codec"):
        if (parts / name).is_dir():
            shutil.copytree(parts / name, out / name, dirs_exist_ok=True)
    shutil.copyfile(parts / DURATIONS, out / DURATIONS)
    if (cache / "manifest.json").is_file():
        shutil.copyfile(cache / "manifest.json", out / "corpus.json")
    codec = BundledCodec.load(out / "codec")
    write_card(out, codec, default_theta)
    make_voices(cache, codec, out / "voices")
    table = input_table(out)
    make_groups(table, codec, out / "groups")
    if atlas:
        make_atlas(table, codec).save(out / "atlas")
    files = [path for path in out.rglob("*") if path.is_file()]
    sizes: dict[str, Any] = {}
    for path in files:
        part = path.relative_to(out).parts[0]
        sizes[part] = sizes.get(part, 0) + path.stat().st_size
    return sizes


def write_card(out: Path, codec: BundledCodec, default_theta: float) -> None:
    """``pcg.json``: what the catalogue reads."""
    card = {
        "prompts": "timed-phonemes",
        "codec": "bundled",
        "n_codes": codec.n_codes,
        "default_theta": default_theta,
        "licence": LICENCE,
        "about": "a small English voice model made by this repository; see CARD.md",
        "languages": "en",
    }
    (out / "pcg.json").write_text(json.dumps(card, indent=1))


def input_table(folder: Path) -> torch.Tensor:
    """float32 input embeddings of the speech codes, as the engine reads them."""
    from pcg.speech_lm import load

    return load(folder / "target", "cpu", "float32", True).embeddings


def make_groups(table: torch.Tensor, codec: BundledCodec, out: Path) -> None:
    """Stores embedding groups and Mel groups over the codes and the end token."""
    from pcg.catalog import lowest_theta

    vocabulary = len(table) + 1
    embedding = NestedGroups.from_table(table, lowest_theta(table), vocabulary)
    embedding.save(out)
    sounds = torch.from_numpy(mel_table(codec))
    mel = NestedGroups.from_table(sounds, lowest_theta(sounds), vocabulary, kind="mel")
    mel.save(out)
