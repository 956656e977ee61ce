"""Tune theta: everything that follows from the stored groups and the last utterance, at once."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import torch
from torch import Tensor

from pcg.errors import PcgError
from pcg.ui import runtime
from pcg.ui.components.figures import ThetaTuner
from pcg.ui.trace_view import number
from pcg.ui.visitor import Run, Visitor

RESULTS = Path(__file__).resolve().parents[2] / "assets" / "results"
MOST_THETAS = 21
MOST_ROWS = 64
SSD_BETA = 0.4


def build() -> ThetaTuner:
    """The tab's content; call inside a `gr.Tab`."""
    return ThetaTuner(elem_id="tune")


@cache
def grid() -> tuple[list[float], list[float]]:
    """Thetas of the stored groups (ascending, at most `MOST_THETAS`) and their mean sizes."""
    groups = runtime.model().groups
    if groups is None:
        raise PcgError("This model has no stored groups, so theta cannot be tuned.")
    thetas = sorted(float(t) for t in groups.thetas)
    if len(thetas) > MOST_THETAS:
        places = np.linspace(0, len(thetas) - 1, MOST_THETAS).round().astype(int)
        thetas = [thetas[i] for i in places]
    return thetas, [float(groups.mean_size(t)) for t in thetas]


def value(visitor: Visitor) -> dict[str, Any]:
    """The tuner's value for this visitor."""
    try:
        thetas, sizes = grid()
    except PcgError as error:
        return {"error": str(error)}
    run = visitor.newest(drafted=True)
    if run is not None and "curves" not in run.figures:
        run.figures["curves"] = curves(run, thetas)
    return {
        "thetas": thetas,
        "sizes": sizes,
        "theta": float(runtime.model().default_theta),
        "last": run.figures["curves"] if run else {},
        "quality": quality_series(),
    }


def curves(run: Run, thetas: list[float]) -> dict[str, Any]:
    """Expected acceptance, tokens a round and speed-up over theta, from a run's own rows.

    The costs are those of the run beside its target-only run, else the model's measured ones.
    """
    from pcg import theory

    groups = runtime.model().groups
    assert groups is not None
    draft, target = _positions(run)
    alpha = theory.alpha_over_thetas(draft, target, groups, thetas)
    lookahead = int(run.settings["lookahead"])
    measured = runtime.model().measured or {}
    c = run.figures.get("c", measured.get("c"))
    v = run.figures.get("v", measured.get("v"))

    def figures(a: float) -> dict[str, float | None]:
        speedup = None if c is None or v is None else theory.expected_speedup(a, lookahead, c, v)
        tokens = theory.expected_tokens(a, lookahead)
        return {"alpha": number(a), "tokens": number(tokens), "speedup": number(speedup)}

    points = [figures(a) for a in alpha]
    out: dict[str, Any] = {key: [p[key] for p in points] for key in ("alpha", "tokens")}
    if c is not None and v is not None:
        out["speedup"] = [p["speedup"] for p in points]
    out["sd"] = figures(float(theory.sd_alpha(draft, target)))
    out["ssd"] = figures(float(theory.ssd_alpha(draft, target, SSD_BETA)))
    out |= {"label": run.label, "lookahead": lookahead, "ssd_label": f"SSD, beta {SSD_BETA:g}"}
    return out


def _positions(run: Run) -> tuple[Tensor, Tensor]:
    """Draft and target rows (n, V) of at most `MOST_ROWS` drafted positions, evenly spread."""
    draft = torch.cat([rows for rows, _ in run.rows])
    target = torch.cat([rows[: len(own)] for own, rows in run.rows])
    places = torch.linspace(0, len(draft) - 1, min(len(draft), MOST_ROWS)).round().long()
    return draft[places].float(), target[places].float()


@cache
def quality_series() -> list[dict[str, Any]]:
    """WER and similarity against theta, from `evaluate theta`'s stored run; empty when none."""
    try:
        plan, summary = (
            json.loads((RESULTS / "theta" / f"{name}.json").read_text(encoding="utf-8"))
            for name in ("plan", "summary")
        )
        thetas = {arm["name"]: arm["params"].get("theta") for arm in plan["arms"]}
        arms = [(thetas.get(arm["name"]), arm) for arm in summary["arms"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    looks = {"wer": ("WER", "t3", "rejected"), "similarity": ("similarity", "t2", "bonus")}
    series = []
    for key, (name, colour, shape) in looks.items():
        points = [
            [float(theta), *_interval(arm[key])]
            for theta, arm in arms
            if theta is not None and arm.get(key) is not None
        ]
        if points:
            line = {"name": name, "colour": colour, "shape": shape, "points": sorted(points)}
            series.append(line)
    return series


def _interval(cell: Any) -> list[float]:
    if isinstance(cell, dict):
        return [float(cell["value"]), float(cell["low"]), float(cell["high"])]
    return [float(cell)]


def refresh(visitor: Visitor) -> Any:
    """Event handler: the tuner after a run or when its tab opens."""
    return value(visitor)


def theta_of(event: gr.EventData) -> float:
    """The theta at which the visitor wants to hear the text."""
    theta = float(event._data.get("theta", 0.0)) if isinstance(event._data, dict) else 0.0
    if not -1.0 <= theta <= 1.0:
        raise PcgError("Theta is a cosine: choose a value from -1 to 1.")
    return theta
