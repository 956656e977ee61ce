"""Ray: one actor a model replica, utterances as tasks, over processes, GPUs or hosts.

"local" starts Ray here; anything else is the address of a running cluster, whose machines need
this package and the model. An actor that dies is started again and its utterance retried.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from pcg.errors import PcgError
from pcg.evaluation.arms import Options
from pcg.evaluation.processes import TRIES, lost_row
from pcg.evaluation.replica import Replica
from pcg.evaluation.rows import Row
from pcg.evaluation.runner import Backend, Factory, Task


class ReplicaActor:
    """A replica behind Ray."""

    def __init__(self, options: Options, own_device: bool, factory: Factory) -> None:
        import torch

        torch.set_num_threads(1)
        self.replica = factory(options, own_device)

    def rows(self, task: Task) -> list[Row]:
        """All rows of one utterance."""
        return [self.replica.row(task.utterance, arm) for arm in task.arms]


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        raise PcgError("Ray is not installed: pip install ray, or use --workers.") from error
    if not ray.is_initialized():
        try:
            ray.init(
                address=None if address == "local" else address,
                include_dashboard=False if address == "local" else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise PcgError(f"No Ray cluster answers at {address!r}: {error}.") from error
    return ray


def ray_backend(
    options: Options, replicas: int, address: str, factory: Factory = Replica
) -> Backend:
    """A backend of ``replicas`` actors; each takes a whole GPU where the cluster has any."""

    def run(tasks: Sequence[Task]) -> Iterator[Row]:
        ray = _connect(address)
        gpus = float(ray.cluster_resources().get("GPU", 0))
        actor_class = ray.remote(
            num_cpus=0 if address == "local" else 1, num_gpus=1 if gpus else 0, max_restarts=-1
        )(ReplicaActor)
        count = min(replicas, max(1, len(tasks)), int(gpus) or replicas)
        actors = [actor_class.remote(options, bool(gpus), factory) for _ in range(count)]
        try:
            yield from _gather(ray, actors, tasks, options)
        finally:
            for actor in actors:
                ray.kill(actor)

    return run


def _gather(ray: Any, actors: list[Any], tasks: Sequence[Task], options: Options) -> Iterator[Row]:
    """Keep every actor at one task; a task whose actor died goes back once, then is lost rows."""
    waiting = deque((task, 1) for task in tasks)
    idle = deque(actors)
    running: dict[Any, tuple[Any, Task, int]] = {}
    while waiting or running:
        while waiting and idle:
            (task, number), actor = waiting.popleft(), idle.popleft()
            running[actor.rows.remote(task)] = (actor, task, number)
        ended, _ = ray.wait(list(running), num_returns=1)
        actor, task, number = running.pop(ended[0])
        idle.append(actor)
        try:
            yield from ray.get(ended[0])
        except ray.exceptions.RayActorError as error:
            if number < TRIES:
                waiting.append((task, number + 1))
                continue
            why = f"The Ray actor ended {number} times: {type(error).__name__}."
            for arm in task.arms:
                yield lost_row(task, arm, options, why)
        except ray.exceptions.RayTaskError as error:
            why = f"The Ray task failed: {type(error.cause).__name__}: {error.cause}"
            for arm in task.arms:
                yield lost_row(task, arm, options, why[:500])
