"""What a listening test is: systems, items, clips and rules, kept in one JSON file beside the
clips.
"""

from __future__ import annotations

import itertools
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pcg.errors import PcgError

VERSION = 1
KINDS = ("ab", "abx", "mos", "mushra")
REVEALS = ("each", "end", "never")
MAX_ITEMS, MAX_SYSTEMS, MAX_REPEATS, MAX_CLIP_SECONDS = 500, 12, 50, 60.0
QUESTIONS = {
    "ab": "Which of the two sounds more natural?",
    "abx": "X is a copy of A or of B. Which one?",
    "mos": "How natural does this sound?",
    "mushra": "How close is each clip to the reference?",
}
CONSENT = (
    "I agree that my answers are stored under a random number, used to compare speech systems, "
    "and published without anything that identifies me."
)
_ID = re.compile(r"[a-z0-9]{4,32}")


@dataclass(frozen=True)
class Clip:
    """One recording: `file` lies in the test's `clips` folder and is named by its own hash, never
    by the system.
    """

    file: str
    seconds: float


@dataclass(frozen=True)
class Item:
    """One sentence, spoken by every system; `practice` items come first and never count."""

    name: str
    clips: Mapping[str, Clip]
    text: str = ""
    practice: bool = False


@dataclass(frozen=True)
class Study:
    """One listening test.

    `passes`: how many of an item's conditions (systems, or pairs of systems) one listener meets;
    None means all, 1 is the classical Latin square. `heard_fraction` in (0, 1]: the share of each
    clip that must have been played before a vote. `repeats`: how often a listener meets each
    question (for ABX with few items). `reveal`: names are shown after "each" vote, at
    the "end", or "never". `loudness`: LUFS that every clip was set to. Raises `PcgError` when the
    parts do not fit together.
    """

    kind: str
    title: str
    systems: tuple[str, ...]
    items: tuple[Item, ...]
    id: str = field(default_factory=lambda: secrets.token_hex(5))
    question: str = ""
    seed: int = 0
    passes: int | None = None
    repeats: int = 1
    pairs: tuple[tuple[str, str], ...] = ()
    reference: str | None = None
    anchor: str | None = None
    allow_tie: bool = False
    reveal: str = "end"
    heard_fraction: float = 0.9
    show_text: bool = True
    consent: str = CONSENT
    loudness: float | None = None
    sample_rate: int = 16000

    def __post_init__(self) -> None:
        if not self.question:
            object.__setattr__(self, "question", QUESTIONS.get(self.kind, ""))
        if not self.pairs and self.kind in ("ab", "abx"):
            object.__setattr__(self, "pairs", tuple(itertools.combinations(self.systems, 2)))
        _check_rules(self)
        _check_items(self)

    @property
    def conditions(self) -> tuple[tuple[str, ...], ...]:
        """What one trial of an item compares: one system (MOS), a pair (AB, ABX) or all systems
        (MUSHRA).
        """
        if self.kind == "mos":
            return tuple((system,) for system in self.systems)
        return self.pairs if self.kind in ("ab", "abx") else (self.systems,)

    @property
    def scored(self) -> tuple[Item, ...]:
        """The items that count."""
        return tuple(item for item in self.items if not item.practice)

    def item(self, name: str) -> Item:
        """The item of that name."""
        for item in self.items:
            if item.name == name:
                return item
        raise PcgError(f"This test has no item named {name!r}.")

    def to_json(self) -> dict[str, Any]:
        """The test as plain JSON values."""
        return {"version": VERSION, **asdict(self)}


