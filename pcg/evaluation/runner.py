"""Run an experiment: plan, spread utterances over replicas, append rows as they come, resume.

A run lives in one folder: ``plan.json`` (options, arms, utterances, origin), ``rows.jsonl`` and,
when it is complete, ``rows.parquet``. The same command again does only what is missing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from pcg.errors import PcgError
from pcg.evaluation import manifest
from pcg.evaluation.arms import Arm, Options, fingerprint
from pcg.evaluation.experiments import EXPERIMENTS, Planner
from pcg.evaluation.manifest import Utterance
from pcg.evaluation.replica import Replica, row_key
from pcg.evaluation.rows import Row, RowStore, latest, read_rows, write_parquet

Report = Callable[[str], None]
Factory = Callable[[Options, bool], Replica]
"""Makes a replica from the options; the flag says that it has its device to itself."""
FORMAT = 1


@dataclass(frozen=True)
class Task:
    """One utterance and its missing arms, in order: a unit of work of one replica."""

    utterance: Utterance
    arms: tuple[Arm, ...]


class Backend(Protocol):
    """Spreads tasks over replicas; yields rows as they end and never loses a task."""

    def __call__(self, tasks: Sequence[Task]) -> Iterator[Row]: ...


@dataclass(frozen=True)
class Plan:
    """What a run folder holds: everything needed to resume and to report."""

    experiment: str
    options: Options
    arms: tuple[Arm, ...]
    utterances: tuple[Utterance, ...]
    origin: Row
    notes: Row

    @property
    def id(self) -> str:
        """Changes with anything that changes results."""
        return fingerprint([self.experiment, self.options.to_dict()])

    def to_dict(self) -> Row:
        """Plain data for JSON."""
        return {
            "format": FORMAT,
            "id": self.id,
            "experiment": self.experiment,
            "options": self.options.to_dict(),
            "origin": self.origin,
            "notes": self.notes,
            "arms": [arm.to_dict() for arm in self.arms],
            "utterances": [asdict(utterance) for utterance in self.utterances],
        }

    def tasks(self, done: set[str]) -> list[Task]:
        """What is still to do, by utterance."""
        tasks = []
        for index, utterance in enumerate(self.utterances):
            arms = tuple(
                arm
                for arm in self.arms
                if row_key(utterance, arm) not in done
                and (arm.first is None or index < arm.first)
                and belongs(utterance, arm)
            )
            if arms:
                tasks.append(Task(utterance, arms))
        return tasks


def belongs(utterance: Utterance, arm: Arm) -> bool:
    """Whether an arm runs on an utterance: the corpus, or the source that ``only`` names."""
    if arm.only:
        return utterance.id.startswith(arm.only) and bool(utterance.audio)
    return bool(utterance.voice or utterance.prompt)


def read_plan(folder: Path) -> Plan:
    """The stored plan of a run; raises PcgError when there is none or it is of another format."""
    try:
        data = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PcgError(
            f"{folder} holds no evaluation: run `python -m pcg evaluate` first."
        ) from error
    if data.get("format") != FORMAT:
        raise PcgError(f"{folder} was written by another version of this program.")
    options = data["options"]
    for name in ("rules", "drafts"):
        options[name] = tuple(options[name])
    return Plan(
        data["experiment"],
        Options(**options),
        tuple(Arm.from_dict(arm) for arm in data["arms"]),
        tuple(Utterance(**utterance) for utterance in data["utterances"]),
        data["origin"],
        data["notes"],
    )


def utterances_of(options: Options, voices: list[str]) -> list[Utterance]:
    """The corpus an option names."""
    kind, _, path = options.source.partition(":")
    if kind == "bundled":
        return manifest.bundled(options.n, voices)
    if kind == "libritts":
        return manifest.libritts(Path(path), options.n, options.seed)
    if kind == "csv":
        return manifest.from_csv(Path(path), options.n)
    raise PcgError(f"Unknown corpus {options.source!r}: use bundled, libritts:FOLDER or csv:FILE.")


def make_plan(experiment: str, options: Options, folder: Path, replica: Replica) -> Plan:
    """Read the folder's plan, or make and store one.

    Raises PcgError when the folder holds a run with other options.
    """
    if (folder / "plan.json").exists():
        plan = read_plan(folder)
        if plan.id != fingerprint([experiment, options.to_dict()]):
            raise PcgError(
                f"{folder} holds a run with other options: give another --out, or delete it."
            )
        return plan
    utterances = list(utterances_of(options, sorted(replica.voices)))
    notes: Row = {}
    planner = Planner(replica, options, utterances, notes)
    arms = tuple(EXPERIMENTS[experiment](planner))
    plan = Plan(experiment, options, arms, tuple(utterances), replica.facts, notes)
    write_json(folder / "plan.json", plan.to_dict())
    return plan


def write_json(path: Path, data: Any) -> None:
    """Write JSON whole or not at all; raises PcgError when the disk refuses."""
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise PcgError(f"Cannot write {path}: {error.strerror}.") from error


def in_process(replica: Replica) -> Backend:
    """All tasks here, one after another."""

    def run(tasks: Sequence[Task]) -> Iterator[Row]:
        for task in tasks:
            for arm in task.arms:
                yield replica.row(task.utterance, arm)

    return run


def backend_for(
    options: Options, replica: Replica, workers: int, ray: str | None, factory: Factory
) -> Backend:
    """The backend asked for: this process, worker processes, or Ray."""
    if ray is not None:
        from pcg.evaluation.ray_backend import ray_backend

        return ray_backend(options, workers, ray, factory)
    if workers > 1:
        from pcg.evaluation.processes import process_backend

        return process_backend(options, workers, factory)
    return in_process(replica)


def run(
    experiment: str,
    options: Options,
    folder: Path,
    *,
    workers: int = 1,
    ray: str | None = None,
    say: Report = print,
    factory: Factory = Replica,
) -> list[Row]:
    """Run or resume one experiment in ``folder`` and return its rows, one a key.

    Rows are on disk before the next utterance begins, so a kill loses at most the one in work.
    """
    import torch

    torch.set_num_threads(1)
    replica = factory(options, True)
    plan = make_plan(experiment, options, folder, replica)
    with RowStore(folder / "rows.jsonl") as store:
        tasks = plan.tasks(store.done)
        total = sum(len(task.arms) for task in tasks)
        if store.done:
            say(f"{experiment}: {len(store.done)} rows are done, {total} to go")
        start = time.monotonic()
        backend = backend_for(options, replica, workers, ray, factory)
        for count, row in enumerate(backend(tasks), start=1):
            store.append(row)
            say(_progress(experiment, row, count, total, time.monotonic() - start))
    rows = latest(read_rows(folder / "rows.jsonl"))
    if write_parquet(rows, folder / "rows.parquet") is None:
        say("pyarrow is not installed: rows stay in rows.jsonl (pip install pyarrow for Parquet)")
    return rows


def _progress(experiment: str, row: Row, count: int, total: int, seconds: float) -> str:
    left = seconds / count * (total - count)
    text = f"{experiment} {count}/{total} {row['key']}: "
    if row["status"] != "ok":
        return f"{text}FAILED {row['error']} ({left:.0f} s left)"
    wer = row.get("wer", {})
    heard = f"WER {wer['errors']}/{wer['words']}" if "words" in wer else "ok"
    rate = row.get("decode", {}).get("acceptance_rate")
    accepted = "" if rate is None else f", acceptance {rate:.2f}"
    return f"{text}{heard}{accepted} ({left:.0f} s left)"
