"""`python -m pcg listening create | serve | analyse | export | remove`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pcg.errors import PcgError

HELP = "make, serve and analyse blind listening tests"


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "listening", help=HELP, description=HELP
    )
    configure(parser)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(dest="action", required=True)
    _create(actions.add_parser("create", help="make a test from a folder of recordings"))
    serve = actions.add_parser("serve", help="serve tests on a page of their own")
    serve.add_argument(
        "tests",
        nargs="*",
        type=Path,
        help="folders made by `create` (known ones are served anyway)",
    )
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=7870)
    remove = actions.add_parser("remove", help="delete a test with its clips and votes")
    remove.add_argument("test", help="the id of a test")
    remove.add_argument("--yes", action="store_true", help="really delete the votes")
    _common(remove)
    for name, text in (
        ("analyse", "estimates with intervals"),
        ("export", "every vote as CSV or JSON"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("test", help="the id of a test, or the folder made by `create`")
        if name == "analyse":
            action.add_argument("--confidence", type=float, default=0.95)
            action.add_argument("--seed", type=int, default=0, help="of the bootstrap")
            action.add_argument("--html", type=Path, help="also write a page with plots")
        else:
            action.add_argument("--format", choices=("csv", "json"), default="csv")
            action.add_argument("--practice", action="store_true", help="include practice answers")
            action.add_argument("--out", type=Path, help="file to write (default: print)")
        _common(action)
    _common(serve)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, help="where tests and votes are kept")
    parser.add_argument("--json", action="store_true", help="print one line of JSON at the end")


def _create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        type=Path,
        help="SYSTEM/ITEM.wav, ITEM__SYSTEM.wav, a manifest, or a run of `evaluate`",
    )
    parser.add_argument("out", type=Path, help="folder to write the test to")
    parser.add_argument("--kind", choices=("ab", "abx", "mos", "mushra"), required=True)
    parser.add_argument(
        "--manifest", type=Path, help="CSV, JSON or JSONL with file, item, system[, text, practice]"
    )
    parser.add_argument("--count", type=int, default=10, help="utterances to take from a run")
    parser.add_argument("--arms", default="", help="arms of a run, with commas (default: all)")
    parser.add_argument("--original", action="store_true", help="add the run's own recordings")
    parser.add_argument("--title", default="Listening test")
    parser.add_argument("--question", default="")
    parser.add_argument("--seed", type=int, default=0, help="of all orders")
    parser.add_argument(
        "--practice", type=int, default=1, help="this many of the first items do not count"
    )
    parser.add_argument(
        "--passes", type=int, help="conditions of an item one listener meets (1: Latin square)"
    )
    parser.add_argument("--repeats", type=int, default=1, help="how often each question comes")
    parser.add_argument("--reference", help="system that is the reference (MUSHRA)")
    parser.add_argument("--allow-tie", action="store_true")
    parser.add_argument("--reveal", choices=("each", "end", "never"), default="end")
    parser.add_argument("--heard-fraction", type=float, default=0.9)
    parser.add_argument("--loudness", type=float, default=-23.0, help="LUFS every clip is set to")
    parser.add_argument("--json", action="store_true", help="print one line of JSON at the end")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action; returns the exit code."""
    action = {
        "create": _run_create,
        "serve": _run_serve,
        "analyse": _run_analyse,
        "export": _run_export,
        "remove": _run_remove,
    }
    return action[args.action](args)


