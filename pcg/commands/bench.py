"""``python -m pcg bench NAME``: each module of ``pcg.bench`` is one benchmark."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from typing import Any

import pcg.bench


def names() -> list[str]:
    """The benchmarks there are."""
    return sorted(module.name for module in pkgutil.iter_modules(pcg.bench.__path__))


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser = subparsers.add_parser("bench", help="measure what this machine does")
    parser.add_argument("name", choices=names(), help="which benchmark")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="its own options")


def run(args: argparse.Namespace) -> int:
    """Hands the remaining options to ``pcg.bench.NAME``'s own ``add_parser`` and ``run``."""
    module = importlib.import_module(f"pcg.bench.{args.name}")
    parser = argparse.ArgumentParser(prog="python -m pcg bench")
    module.add_parser(parser.add_subparsers(required=True))
    return int(module.run(parser.parse_args([args.name, *args.rest])))
