"""``python -m pcg train STEP``: how the bundled voice is made, and a draft for any model.

The chain: corpus, codec, decoder, tokens, durations, target, deepen, draft, assets. Every step
resumes where it stopped and prints progress and the time left.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pcg.errors import PcgError

STEPS = (
    "corpus",
    "codec",
    "decoder",
    "tokens",
    "durations",
    "target",
    "deepen",
    "draft",
    "assets",
    "card",
    "all",
)
MINUTES = {
    "codec": 60.0,
    "decoder": 40.0,
    "durations": 3.0,
    "target": 60.0,
    "deepen": 60.0,
    "draft": 60.0,
}


def default_work() -> Path:
    """Where corpora and checkpoints lie: outside the repository."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "pcg" / "training"


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser = subparsers.add_parser(
        "train", help="make the bundled voice, or a draft for any model", description=__doc__
    )
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--work", type=Path, default=default_work(), help="corpora, checkpoints")
    parser.add_argument("--out", type=Path, help="result (default: WORK/parts, or assets/bundled)")
    parser.add_argument("--minutes", type=float, help="time of this step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes for corpus and tokens")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (target and draft)")
    parser.add_argument("--small", action="store_true", help="a miniature of the chain, minutes")
    parser.add_argument("--target", help="draft: folder or name of the target (default: WORK)")
    parser.add_argument(
        "--stage",
        choices=("corpus", "samples", "both"),
        default="both",
        help="draft: train on the corpus, on the target's own samples, or both",
    )
    parser.add_argument("--layers", help='draft: "first 1", "spread 2", "0,4"')
    parser.add_argument("--data", type=Path, help="draft: a folder of recordings with transcripts")
    parser.add_argument("--texts", type=Path, help="draft: texts, one a line, for its own samples")
    parser.add_argument("--theta", type=float, default=0.4, help="assets: default theta")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the step, or all of them in order."""
    if args.minutes is not None and not 0 < args.minutes < 10_000:
        raise PcgError("--minutes must be above 0.")
    report: dict[str, Any] = {}
    for step in STEPS[:-1] if args.step == "all" else (args.step,):
        report[step] = _RUN[step](args)
    if args.json:
        print(json.dumps(report, default=str))
    return 0


def _minutes(args: argparse.Namespace, step: str) -> float:
    return float(args.minutes or (0.3 if args.small else MINUTES[step]))


def _parts(args: argparse.Namespace) -> Path:
    return Path(args.work) / "parts"


def _corpus(args: argparse.Namespace) -> Any:
    from pcg.training import corpus

    sizes = {"heart": 2} if args.small else None
    return corpus.make_corpus(
        args.work / "corpus", args.workers, 16 if args.small else corpus.SHARD_UTTERANCES, sizes
    )


def _codec(args: argparse.Namespace) -> Any:
    from pcg.training.codec import train_codec

    out, work = _parts(args) / "codec", args.work / "checkpoints"
    return train_codec(args.work / "corpus", out, work, _minutes(args, "codec"), args.seed)


def _decoder(args: argparse.Namespace) -> Any:
    from pcg.training.decoder import train_decoder

    out, work = _parts(args) / "codec", args.work / "checkpoints"
    return train_decoder(args.work / "corpus", out, work, _minutes(args, "decoder"), args.seed)


def _tokens(args: argparse.Namespace) -> Any:
    from pcg.training.tokens import make_tokens

    out = args.work / "tokens"
    return make_tokens(args.work / "corpus", _parts(args) / "codec", out, args.workers)


def _durations(args: argparse.Namespace) -> Any:
    from pcg.training.durations import train_durations

    minutes = _minutes(args, "durations")
    return train_durations(args.work / "tokens", _parts(args), minutes, args.seed)


def _target(args: argparse.Namespace) -> Any:
    from pcg.training.target import train_target

    shape: dict[str, Any] = {"layers": 2, "width": 64} if args.small else {}
    return train_target(
        args.work / "tokens",
        _parts(args) / "target",
        args.work / "checkpoints",
        _minutes(args, "target"),
        args.seed,
        device=args.device,
        **shape,
    )


def _deepen(args: argparse.Namespace) -> Any:
    """The target goes on at twice its depth; what it was is kept beside it as ``shallow``."""
    import shutil

    from pcg.training.target import train_target

    target, shallow = _parts(args) / "target", _parts(args) / "shallow"
    if not shallow.exists():
        if not target.is_dir():
            raise PcgError("There is no target to deepen: run `python -m pcg train target` first.")
        shutil.copytree(target, shallow.with_name("shallow.part"), dirs_exist_ok=True)
        shallow.with_name("shallow.part").rename(shallow)
    return train_target(
        args.work / "tokens",
        target,
        args.work / "checkpoints",
        _minutes(args, "deepen"),
        args.seed + 1,
        rate=1e-3,
        device=args.device,
        start=shallow,
    )


def _draft(args: argparse.Namespace) -> Any:
    from pcg.training import recipes

    minutes = _minutes(args, "draft")
    if args.target:
        return recipes.draft_for_model(
            args.target,
            args.layers or "first 1",
            args.data,
            args.texts,
            args.out or _parts(args) / "draft",
            args.work / "checkpoints",
            minutes,
            args.seed,
        )
    return recipes.bundled_draft(
        args.work,
        args.layers or "0,2",  # the first two of the target before it was deepened
        args.out or _parts(args) / "draft",
        minutes,
        args.seed,
        args.small,
        args.stage,
    )


def _assets(args: argparse.Namespace) -> Any:
    from pcg.settings import BUNDLED_DIR
    from pcg.training.assets import assemble

    out = args.out or (_parts(args).with_name("bundled") if args.small else BUNDLED_DIR)
    return assemble(_parts(args), out, args.work / "corpus", args.theta, atlas=not args.small)


def _card(args: argparse.Namespace) -> Any:
    from pcg.training.card import write_card

    if args.small:
        return None
    return len(write_card())


_RUN: dict[str, Callable[[argparse.Namespace], Any]] = {
    "corpus": _corpus,
    "codec": _codec,
    "decoder": _decoder,
    "tokens": _tokens,
    "durations": _durations,
    "target": _target,
    "deepen": _deepen,
    "draft": _draft,
    "assets": _assets,
    "card": _card,
}
