"""Where results come from: model, machine, versions."""

from __future__ import annotations

import os
import platform
from typing import Any

from pcg.evaluation.arms import Options
from pcg.evaluation.rows import Row


def facts_of(model: Any, options: Options) -> Row:
    """What the results must say about their origin."""
    import torch

    measured = model.measured or model.measure(options.lookahead)
    return {
        "model": model.name,
        "hardware": hardware(),
        "dtype": str(model.target.dtype),
        "default_theta": float(model.default_theta),
        "codec": model.codec.name,
        "tokens_per_second": float(model.codec.tokens_per_second),
        "device": str(model.target.device),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__.split("+")[0],
        "measured": {name: plain(value) for name, value in measured.items()},
    }


def hardware() -> str:
    """The processor or GPU, in words."""
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name(0))
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores"


def plain(value: Any) -> Any:
    """Numbers rounded to 6 digits, containers of them; anything else as it is."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, str, type(None))):
        return value
    if isinstance(value, int):
        return int(value)
    return round(float(value), 6)