def _run_create(args: argparse.Namespace) -> int:
    from pcg.listening.plan import plan
    from pcg.listening.runs import is_run, recordings_of_run
    from pcg.listening.sources import build_study, read_folder

    if is_run(args.folder):
        arms = [name for name in args.arms.split(",") if name]
        sounds = recordings_of_run(args.folder, args.count, arms, args.original)
    else:
        sounds = read_folder(args.folder, args.manifest)
    study = build_study(
        sounds,
        args.out,
        kind=args.kind,
        title=args.title,
        question=args.question,
        seed=args.seed,
        practice=args.practice,
        passes=args.passes,
        repeats=args.repeats,
        reference=args.reference,
        allow_tie=args.allow_tie,
        reveal=args.reveal,
        heard_fraction=args.heard_fraction,
        target=args.loudness,
    )
    trials = len(plan(study, 0))
    print(
        f"{args.out}: {len(study.systems)} systems, {len(study.scored)} items, {trials} questions "
        f"a listener, loudness {study.loudness} LUFS. "
        f"Serve it with `python -m pcg listening serve {args.out}`."
    )
    if args.json:
        summary = {
            "id": study.id,
            "kind": study.kind,
            "systems": study.systems,
            "items": len(study.scored),
            "questions": trials,
            "loudness": study.loudness,
            "seed": study.seed,
        }
        print(json.dumps(summary, separators=(",", ":")))
    return 0


def _root(args: argparse.Namespace) -> Path:
    from pcg.listening.store import default_root

    return args.root or default_root()


def _run_serve(args: argparse.Namespace) -> int:
    from pcg.listening.desk import Desk
    from pcg.listening.serve import run as serve

    root = _root(args)
    desk = Desk(root)
    try:
        for folder in args.tests:
            study, key = desk.add(folder)
            address = f"http://{args.host}:{args.port}/listening/take/{study.id}"
            print(f"{study.title}: {address}" + (f"  (owner's key {key})" if key else ""))
        if not desk.store.study_ids():
            raise PcgError(
                "There is no test to serve: name a folder made by `python -m pcg listening create`."
            )
    finally:
        desk.close()
    sys.stdout.flush()
    serve(root, args.host, args.port)
    return 0


def _run_remove(args: argparse.Namespace) -> int:
    from pcg.listening.desk import Desk

    desk = Desk(_root(args))
    try:
        count = desk.store.vote_count(desk.study(args.test).id)
        if count and not args.yes:
            raise PcgError(f"This test holds {count} votes: export them, then add --yes.")
        desk.remove(args.test)
    finally:
        desk.close()
    print(f"Removed {args.test} with {count} votes.")
    if args.json:
        print(json.dumps({"removed": args.test, "votes": count}, separators=(",", ":")))
    return 0


def _rows(
    args: argparse.Namespace, practice: bool = False
) -> tuple[Any, list[dict[str, Any]], Any]:
    from pcg.listening.desk import Desk
    from pcg.listening.export import flat_rows
    from pcg.listening.study import load_study

    name = load_study(Path(args.test)).id if Path(args.test).exists() else args.test
    desk = Desk(_root(args))
    try:
        study = desk.study(name)
        return study, flat_rows(study, desk.store, practice=practice), desk.store.checks(name)
    finally:
        desk.close()


def _run_analyse(args: argparse.Namespace) -> int:
    from pcg.listening.analysis.report import analyse
    from pcg.listening.analysis.text import to_text

    study, rows, checks = _rows(args)
    report = analyse(study, rows, checks, confidence=args.confidence, seed=args.seed)
    print(to_text(report))
    if args.html:
        from pcg.listening.analysis.page import to_html

        args.html.write_text(to_html(report), encoding="utf-8")
    if args.json:
        print(json.dumps(report, separators=(",", ":")))
    return 0


def _run_export(args: argparse.Namespace) -> int:
    from pcg.listening.export import to_csv, to_json

    study, rows, _ = _rows(args, practice=args.practice)
    text = to_csv(study, rows) if args.format == "csv" else to_json(study, rows)
    if args.out:
        args.out.write_text(text, encoding="utf-8")
        print(f"{len(rows)} rows written to {args.out}.")
    else:
        print(text, end="")
    if args.json:
        print(json.dumps({"rows": len(rows), "test": study.id}, separators=(",", ":")))
    return 0
