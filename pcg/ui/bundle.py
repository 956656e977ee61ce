"""Downloads and links: a zip of a comparison, a permalink's settings both ways."""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pcg.errors import PcgError
from pcg.ui.visitor import Run

FIELDS = ("text", "rules", "lookahead", "temperature", "top_p", "top_k", "seed", "voice")


def comparison_zip(runs: list[Run], settings: Mapping[str, Any]) -> str:
    """Write wavs, traces and settings into one zip in the page's cache; returns its path."""
    import soundfile
    from gradio import utils

    if not runs:
        raise PcgError("There is nothing to download yet: run a comparison first.")
    folder = Path(tempfile.mkdtemp(dir=utils.get_cache_folder()))
    path = folder / "pcg-comparison.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for index, run in enumerate(runs, 1):
            stem = f"{index}-{re.sub(r'[^a-z0-9.]+', '-', run.label.lower()).strip('-')}"
            if len(run.audio):
                wav = io.BytesIO()
                soundfile.write(wav, run.audio, run.sample_rate, "PCM_16", format="WAV")
                archive.writestr(f"{stem}.wav", wav.getvalue())
            trace = folder / "trace.jsonl"
            run.trace.save(trace)
            archive.writestr(f"{stem}.jsonl", trace.read_text(encoding="utf-8"))
            trace.unlink()
        report = {
            "settings": dict(settings),
            "runs": [{"label": r.label, "summary": r.summary, **r.figures} for r in runs],
        }
        archive.writestr("settings.json", json.dumps(report, indent=2, ensure_ascii=False))
    return str(path)


def read_link(query: Mapping[str, str]) -> dict[str, Any]:
    """Settings from a permalink; unreadable fields are dropped, values are checked on Run."""
    found: dict[str, Any] = {}
    for key in FIELDS:
        raw = query.get(key)
        if raw is None or len(raw) > 4000:
            continue
        if key in ("text", "voice"):
            found[key] = raw[:600]
            continue
        try:
            value = json.loads(raw)
        except ValueError:
            continue
        if isinstance(value, (list if key == "rules" else (int, float))):
            found[key] = value
    return found
