"""`python -m pcg publish`: assemble a Space, check it, upload it."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "publish",
        help="assemble a Hugging Face Space and upload it",
        description="Assemble a Space's files, check them, and upload them with HF_TOKEN.",
    )
    parser.add_argument("space", help="owner/name")
    parser.add_argument("--config", default="cpu-basic", help="a file of spaces_config/")
    parser.add_argument("--folder", type=Path, help="keep the assembled files here")
    parser.add_argument("--public", action="store_true", help="create a public Space")
    parser.add_argument("--dry-run", action="store_true", help="assemble and check, upload nothing")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    from pcg.publish import assemble, publish

    with tempfile.TemporaryDirectory(prefix="pcg-space-") as folder:
        assembly = assemble(args.folder or Path(folder), args.config)
        publish(args.space, assembly, private=not args.public, dry_run=args.dry_run)
        report = {
            "space": args.space,
            "config": args.config,
            "hardware": assembly.hardware,
            "files": len(assembly.files),
            "megabytes": round(assembly.total_bytes / 1e6, 1),
            "variables": dict(assembly.variables),
            "uploaded": not args.dry_run,
        }
    word = "Would upload" if args.dry_run else "Uploaded"
    print(
        f"{word} {report['files']} files, {report['megabytes']} MB, to {args.space} "
        f"({args.config}, {assembly.hardware})."
    )
    if args.json:
        print(json.dumps(report, separators=(",", ":")))
    return 0
