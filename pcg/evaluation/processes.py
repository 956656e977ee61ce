"""Plain worker processes: one replica each, tasks handed out one at a time.

A worker that dies (out of memory, killed) is replaced and its task tried once more; a task that
kills two workers becomes failed rows.
"""

from __future__ import annotations

import multiprocessing as mp
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from pcg.errors import PcgError
from pcg.evaluation.arms import Arm, Options, utterance_seed
from pcg.evaluation.replica import Replica, row_key
from pcg.evaluation.rows import Row
from pcg.evaluation.runner import Backend, Factory, Task

TRIES = 2


def lost_row(task: Task, arm: Arm, options: Options, why: str) -> Row:
    """The row of an arm whose worker died."""
    return {
        "key": row_key(task.utterance, arm),
        "utterance": task.utterance.id,
        "arm": arm.name,
        "seed": utterance_seed(options.seed, task.utterance.id),
        "voice": task.utterance.voice,
        "status": "failed",
        "error": why,
    }


def _serve(connection: Connection, options: Options, factory: Factory) -> None:
    """A worker: load once, then answer every task with its rows and None."""
    import torch

    torch.set_num_threads(1)
    try:
        replica = factory(options, False)
    except PcgError as error:
        connection.send(error)
        return
    connection.send("ready")
    while (task := connection.recv()) is not None:
        for arm in task.arms:
            connection.send(replica.row(task.utterance, arm))
        connection.send(None)


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    ready: bool = False
    task: Task | None = None
    finished: set[str] = field(default_factory=set)


def _start(options: Options, factory: Factory) -> _Worker:
    here, there = mp.Pipe()
    process = mp.get_context("spawn").Process(
        target=_serve, args=(there, options, factory), daemon=True
    )
    process.start()
    there.close()
    return _Worker(process, here)


class _Pool:
    """Hands out tasks and gathers rows."""

    def __init__(
        self, options: Options, tasks: Sequence[Task], workers: int, factory: Factory
    ) -> None:
        self.options = options
        self.factory = factory
        self.waiting = deque((task, 1) for task in tasks)
        self.tries: dict[str, int] = {}
        self.workers = [_start(options, factory) for _ in range(min(workers, max(1, len(tasks))))]

    def rows(self) -> Iterator[Row]:
        while self.waiting or any(worker.task for worker in self.workers):
            self._hand_out()
            for ready in wait([worker.connection for worker in self.workers]):
                worker = next(w for w in self.workers if w.connection is ready)
                try:
                    message = worker.connection.recv()
                except (EOFError, ConnectionResetError):
                    yield from self._replace(worker)
                    continue
                row = self._take(worker, message)
                if row is not None:
                    yield row

    def _hand_out(self) -> None:
        for worker in self.workers:
            if worker.ready and worker.task is None and self.waiting:
                worker.task, number = self.waiting.popleft()
                worker.finished = set()
                self.tries[worker.task.utterance.id] = number
                worker.connection.send(worker.task)

    def _take(self, worker: _Worker, message: Any) -> Row | None:
        if isinstance(message, PcgError):
            raise message
        if message == "ready":
            worker.ready = True
        elif message is None:
            worker.task = None
        else:
            worker.finished.add(message["arm"])
            row: Row = message
            return row
        return None

    def _replace(self, worker: _Worker) -> Iterator[Row]:
        """A worker died: start another, and try the rest of its task again or give it up."""
        if not worker.ready:
            raise PcgError("A worker process ended while it loaded the model: use fewer --workers.")
        worker.process.join()
        index = self.workers.index(worker)
        self.workers[index] = _start(self.options, self.factory)
        if worker.task is None:
            return
        rest = tuple(arm for arm in worker.task.arms if arm.name not in worker.finished)
        task, tries = Task(worker.task.utterance, rest), self.tries[worker.task.utterance.id]
        if not rest:
            return
        if tries < TRIES:
            self.waiting.appendleft((task, tries + 1))
            return
        why = f"The worker process ended with exit code {worker.process.exitcode}, {tries} times."
        for arm in rest:
            yield lost_row(task, arm, self.options, why)

    def close(self) -> None:
        for worker in self.workers:
            worker.connection.close()
            worker.process.terminate()
            worker.process.join(5)


def process_backend(options: Options, workers: int, factory: Factory = Replica) -> Backend:
    """A backend of ``workers`` processes on this machine."""

    def run(tasks: Sequence[Task]) -> Iterator[Row]:
        pool = _Pool(options, tasks, workers, factory)
        try:
            yield from pool.rows()
        finally:
            pool.close()

    return run