def _check_rules(study: Study) -> None:
    if study.kind not in KINDS:
        raise PcgError(
            f"A listening test is one of {', '.join(KINDS)}; it cannot be {study.kind!r}."
        )
    if study.reveal not in REVEALS:
        raise PcgError(f"`reveal` is one of {', '.join(REVEALS)}.")
    if not _ID.fullmatch(study.id):
        raise PcgError("The id of a test is 4 to 32 small letters and digits.")
    if not 0 < study.heard_fraction <= 1:
        raise PcgError("`heard_fraction` must lie above 0 and not above 1.")
    if len(set(study.systems)) != len(study.systems) or not all(study.systems):
        raise PcgError("Every system needs a name of its own.")
    needed = 1 if study.kind == "mos" else 2
    if not needed <= len(study.systems) <= MAX_SYSTEMS:
        raise PcgError(
            f"A test of kind {study.kind} takes {needed} to {MAX_SYSTEMS} systems, "
            f"not {len(study.systems)}."
        )
    if study.kind == "mushra" and study.reference not in study.systems:
        raise PcgError("Name the reference system: a MUSHRA test hides it among the others.")
    if any(
        left == right or left not in study.systems or right not in study.systems
        for left, right in study.pairs
    ):
        raise PcgError("Every pair must name two different systems of the test.")
    if not 1 <= study.repeats <= MAX_REPEATS:
        raise PcgError(f"`repeats` must lie between 1 and {MAX_REPEATS}.")
    if study.passes is not None and not 1 <= study.passes <= len(study.conditions):
        raise PcgError(f"`passes` must lie between 1 and {len(study.conditions)} for this test.")


def _check_items(study: Study) -> None:
    if not study.scored:
        raise PcgError("A test needs at least one item that is not practice.")
    if len(study.items) > MAX_ITEMS:
        raise PcgError(f"A test takes at most {MAX_ITEMS} items.")
    if len({item.name for item in study.items}) != len(study.items):
        raise PcgError("Every item needs a name of its own.")
    for item in study.items:
        missing = [system for system in study.systems if system not in item.clips]
        if missing:
            raise PcgError(f"Item {item.name!r} has no clip for {', '.join(missing)}.")
        for clip in item.clips.values():
            if not re.fullmatch(r"[0-9a-f]{16,64}\.wav", clip.file):
                raise PcgError(
                    "A clip file is named by its hash and ends in .wav: "
                    "build the test again with `listening create`."
                )
            if not 0 < clip.seconds <= MAX_CLIP_SECONDS:
                raise PcgError(f"Clips must be shorter than {MAX_CLIP_SECONDS:.0f} seconds.")


def save_study(study: Study, folder: Path) -> Path:
    """Write `folder/study.json` and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.json"
    path.write_text(json.dumps(study.to_json(), indent=1, ensure_ascii=False), encoding="utf-8")
    return path


def study_from_json(data: Mapping[str, Any]) -> Study:
    """Read a test from plain JSON values; unknown or missing parts raise `PcgError`."""
    values = dict(data)
    version = values.pop("version", None)
    if version != VERSION:
        raise PcgError(
            f"This listening test is of version {version}; this program reads version {VERSION}."
        )
    try:
        items = tuple(_item_from_json(item) for item in values.pop("items"))
        systems = tuple(str(system) for system in values.pop("systems"))
        pairs = tuple((str(left), str(right)) for left, right in values.pop("pairs", ()))
        return Study(items=items, systems=systems, pairs=pairs, **values)
    except PcgError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PcgError(f"This is not a listening test this program can read ({error}).") from error


def _item_from_json(data: Mapping[str, Any]) -> Item:
    values = dict(data)
    clips = {str(name): Clip(**clip) for name, clip in values.pop("clips").items()}
    return Item(clips=clips, **values)


def load_study(path: Path) -> Study:
    """Open a test from its folder or its `study.json`."""
    path = path / "study.json" if path.is_dir() else path
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PcgError(f"There is no listening test at {path}.") from None
    except ValueError as error:
        raise PcgError(f"{path} is not JSON ({error}).") from error
    if not isinstance(data, dict):
        raise PcgError(f"{path} does not hold a listening test.")
    return study_from_json(data)
