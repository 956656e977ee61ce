"""An optional copy of the votes in a dataset repository on the hub, for Spaces whose disk does not
last.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol

from pcg.errors import PcgError
from pcg.listening.desk import Desk
from pcg.listening.export import flat_rows, to_csv, to_json


class Hub(Protocol):
    """The part of `huggingface_hub.HfApi` that is used."""

    def create_repo(self, repo_id: str, **kw: Any) -> Any: ...

    def create_commit(self, repo_id: str, **kw: Any) -> Any: ...


class Backup:
    """Pushes each test's votes as CSV and JSON when they have changed since the last push.

    `repo_id`: "owner/name" of a dataset; made private when it does not exist. The token comes from
    HF_TOKEN.
    """

    def __init__(
        self, desk: Desk, repo_id: str, api: Hub | None = None, every: float = 300.0
    ) -> None:
        self.desk, self.repo_id, self.every = desk, repo_id, every
        self._api = api
        self._pushed: dict[str, int] = {}
        self._stop = threading.Event()
        self.last_error: str | None = None

    def push(self) -> list[str]:
        """Push what is new and return the ids of the tests that were pushed; trouble raises
        `PcgError`.
        """
        counts = {
            study_id: self.desk.store.vote_count(study_id)
            for study_id in self.desk.store.study_ids()
        }
        fresh = [
            study_id
            for study_id, count in counts.items()
            if count and self._pushed.get(study_id) != count
        ]
        if not fresh:
            return []
        from huggingface_hub import CommitOperationAdd, HfApi

        operations = []
        for study_id in fresh:
            study = self.desk.study(study_id)
            rows = flat_rows(study, self.desk.store, practice=True)
            for suffix, text in (("csv", to_csv(study, rows)), ("json", to_json(study, rows))):
                operations.append(
                    CommitOperationAdd(f"listening/{study_id}.{suffix}", text.encode())
                )
        try:
            api: Any = self._api or HfApi()
            api.create_repo(self.repo_id, repo_type="dataset", private=True, exist_ok=True)
            message = f"Add votes of {len(fresh)} listening test(s)"
            api.create_commit(
                self.repo_id, repo_type="dataset", operations=operations, commit_message=message
            )
        except Exception as error:
            raise PcgError(
                f"The votes could not be copied to {self.repo_id} ({error}): check HF_TOKEN; "
                "they are safe on disk."
            ) from error
        self._pushed.update({study_id: counts[study_id] for study_id in fresh})
        return fresh

    def start(self) -> threading.Thread:
        """Push in the background until `stop`; trouble is kept in `last_error` and tried again."""
        thread = threading.Thread(target=self._run, name="listening-backup", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            try:
                self.push()
                self.last_error = None
            except PcgError as error:
                self.last_error = str(error)

    def stop(self) -> None:
        """End the background thread."""
        self._stop.set()


def from_environment(desk: Desk) -> Backup | None:
    """A running backup when PCG_LISTENING_DATASET names a dataset, else None."""
    repo_id = os.environ.get("PCG_LISTENING_DATASET")
    if not repo_id:
        return None
    backup = Backup(desk, repo_id)
    backup.start()
    return backup
