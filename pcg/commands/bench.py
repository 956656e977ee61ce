"""`python -m pcg bench judge | engine | load | listening`: how fast, and under how much load."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

SUITES = ("pcg.bench.judge", "pcg.bench.engine", "pcg.bench.load")


def add_parser(subparsers: Any) -> None:
    """Add the sub-command, with one action for every suite that is there."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "bench", help="measure the judges, the engine, or the page under load"
    )
    actions = parser.add_subparsers(dest="suite", required=True)
    for name in SUITES:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name).add_parser(actions)
    crowd = actions.add_parser("listening", help="a crowd of listeners, and a server killed")
    crowd.add_argument("--listeners", type=int, default=50)
    crowd.add_argument("--seconds", type=float, default=120.0)
    crowd.add_argument("--kills", type=int, default=1)
    crowd.add_argument("--json", action="store_true", help="print one last line of JSON")
    crowd.set_defaults(run=_listening)


def _listening(args: argparse.Namespace) -> int:
    from pcg.listening.load import run

    with tempfile.TemporaryDirectory(prefix="pcg-crowd-") as folder:
        report = run(Path(folder), args.listeners, args.seconds, args.kills)
    print(", ".join(f"{key} {value}" for key, value in report.items()))
    if args.json:
        print(json.dumps(report, separators=(",", ":")))
    return int(bool(report["lost"] or report["doubled"] or report["unexplained"]))
