"""Voice models by name: where their weights lie, their licence, their draft and their groups."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pcg.codec.codec import Codec
from pcg.errors import PcgError
from pcg.groups import NestedGroups, table_hash
from pcg.prompts import LlasaPrompts, PromptBuilder
from pcg.settings import BUNDLED_DIR, Settings, load_settings
from pcg.speech_lm import SpeechLM
from pcg.speech_lm import load as load_lm
from pcg.voice_model import VoiceModel

LLASA_LICENCE = "CC-BY-NC-4.0 (not for commercial use)"
SMALL_TABLE = 8_192  # groups of more codes take minutes and are kept for the next start
LARGEST_MEAN = 300.0  # mean size of the largest groups that are kept


@dataclass(frozen=True)
class Entry:
    """One named voice model.

    Attributes:
        target: hub id or folder of the target.
        draft: "first 3", "spread 3", "0,4,9", a catalogue name, a hub id or a folder.
        codec: "xcodec2", or a kind a folder's ``pcg.json`` names.
        theta: default threshold of the groups (0.38 to 0.45 were best for LLaSA-8B).
    """

    name: str
    target: str
    draft: str
    codec: str
    licence: str
    theta: float
    about: str


CATALOG: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "bundled", str(BUNDLED_DIR), "", "bundled", "Apache-2.0", 0.4,
            "a small English voice model that ships with this program and needs no network",
        ),
        Entry(
            "llasa-1b", "HKUSTAudio/Llasa-1B", "first 3", "xcodec2", LLASA_LICENCE, 0.42,
            "LLaSA 1B, English and Chinese; gated, about 3 GB and 2.5 GB for its codec",
        ),
        Entry(
            "llasa-3b", "HKUSTAudio/Llasa-3B", "first 3", "xcodec2", LLASA_LICENCE, 0.42,
            "LLaSA 3B; gated, about 8 GB; its draft may be llasa-1b",
        ),
        Entry(
            "llasa-8b", "HKUSTAudio/Llasa-8B", "first 3", "xcodec2", LLASA_LICENCE, 0.42,
            "LLaSA 8B, the paper's target with a draft of three layers; gated, about 18 GB",
        ),
    )
}  # fmt: skip


def load(
    name_or_folder: str | Path, settings: Settings | None = None, draft: str | None = None
) -> VoiceModel:
    """Load a voice model with its draft, codec and groups.

    Args:
        name_or_folder: a name of :data:`CATALOG`, a folder like ``assets/bundled`` (with
            ``pcg.json``), a folder of a LLaSA model, or a hub id.
        settings: device, dtype and head; read from the environment when None.
        draft: overrides the model's own: see :class:`Entry`; "none" for no draft.

    Raises:
        PcgError: one sentence that says what is missing and what to do.
    """
    known = settings or load_settings()
    if known.threads:
        torch.set_num_threads(known.threads)
    wanted = draft if draft is not None else (known.draft or None)
    entry = CATALOG.get(str(name_or_folder))
    source = Path(entry.target if entry else name_or_folder).expanduser()
    if (source / "pcg.json").is_file():
        return _load_folder(entry.name if entry else source.name, source, known, wanted)
    if entry is not None and entry.name == "bundled":
        raise PcgError("The bundled voice is not in assets/bundled: restore that folder.")
    if entry is None and not source.is_dir() and "/" not in str(name_or_folder):
        raise PcgError(
            f"There is no voice model {str(name_or_folder)!r}: give a folder or one of "
            f"{', '.join(CATALOG)}."
        )
    plain = Entry(
        source.name, str(name_or_folder), "first 3", "xcodec2", "see its page", 0.42, "a folder"
    )
    return _load_llasa(entry or plain, known, wanted)


def _load_folder(name: str, folder: Path, known: Settings, draft: str | None) -> VoiceModel:
    """A folder with ``pcg.json``: target/, draft/, codec/, groups/ and voices/."""
    try:
        card = json.loads((folder / "pcg.json").read_text())
        theta = float(card["default_theta"])
    except (ValueError, KeyError, TypeError) as error:
        raise PcgError(f"{folder / 'pcg.json'} cannot be read: restore it.") from error
    if not (folder / "target" / "config.json").is_file():
        raise PcgError(f"The voice model {name} has no weights in its folder target: restore it.")
    target = _language_model(folder / "target", known)
    codec = _codec(str(card.get("codec", "bundled")), folder / "codec", card, known)
    has_own = (folder / "draft" / "config.json").is_file()
    choice = draft or (str(folder / "draft") if has_own else "first 1")
    prompts = _prompts(str(card.get("prompts", "llasa")), target, codec, folder)
    groups = _groups(target, folder / "groups")
    mel = _stored(folder / "groups", "mel", target, None)
    source = str(folder / "target")
    return _assemble(name, source, target, choice, codec, groups, mel, prompts, theta, card, known)


def _load_llasa(entry: Entry, known: Settings, draft: str | None) -> VoiceModel:
    target = _language_model(entry.target, known)
    local = Path(entry.target) / "codec"
    codec = _codec(entry.codec, local if local.is_dir() else None, {}, known)
    if codec.n_codes != target.n_codes:
        raise PcgError(
            f"{entry.name} speaks {target.n_codes} codes and its codec has {codec.n_codes}: give "
            "its folder a codec of its own in codec/."
        )
    card = {"licence": entry.licence, "about": entry.about, "codec": entry.codec}
    card["languages"] = "en zh"
    prompts = LlasaPrompts(target.tokenizer, codec.tokens_per_second)
    groups = _groups(target, Path(entry.target) / "groups")
    return _assemble(
        entry.name, entry.target, target, draft or entry.draft, codec, groups, None, prompts,
        entry.theta, card, known,
    )  # fmt: skip


def _assemble(
    name: str,
    source: str,
    target: SpeechLM,
    choice: str,
    codec: Codec,
    groups: NestedGroups,
    mel: NestedGroups | None,
    prompts: PromptBuilder,
    theta: float,
    card: dict[str, Any],
    known: Settings,
) -> VoiceModel:
    drafter = draft_for(target, choice, known)
    facts = {
        "dtype": target.dtype,
        "device": str(target.device),
        "target": target.name,
        "draft_model": drafter.name if drafter is not None else "none",
        "engine": "; ".join(target.notes),
    }
    english = str(card.get("languages", "en")) == "en"
    model = VoiceModel(
        name, target, drafter, codec, groups, mel, prompts, target.embeddings, theta,
        {**card, **facts}, english_only=english, sources={"target": source, "draft": choice},
    )  # fmt: skip
    model.measure()
    return model


def draft_for(target: SpeechLM, choice: str, known: Settings) -> SpeechLM | None:
    """The draft named by ``choice``; see :class:`Entry`.

    Raises:
        PcgError: when it cannot be loaded or its vocabulary is not the target's.
    """
    if choice in ("", "none"):
        return None
    layered = choice.startswith(("first ", "spread ")) or choice.replace(",", "").isdigit()
    if layered:
        return target.layer_subset(choice)
    source = CATALOG[choice].target if choice in CATALOG else choice
    if choice == "bundled":
        source = str(BUNDLED_DIR / "draft")
    draft = load_lm(source, str(target.device), target.dtype, known.speech_head)
    target.check_draft(draft)
    return draft


def _language_model(source: str | Path, known: Settings) -> SpeechLM:
    return load_lm(source, known.device, known.dtype, known.speech_head)


def _codec(kind: str, folder: Path | None, card: dict[str, Any], known: Settings) -> Codec:
    if kind == "bundled":
        from pcg.codec.bundled import BundledCodec

        return BundledCodec.load(folder or BUNDLED_DIR / "codec")
    if kind == "tones":
        from pcg.testing import ToneCodec

        return ToneCodec(int(card["n_codes"]))
    if kind == "xcodec2":
        from pcg.codec.xcodec2 import NATIVE, Xcodec2Codec
        from pcg.loading import pick_device

        device = str(pick_device(known.device))
        codec: Codec = Xcodec2Codec.load(folder or NATIVE, device)
        return codec
    raise PcgError(f"There is no codec {kind!r}: use bundled or xcodec2.")


def _prompts(kind: str, target: SpeechLM, codec: Codec, folder: Path) -> PromptBuilder:
    if kind == "llasa":
        return LlasaPrompts(target.tokenizer, codec.tokens_per_second)
    if kind == "timed-phonemes":
        from pcg.timed_prompts import TimedPhonemePrompts

        builder: PromptBuilder = TimedPhonemePrompts(codec.n_codes, folder)
        return builder
    raise PcgError(f"There is no prompt format {kind!r}: use llasa or timed-phonemes.")


def _groups(target: SpeechLM, folder: Path | None) -> NestedGroups:
    """Groups stored beside the weights or kept from an earlier run, else made now."""
    table = target.embeddings
    kept = _cache_folder() / _fingerprint(table)
    for place in (folder, kept):
        stored = _stored(place, "embedding", target, table)
        if stored is not None:
            return stored
    low = lowest_theta(table)
    made = NestedGroups.from_table(table, low, target.vocab_size)
    if len(table) > SMALL_TABLE:
        made.save(kept)
    return made


def _stored(
    folder: Path | None, kind: str, target: SpeechLM, table: Tensor | None
) -> NestedGroups | None:
    """Stored groups over the target's vocabulary; None when there are none for this table."""
    if folder is None or not (folder / f"{kind}.json").is_file():
        return None
    about = json.loads((folder / f"{kind}.json").read_text())
    if table is not None and about.get("table") != table_hash(table):
        return None  # the weights were trained or rounded anew
    found = NestedGroups.load(folder, kind)
    if found.n_codes != target.n_codes:
        return None
    return NestedGroups(
        found.first, found.second, found.cosines, theta_min=found.theta_min,
        n_codes=found.n_codes, vocab_size=target.vocab_size, table=found.table, kind=found.kind,
    )  # fmt: skip


def lowest_theta(table: Tensor) -> float:
    """The theta from which pairs are kept: groups of :data:`LARGEST_MEAN` codes, by a sample."""
    unit = torch.nn.functional.normalize(table[:: max(1, len(table) // 512)])
    cosines = unit @ torch.nn.functional.normalize(table).T
    share = min(0.25, LARGEST_MEAN / len(table))
    flat = cosines.flatten().sort(descending=True).values
    return math.floor(100 * float(flat[int(share * (len(flat) - 1))])) / 100


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "pcg" / "groups"


def _fingerprint(table: Tensor) -> str:
    return hashlib.sha256(table.contiguous().numpy().tobytes()).hexdigest()[:16]
