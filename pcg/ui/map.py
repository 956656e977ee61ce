"""Map: the target's embedding table as a plane of dots, with groups, sounds and the utterance."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import plotly

from pcg.errors import PcgError
from pcg.ui import runtime, sounds
from pcg.ui.components.token_map import TokenMap
from pcg.ui.trace_view import path_items, rounds_view
from pcg.ui.visitor import Visitor

PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
MOST_MEMBERS = 400


def build() -> TokenMap:
    """The tab's content; call inside a `gr.Tab`."""
    gr.set_static_paths([PLOTLY])
    functions = [group_members, group_sizes, sounds.hear_token]
    return TokenMap(server_functions=functions, elem_id="map")


@cache
def points() -> tuple[str, list[dict[str, Any]], int]:
    """The static float32 file (columns after each other), its columns, the number of tokens."""
    from gradio import utils

    from pcg.atlas import load

    stored = load(runtime.settings().model)
    columns: list[dict[str, Any]] = [{"name": "x"}, {"name": "y"}]
    arrays = [stored.xy[:, 0], stored.xy[:, 1]]
    for feature in stored.features:
        columns.append(
            {
                "name": feature.name,
                "label": feature.label,
                "unit": feature.unit,
                "digits": feature.digits,
            }
        )
        arrays.append(feature.values)
    folder = Path(tempfile.mkdtemp(dir=utils.get_cache_folder()))
    path = folder / "points.bin"
    path.write_bytes(np.stack(arrays).astype("<f4").tobytes())
    return str(path), columns, int(stored.xy.shape[0])


def value(visitor: Visitor) -> dict[str, Any]:
    """The map's value for this visitor."""
    try:
        file, columns, n = points()
        groups = runtime.model().groups
    except PcgError as error:
        return {"error": str(error)}
    except (ImportError, FileNotFoundError):
        return {"error": "This model has no stored map."}
    thetas = sorted(float(t) for t in groups.thetas) if groups is not None else [0.0, 1.0]
    return {
        "plotly": gr.FileData(path=str(PLOTLY)).model_dump(),
        "points": gr.FileData(path=file).model_dump(),
        "columns": columns,
        "n": n,
        "theta": float(runtime.model().default_theta),
        "theta_min": thetas[0],
        "theta_max": thetas[-1],
        "path": path(visitor),
    }


def path(visitor: Visitor) -> dict[str, Any] | None:
    """The newest utterance's way over the map."""
    runs = [run for run in visitor.runs if run.rule != "target"] or visitor.runs
    if not runs:
        return None
    run = runs[-1]
    codec = runtime.model().codec
    items = path_items(rounds_view(run.trace.rounds, codec.n_codes), run.rule, codec.n_codes)
    return {
        "items": items,
        "ids": [item["id"] for item in items if item["kind"] != "rejected"],
        "seconds": codec.hop / codec.sample_rate,
        "file": run.file,
    }


def _theta(payload: Mapping[str, Any]) -> float:
    theta = payload.get("theta") if isinstance(payload, Mapping) else None
    if not isinstance(theta, (int, float)) or not -1 <= theta <= 1:
        raise PcgError("Theta is a cosine: choose a value from -1 to 1.")
    return round(float(theta), 4)


@lru_cache(maxsize=24)
def groups_at(theta: float) -> Any:
    groups = runtime.model().groups
    if groups is None:
        raise PcgError("This model has no stored groups.")
    return groups.at(theta)


@cache
def _unit_table() -> Any:
    table = np.asarray(runtime.model().embeddings.detach().float().cpu())
    return table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)


def members_by_cosine(token: int, theta: float) -> list[tuple[int, float]]:
    """The members of a token's group and their cosines, nearest first, the token itself first."""
    sounds.check_codes([token])
    n_codes = runtime.model().codec.n_codes
    ids = np.asarray(groups_at(theta).members(token), dtype=np.int64)
    ids = ids[ids < n_codes]
    table = _unit_table()
    cosines = table[ids] @ table[token]
    order = np.argsort(-cosines, kind="stable")
    return [(int(ids[i]), float(min(1.0, cosines[i]))) for i in order]


@runtime.guarded
def group_members(payload: Mapping[str, Any]) -> dict[str, Any]:
    """`{"members": [{"id", "cos"}], "size"}` for `{"id", "theta"}`."""
    theta = _theta(payload)
    token = payload.get("id")
    found = members_by_cosine(token if isinstance(token, int) else -1, theta)
    members = [{"id": i, "cos": round(c, 4)} for i, c in found[:MOST_MEMBERS]]
    return {"members": members, "size": len(found)}


@runtime.guarded
def group_sizes(payload: Mapping[str, Any]) -> dict[str, Any]:
    """All group sizes at a theta, as base64 of little-endian uint16."""
    groups = groups_at(_theta(payload))
    n_codes = runtime.model().codec.n_codes
    sizes = np.asarray(groups.sizes)[:n_codes].clip(0, 65535).astype("<u2")
    return {"sizes": base64.b64encode(sizes.tobytes()).decode("ascii")}


def refresh(visitor: Visitor) -> dict[str, Any]:
    """Event handler: the map when its tab opens or after a run."""
    return value(visitor)
