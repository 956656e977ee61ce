"""The votes: one SQLite file in write-ahead mode, one transaction a vote, safe against repeats,
restarts and crowds.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pcg.errors import PcgError
from pcg.listening.schema import SCHEMA

_OF_TRIAL = "WHERE study = ? AND listener = ? AND trial = ?"


class Refused(PcgError):
    """Well formed but not allowed now: clips unheard, vote already given, test closed."""


class Unknown(PcgError):
    """No such test, listener or clip."""


class Store:
    """All tests and votes below one folder: `votes.sqlite3` and `studies/ID/{study.json,clips/}`.

    Threads share one connection behind a lock; several processes may share the file. A vote that
    was acknowledged is on disk.
    """

    def __init__(self, root: Path, clock: Callable[[], float] = time.time) -> None:
        self.root, self.clock = root, clock
        self.studies_folder = root / "studies"
        self.studies_folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(
            root / "votes.sqlite3", timeout=20, isolation_level=None, check_same_thread=False
        )
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.executescript(SCHEMA)

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """The rows of a reading query."""
        with self._lock:
            return self._db.execute(query, values).fetchall()

    def _one(self, query: str, values: Sequence[Any], otherwise: str) -> sqlite3.Row:
        found = self.rows(query, values)
        if not found:
            raise Unknown(otherwise)
        return found[0]

    # tests

    def add_study(self, study_id: str, definition: Mapping[str, Any], owner: str) -> bool:
        """Record a test; True when it is new. Adding the same definition again changes nothing,
        another one under the same id is refused.
        """
        text = json.dumps(definition, sort_keys=True)
        with self._writing() as db:
            known = db.execute(
                "SELECT definition FROM studies WHERE id = ?", (study_id,)
            ).fetchone()
            if known is None:
                values = (study_id, self.clock(), text, owner)
                db.execute(
                    "INSERT INTO studies (id, created, definition, owner) VALUES (?, ?, ?, ?)",
                    values,
                )
            elif known["definition"] != text:
                raise Refused(
                    f"A different test already has the id {study_id}: give this one another id."
                )
            return known is None

    def remove_study(self, study_id: str) -> None:
        """Forget a test with its listeners and votes."""
        with self._writing() as db:
            for table in ("votes", "servings", "listeners"):
                db.execute(f"DELETE FROM {table} WHERE study = ?", (study_id,))
            db.execute("DELETE FROM studies WHERE id = ?", (study_id,))

    def study_row(self, study_id: str) -> sqlite3.Row:
        """The stored row of a test."""
        return self._one(
            "SELECT * FROM studies WHERE id = ?", (study_id,), "There is no such listening test."
        )

    def study_ids(self) -> list[str]:
        """The ids of all tests, newest first."""
        return [row["id"] for row in self.rows("SELECT id FROM studies ORDER BY created DESC, id")]

    def set_open(self, study_id: str, is_open: bool) -> None:
        """Open a test to listeners or close it."""
        with self._writing() as db:
            db.execute("UPDATE studies SET open = ? WHERE id = ?", (int(is_open), study_id))

    # listeners

    def join(self, study_id: str, listener: str) -> int:
        """The number (0, 1, ...) of a listener who consented; joining again returns the same
        number.
        """
        with self._writing() as db:
            key = (study_id, listener)
            known = db.execute(
                "SELECT number FROM listeners WHERE study = ? AND listener = ?", key
            ).fetchone()
            if known is not None:
                return int(known["number"])
            query = "SELECT COALESCE(MAX(number) + 1, 0) AS number FROM listeners WHERE study = ?"
            number = int(db.execute(query, (study_id,)).fetchone()["number"])
            query = "INSERT INTO listeners (study, listener, number, consented) VALUES (?, ?, ?, ?)"
            db.execute(query, (*key, number, self.clock()))
            return number

    def listener(self, study_id: str, listener: str) -> sqlite3.Row:
        """The stored row of a listener."""
        query = "SELECT * FROM listeners WHERE study = ? AND listener = ?"
        return self._one(query, (study_id, listener), "Join this test first.")

    def record_check(
        self, study_id: str, listener: str, device: str, correct: int, of: int
    ) -> None:
        """Keep the outcome of the headphone check."""
        with self._writing() as db:
            query = """UPDATE listeners SET device = ?, check_correct = ?, check_of = ?
                WHERE study = ? AND listener = ?"""
            db.execute(query, (device, correct, of, study_id, listener))

    # clips

    def serve(
        self,
        study_id: str,
        listener: str,
        trial: int,
        item: str,
        slots: Mapping[str, tuple[str, float]],
    ) -> dict[str, str]:
        """Opaque tokens of a trial's clips, by letter; the same trial always has the same tokens.

        `slots`: letter -> (system, seconds that must be heard).
        """
        with self._writing() as db:
            for slot, (system, seconds) in slots.items():
                values = (
                    secrets.token_urlsafe(18),
                    study_id,
                    listener,
                    trial,
                    slot,
                    item,
                    system,
                    seconds,
                )
                query = """INSERT OR IGNORE INTO servings
                    (token, study, listener, trial, slot, item, system, seconds)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
                db.execute(query, values)
            query = f"SELECT slot, token FROM servings {_OF_TRIAL}"
            return {
                row["slot"]: row["token"] for row in db.execute(query, (study_id, listener, trial))
            }

    def fetch(self, token: str) -> sqlite3.Row:
        """The serving behind a token, marked as fetched now if it was not before."""
        with self._writing() as db:
            db.execute(
                "UPDATE servings SET fetched = COALESCE(fetched, ?) WHERE token = ?",
                (self.clock(), token),
            )
            row: sqlite3.Row | None = db.execute(
                "SELECT * FROM servings WHERE token = ?", (token,)
            ).fetchone()
        if row is None:
            raise Unknown("There is no such clip.")
        return row

    # votes

    def voted(self, study_id: str, listener: str) -> dict[int, dict[str, Any]]:
        """The answers a listener has given, by trial."""
        query = "SELECT trial, answer FROM votes WHERE study = ? AND listener = ? ORDER BY trial"
        return {
            row["trial"]: json.loads(row["answer"])
            for row in self.rows(query, (study_id, listener))
        }

    def vote(
        self,
        study_id: str,
        listener: str,
        trial: int,
        practice: bool,
        answer: Mapping[str, Any],
        heard: Mapping[str, float],
    ) -> bool:
        """Record one vote in one transaction. True when it is new, False when the very same vote
        was already there.

        `heard`: letter -> seconds of the clip that were played. Refused when a clip was never
        fetched, was not played long enough, or when less time has passed since the first fetch than
        the playing takes, whatever the page claims; and when the trial already has another answer.
        A client that lies about playing therefore gains no time; that it played is its word.
        """
        text = json.dumps(answer, sort_keys=True)
        key = (study_id, listener, trial)
        with self._writing() as db:
            known = db.execute(f"SELECT answer FROM votes {_OF_TRIAL}", key).fetchone()
            if known is not None:
                if known["answer"] == text:
                    return False
                raise Refused("This question was already answered; the first answer counts.")
            query = f"SELECT * FROM servings {_OF_TRIAL} ORDER BY slot"
            servings = db.execute(query, key).fetchall()
            now = self.clock()
            seconds = check_heard(servings, heard, now)
            values = (*key, servings[0]["item"], int(practice), text, now, seconds)
            db.execute("INSERT INTO votes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
            return True

    def vote_count(self, study_id: str) -> int:
        """How many votes a test has, practice included."""
        query = "SELECT COUNT(*) AS n FROM votes WHERE study = ?"
        return int(self.rows(query, (study_id,))[0]["n"])

    def checks(self, study_id: str) -> dict[str, tuple[str | None, int | None, int | None]]:
        """The headphone check of every listener: (device, correct, of)."""
        query = "SELECT listener, device, check_correct, check_of FROM listeners WHERE study = ?"
        rows = self.rows(query, (study_id,))
        return {
            row["listener"]: (row["device"], row["check_correct"], row["check_of"]) for row in rows
        }

    def votes(self, study_id: str) -> list[dict[str, Any]]:
        """Every vote of a test with the systems behind its letters, oldest first."""
        query = """SELECT v.*, l.number, s.slot, s.system, s.seconds AS needed FROM votes v
            JOIN listeners l ON l.study = v.study AND l.listener = v.listener
            JOIN servings s ON s.study = v.study AND s.listener = v.listener AND s.trial = v.trial
            WHERE v.study = ? ORDER BY v.voted, v.listener, v.trial, s.slot"""
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for row in self.rows(query, (study_id,)):
            vote = found.setdefault(
                (row["listener"], row["trial"]),
                {
                    "listener": row["listener"],
                    "number": row["number"],
                    "trial": row["trial"],
                    "item": row["item"],
                    "practice": bool(row["practice"]),
                    "answer": json.loads(row["answer"]),
                    "voted": row["voted"],
                    "seconds": row["seconds"],
                    "needed": 0.0,
                    "slots": {},
                },
            )
            vote["slots"][row["slot"]] = row["system"]
            vote["needed"] += row["needed"]
        return list(found.values())


def check_heard(
    servings: Sequence[Mapping[str, Any] | sqlite3.Row], heard: Mapping[str, float], now: float
) -> float:
    """Seconds from the first fetch to `now`; raises `Refused` unless every clip was fetched and
    there was time to play it.
    """
    if not servings:
        raise Refused("Listen to the clips of this question first.")
    for row in servings:
        if row["fetched"] is None or not heard.get(row["slot"], 0.0) >= row["seconds"] - 0.02:
            raise Refused(f"Listen to clip {row['slot']} to its end before answering.")
    passed = float(now - min(row["fetched"] for row in servings))
    if passed < sum(row["seconds"] for row in servings) - 0.05:
        raise Refused(
            "That was faster than the clips last: listen to each of them before answering."
        )
    return passed


def default_root() -> Path:
    """Where tests are kept: PCG_LISTENING_DIR, else a Space's persistent /data, else the user's
    data folder.
    """
    named = os.environ.get("PCG_LISTENING_DIR")
    if named:
        return Path(named)
    persistent = Path("/data")
    if os.environ.get("SPACE_ID") and persistent.is_dir() and os.access(persistent, os.W_OK):
        return persistent / "listening"
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "pcg" / "listening"
