"""A replica without a model: deterministic rows from seeds, so that runs can be compared."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pcg.evaluation.arms import Arm, Options, utterance_seed
from pcg.evaluation.manifest import Utterance
from pcg.evaluation.replica import row_key


class FakeNested:
    """Groups on a circle: theta is minus the reach, so acceptance falls as theta rises."""

    thetas = (-8.0, 0.0)
    size = 32

    def at(self, theta: float) -> Any:
        reach = int(-theta)
        rows = [
            sorted({(i + d) % self.size for d in range(-reach, reach + 1)})
            for i in range(self.size)
        ]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        return SimpleNamespace(
            indptr=indptr,
            indices=np.concatenate(rows),
            n_codes=self.size,
            members=lambda k: np.asarray(rows[k]),
        )

    def mean_size(self, theta: float) -> float:
        return 1.0 - 2 * theta

    def calibrate(self, mean_size: float) -> float:
        return -float(min(8, max(0, round((mean_size - 1) / 2))))


class FakeReplica:
    """Same interface as Replica; ``Options.model`` may ask for trouble: "die:ID", "slow"."""

    def __init__(self, options: Options, own_device: bool = True) -> None:
        self.options, self.own_device = options, own_device
        self.voices = {"ada": None, "ben": None}
        self.model = SimpleNamespace(
            groups=FakeNested(), mel_groups=FakeNested(), default_theta=-2.0
        )
        self.facts = {"model": "fake", "hardware": "none", "default_theta": -2.0}

    def probability_rows(self, utterance: Utterance, arm: Arm, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        draft = rng.dirichlet(np.full(32, 0.3), 40)
        target = 0.5 * draft + 0.5 * rng.dirichlet(np.full(32, 0.3), 40)
        return draft.astype(np.float32), target.astype(np.float32)

    def row(self, utterance: Utterance, arm: Arm) -> dict[str, Any]:
        trouble, _, value = self.options.model.partition(":")
        if trouble == "slow":
            time.sleep(0.02)
        if trouble == "die" and utterance.id == value:
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "die-once" and not Path(value).exists():
            Path(value).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        head: dict[str, Any] = {
            "key": row_key(utterance, arm),
            "utterance": utterance.id,
            "arm": arm.name,
        }
        if trouble == "fail" and utterance.id == value:
            return {**head, "status": "failed", "error": "PcgError: asked to | fail"}
        seed = utterance_seed(self.options.seed, utterance.id)
        if arm.kind == "drift":
            from pcg.evaluation.laws import drift_sums

            more: dict[str, Any] = {
                "drift": drift_sums(
                    *self.probability_rows(utterance, arm, seed), FakeNested(), (1, 3, 5)
                )
            }
        else:
            more = self._measures(arm, seed)
        return {**head, "seed": seed, "voice": utterance.voice, "status": "ok", **more}

    def _measures(self, arm: Arm, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng([seed, sum(arm.name.encode())])
        tokens = int(rng.integers(50, 100))
        rate = {"sd": 0.4, "target": 0.0}.get(arm.rule, 0.7)
        return {
            "tokens": tokens,
            "finished": "end",
            "decode": {
                "judged": 100,
                "accepted": int(100 * rate + 10 * rng.random()),
                "tokens": tokens,
                "rounds": tokens // 2,
            },
            "time": {"decode": 1.0, "cpu": 0.9, "own_device": self.own_device, "load": 0.1},
            "wer": {
                "errors": int(rng.integers(0, 4)),
                "words": 10,
                "char_errors": 3,
                "chars": 50,
                "model": "none",
            },
            "similarity": {
                "value": round(0.8 + 0.1 * rng.random(), 6),
                "others": 0.6,
                "model": "none",
            },
        }
