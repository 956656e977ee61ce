"""A listening session as the server sees it: join, next question, clip, vote, reveal."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pcg.errors import PcgError
from pcg.listening import loudness as level
from pcg.listening.answers import check_answer
from pcg.listening.plan import Trial, plan
from pcg.listening.store import Refused, Store, Unknown
from pcg.listening.study import Study, load_study, save_study, study_from_json

MAX_STUDIES = 1000


class Desk:
    """Runs the tests of one store; nothing a listener gets names a system before the reveal."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.time) -> None:
        self.store = Store(root, clock)
        self._study = lru_cache(maxsize=64)(self._load)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    # tests

    def add(self, folder: Path) -> tuple[Study, str]:
        """Take over the test in `folder` (its clips are copied) and return it with the owner's key.

        The key itself is not kept; it is "" for a test that was here already.
        """
        study = load_study(folder)
        if len(self.store.study_ids()) >= MAX_STUDIES:
            raise PcgError("This server holds too many tests: `listening remove` old ones first.")
        key = secrets.token_urlsafe(12)
        home = self.folder(study.id)
        for name in {clip.file for item in study.items for clip in item.clips.values()}:
            if not (folder / "clips" / name).is_file():
                raise PcgError(f"The clip {name} of this test is missing.")
        owner = hashlib.sha256(key.encode()).hexdigest()
        new = self.store.add_study(study.id, study.to_json(), owner)
        if home.resolve() != folder.resolve():
            shutil.copytree(folder / "clips", home / "clips", dirs_exist_ok=True)
            save_study(study, home)
        return study, key if new else ""

    def remove(self, study_id: str) -> None:
        """Delete a test with its clips and votes."""
        self.store.study_row(study_id)
        self.store.remove_study(study_id)
        shutil.rmtree(self.folder(study_id), ignore_errors=True)
        self._study.cache_clear()

    def folder(self, study_id: str) -> Path:
        """Where a test's files lie."""
        return self.store.studies_folder / study_id

    def study(self, study_id: str) -> Study:
        """The test of that id."""
        return self._study(study_id)

    def _load(self, study_id: str) -> Study:
        return study_from_json(json.loads(self.store.study_row(study_id)["definition"]))

    def is_owner(self, study_id: str, key: str) -> bool:
        """Whether `key` is the one handed out when the test was added."""
        digest = hashlib.sha256(key.strip().encode()).hexdigest()
        return hmac.compare_digest(digest, self.store.study_row(study_id)["owner"])

    def public(self, study_id: str) -> dict[str, Any]:
        """What anyone may know of a test: never its systems or items."""
        study, row = self.study(study_id), self.store.study_row(study_id)
        trials = plan(study, 0)
        return {
            "id": study.id,
            "title": study.title,
            "kind": study.kind,
            "question": study.question,
            "open": bool(row["open"]),
            "consent": study.consent,
            "trials": sum(not trial.practice for trial in trials),
            "practice": sum(trial.practice for trial in trials),
            "allow_tie": study.allow_tie,
            "reveal": study.reveal,
            "minutes": max(
                1,
                round(
                    sum(self._required(study, trial)[0] * len(trial.slots) + 4 for trial in trials)
                    / 60
                ),
            ),
        }

    # a session

    def join(self, study_id: str, listener: str, consent: bool) -> dict[str, Any]:
        """Let a listener in, once; the id is random and chosen by the page."""
        if not consent:
            raise Refused("Agree to the consent line to take part.")
        if not self.store.study_row(study_id)["open"]:
            raise Refused("This test is closed.")
        self.store.join(study_id, listener)
        return self.state(study_id, listener)

    def check(
        self, study_id: str, listener: str, device: str, correct: int, of: int
    ) -> dict[str, Any]:
        """Keep the outcome of the headphone check."""
        self.store.listener(study_id, listener)
        self.store.record_check(study_id, listener, device, correct, of)
        return {"recorded": True}

    def _trials(self, study_id: str, listener: str) -> tuple[Trial, ...]:
        return plan(self.study(study_id), int(self.store.listener(study_id, listener)["number"]))

    @staticmethod
    def _required(study: Study, trial: Trial) -> tuple[float, float]:
        """(length every clip of the trial is padded to, seconds of each that must be heard)."""
        clips = study.item(trial.item).clips
        length = max(clips[slot.system].seconds for slot in trial.slots)
        return length, study.heard_fraction * length

    def state(self, study_id: str, listener: str) -> dict[str, Any]:
        """The next question, or the end of the test."""
        study, trials = self.study(study_id), self._trials(study_id, listener)
        checked = self.store.listener(study_id, listener)["device"] is not None
        voted = self.store.voted(study_id, listener)
        waiting = [trial for trial in trials if trial.index not in voted]
        if not waiting:
            return {
                "state": "finished",
                "checked": checked,
                "total": len(trials),
                "reveal": self._reveal_all(study, trials, voted),
            }
        trial = waiting[0]
        length, required = self._required(study, trial)
        slots = {slot.label: (slot.system, required) for slot in trial.slots}
        tokens = self.store.serve(study_id, listener, trial.index, trial.item, slots)
        return {
            "state": "question",
            "checked": checked,
            "trial": trial.index,
            "total": len(trials),
            "done": len(voted),
            "practice": trial.practice,
            "kind": study.kind,
            "question": study.question,
            "allow_tie": study.allow_tie,
            "text": study.item(trial.item).text if study.show_text else "",
            "slots": [
                {
                    "label": slot.label,
                    "clip": tokens[slot.label],
                    "seconds": round(length, 3),
                    "required": round(required, 3),
                }
                for slot in trial.slots
            ],
        }

    def clip(self, token: str) -> bytes:
        """The WAV behind a token, disguised."""
        row = self.store.fetch(token)
        study = self.study(row["study"])
        clip = study.item(row["item"]).clips[row["system"]]
        key = int.from_bytes(hashlib.sha256(token.encode()).digest()[:8], "big")
        data = (self.folder(study.id) / "clips" / clip.file).read_bytes()
        return level.disguise(data, float(row["seconds"]) / study.heard_fraction, key)

    def vote(
        self,
        study_id: str,
        listener: str,
        trial: int,
        answer: Mapping[str, Any],
        heard: Mapping[str, float],
    ) -> dict[str, Any]:
        """Record a vote and return the next state, with the names of this trial when the test
        reveals them each time.
        """
        study, trials = self.study(study_id), self._trials(study_id, listener)
        if not self.store.study_row(study_id)["open"]:
            raise Refused("This test is closed.")
        if not 0 <= trial < len(trials):
            raise Unknown("There is no such question.")
        asked = trials[trial]
        checked = check_answer(study, asked.slots, answer)
        new = self.store.vote(study_id, listener, trial, asked.practice, checked, heard)
        names = (
            {slot.label: slot.system for slot in asked.slots} if study.reveal == "each" else None
        )
        return {
            "recorded": True,
            "new": new,
            "names": names,
            "next": self.state(study_id, listener),
        }

    @staticmethod
    def _reveal_all(
        study: Study, trials: tuple[Trial, ...], voted: Mapping[int, Mapping[str, Any]]
    ) -> list[dict[str, Any]] | None:
        if study.reveal == "never":
            return None
        return [
            {
                "trial": trial.index,
                "practice": trial.practice,
                "text": study.item(trial.item).text,
                "answer": voted[trial.index],
                "names": {slot.label: slot.system for slot in trial.slots},
            }
            for trial in trials
        ]
