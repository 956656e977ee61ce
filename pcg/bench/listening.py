"""`python -m pcg bench listening`: a crowd of listeners, and the server killed midway."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add `listening` to `bench`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "listening", help="a crowd of listeners, and a server killed"
    )
    parser.add_argument("--listeners", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the crowd; 1 when an acknowledged vote was lost, doubled or invented."""
    from pcg.listening.load import run as crowd

    with tempfile.TemporaryDirectory(prefix="pcg-crowd-") as folder:
        report = crowd(Path(folder), args.listeners, args.seconds, args.kills)
    print(", ".join(f"{key} {value}" for key, value in report.items()))
    if args.json:
        print(json.dumps(report, separators=(",", ":")))
    return int(bool(report["lost"] or report["doubled"] or report["unexplained"]))
