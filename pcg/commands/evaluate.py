"""`python -m pcg evaluate`: the paper's tables on the model and corpus at hand; their report."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pcg.errors import PcgError
from pcg.evaluation.arms import Options
from pcg.evaluation.manifest import ASSETS

EXPERIMENT_NAMES = ("table1", "table2", "table3", "figure4", "theta", "drift", "bundled")
RESULTS = ASSETS / "results"


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "evaluate",
        help="run the paper's tables with significance, or report stored ones",
        description="Run an experiment (it resumes by itself), or 'report' what is stored.",
    )
    parser.add_argument("experiment", choices=[*EXPERIMENT_NAMES, "report"])
    parser.add_argument("--model", default="bundled", help="catalogue name or folder")
    parser.add_argument("--n", type=int, default=60, help="utterances (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--lookahead", type=int, default=3)
    parser.add_argument("--theta", type=float, help="default: the model's own")
    parser.add_argument("--beta", type=float, default=0.4, help="SSD's tolerance (default 0.4)")
    parser.add_argument("--max-seconds", type=float, default=20.0, help="cap of one utterance")
    parser.add_argument("--rules", default="", help="table1: only these, comma separated")
    parser.add_argument("--rivals", action="store_true", help="table1: all published rivals too")
    parser.add_argument("--draft", action="append", default=[], metavar="NAME=FOLDER")
    corpus = parser.add_mutually_exclusive_group()
    corpus.add_argument("--libritts", help="LibriTTS test-clean folder")
    corpus.add_argument("--csv", help="CSV with prompt, transcript, text")
    parser.add_argument("--asr", default="", help="tiny.en, base, a folder or a hub id")
    parser.add_argument("--speaker", default="", help="resemblyzer, wavlm, a folder or a hub id")
    parser.add_argument("--no-naturalness", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="processes or Ray actors")
    parser.add_argument("--ray", metavar="local|ADDRESS", help="use Ray (pip install ray)")
    parser.add_argument("--out", type=Path, help="run folder (default assets/results/EXPERIMENT)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="report: where runs lie")
    parser.add_argument("--html", type=Path, help="write the report as one offline page")
    parser.add_argument("--markdown", type=Path, help="write the report as Markdown")
    parser.add_argument("--readme", type=Path, help="report: rebuild the tables of this README")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def options_of(args: argparse.Namespace) -> Options:
    """Options of a run; raises PcgError for values out of range."""
    if args.n < 1 or args.workers < 1 or not 0 <= args.lookahead <= 64:
        raise PcgError("--n and --workers must be at least 1, --lookahead between 0 and 64.")
    source = "bundled"
    if args.libritts:
        source = f"libritts:{args.libritts}"
    elif args.csv:
        source = f"csv:{args.csv}"
    if any("=" not in draft for draft in args.draft):
        raise PcgError("--draft takes NAME=FOLDER, such as --draft before=runs/draft-plain.")
    return Options(
        model=args.model,
        n=args.n,
        seed=args.seed,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        lookahead=args.lookahead,
        theta=args.theta,
        beta=args.beta,
        max_seconds=args.max_seconds,
        asr=args.asr,
        speaker=args.speaker,
        mos=not args.no_naturalness,
        source=source,
        rules=tuple(rule for rule in args.rules.split(",") if rule),
        rivals=args.rivals,
        drafts=tuple(args.draft),
    )


def run(args: argparse.Namespace) -> int:
    """Run the sub-command; 0, or 1 when rows failed."""
    from pcg.evaluation import report
    from pcg.evaluation.readme import refresh
    from pcg.evaluation.runner import run as run_experiment
    from pcg.evaluation.runner import write_json
    from pcg.evaluation.summary import summarise

    root = args.results
    if args.experiment != "report":
        root = args.out or RESULTS / args.experiment
        run_experiment(
            args.experiment, options_of(args), root, workers=args.workers, ray=args.ray, say=_say
        )
    found = {folder.name: summarise(folder) for folder in report.run_folders(root)}
    for folder in report.run_folders(root):
        write_json(folder / "summary.json", found[folder.name])
    if args.experiment != "report":
        print(report.markdown(found[root.name]))
    if args.markdown:
        report.write_markdown(found, args.markdown)
    if args.html:
        report.write_html(found, args.html)
    if args.experiment == "report" and args.readme:
        refresh(args.readme, root)
    if args.json:
        data = found if args.experiment == "report" else found[root.name]
        print(json.dumps(data, separators=(",", ":"), sort_keys=True))
    return 1 if any(summary["rows"]["failed"] for summary in found.values()) else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
