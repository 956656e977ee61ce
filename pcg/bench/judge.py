"""``python -m pcg bench judge``: what judging costs, and what building groups costs.

Each rule judges the same blocks of drafted tokens, rejections and residuals included, and the time
is set against one forward of a target. Groups are built blockwise and, for comparison, the plain
way: all cosines at once, at a size whose matrix fits into memory.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pcg.acceptance import REGISTRY, make_rule
from pcg.errors import PcgError
from pcg.groups import AcousticGroups, NestedGroups
from pcg.randomness import Randomness

FORWARD_MS, LIMIT = 24.0, 0.03
REPEATS = 5


def add_parser(subparsers: Any) -> None:
    """Add ``judge`` to ``bench``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "judge", help="time of each rule a round, and of building groups"
    )
    parser.add_argument("--codes", type=int, default=65_536, help="speech codes")
    parser.add_argument("--width", type=int, default=512, help="columns of the embedding table")
    parser.add_argument("--mean-group", type=float, default=140.0, help="mean group size")
    parser.add_argument("--lookahead", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=150, help="rounds timed for each rule")
    parser.add_argument("--forward-ms", type=float, default=FORWARD_MS, help="one target forward")
    parser.add_argument("--dense-codes", type=int, default=8_192, help="0: no dense comparison")
    parser.add_argument("--no-build", action="store_true", help="random groups; no build is timed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="store the figures here")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 1 when PCG's share of a forward is above 3 %."""
    if not 64 <= args.codes <= 200_000 or not 1 <= args.lookahead <= 16 or args.rounds < 1:
        raise PcgError("Judging takes 64 to 200,000 codes, a lookahead of 1 to 16, and rounds.")
    if not 1 <= args.mean_group <= args.codes / 4 or args.forward_ms <= 0:
        raise PcgError(
            "The mean group size must be 1 to a quarter of the codes, the forward positive."
        )
    torch.set_num_threads(args.threads)
    report: dict[str, Any] = {"setting": setting(args)}
    table = clustered_table(args.codes, args.width, args.mean_group, args.seed)
    if args.no_build:
        groups = banded_groups(args.codes, int(args.mean_group))
    else:
        nested, report["build"] = build(table, args.mean_group)
        groups = nested.at(
            nested.calibrate(min(args.mean_group, nested.mean_size(nested.theta_min)))
        )
        if args.dense_codes:
            report["dense"] = dense(table[: args.dense_codes], nested.theta_min, args.codes)
    report["groups"] = groups.stats()
    report["rules"] = {
        name: time_rule(name, groups, table, args) for name in REGISTRY if name != "target"
    }
    show(report)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if args.json:
        print(json.dumps(report, separators=(",", ":")))
    return int(report["rules"]["pcg"]["share"] >= LIMIT)


def setting(args: argparse.Namespace) -> dict[str, Any]:
    """Hardware and parameters."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if "model name" in line),
        platform.processor(),
    )
    names = ("codes", "width", "lookahead", "rounds", "forward_ms", "threads", "seed")
    return {
        "cpu": model,
        "torch": torch.__version__,
        "dtype": "float32",
        "mean_group": args.mean_group,
        **{name: getattr(args, name) for name in names},
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def clustered_table(codes: int, width: int, mean_group: float, seed: int) -> Tensor:
    """(codes, width) float32 whose rows gather around centres, about ``mean_group`` to each."""
    maker = torch.Generator().manual_seed(seed)
    centres = torch.randn(max(2, round(codes / (1.5 * mean_group))), width, generator=maker)
    owner = torch.randint(len(centres), (codes,), generator=maker)
    return centres[owner] + 1.1 * torch.randn(codes, width, generator=maker)


def banded_groups(codes: int, mean_group: int) -> AcousticGroups:
    """Each code with its ``mean_group - 1`` neighbours in number, round a ring; the end alone."""
    reach = mean_group // 2
    near = torch.arange(-reach, reach + 1)
    members = ((torch.arange(codes)[:, None] + near) % codes).sort(1).values.reshape(-1)
    counts = torch.tensor([2 * reach + 1]).repeat(codes + 1)
    counts[-1] = 1
    indptr = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
    return AcousticGroups(indptr, torch.cat([members, torch.tensor([codes])]), codes, 0.4)


def build(table: Tensor, mean_group: float) -> tuple[NestedGroups, dict[str, Any]]:
    """Nested groups of the table and what they cost: CPU seconds, and MB beyond the table."""
    before, wall, began = _peak_mb(), time.perf_counter(), time.process_time()
    nested = NestedGroups.from_table(table, 0.2, len(table) + 1)
    built = time.process_time()
    groups = nested.at(nested.calibrate(min(mean_group, nested.mean_size(nested.theta_min))))
    first = time.process_time()
    nested.at(nested.thetas[len(nested.thetas) // 2])
    return nested, {
        "theta_min": nested.theta_min,
        "pairs": len(nested.first),
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(built - began, 2),
        "first_theta_cpu_seconds": round(first - built, 3),
        "another_theta_cpu_seconds": round(time.process_time() - first, 4),
        "peak_mb_beyond_table": round(_peak_mb() - before, 1),
        "pairs_mb": round(len(nested.first) * 12 / 2**20, 1),
        "groups_mb": round(groups.indices.numel() * 4 / 2**20, 2),
    }


def dense(table: Tensor, theta: float, codes: int) -> dict[str, Any]:
    """The plain way on ``table``: one matrix of all cosines. Scaled by the square to ``codes``."""
    before, began = _peak_mb(), time.process_time()
    unit = F.normalize(table, dim=1)
    close = (unit @ unit.T > theta).nonzero()
    used, scale = time.process_time() - began, (codes / len(table)) ** 2
    return {
        "codes": len(table),
        "pairs": len(close),
        "cpu_seconds": round(used, 2),
        "peak_mb_beyond_table": round(_peak_mb() - before, 1),
        "matrix_mb": round(len(table) ** 2 * 4 / 2**20, 1),
        "scaled_cpu_seconds": round(used * scale, 1),
        "scaled_matrix_mb": round(codes**2 * 4 / 2**20, 1),
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def blocks(
    groups: AcousticGroups, args: argparse.Namespace
) -> list[tuple[list[int], Tensor, Tensor]]:
    """Eight blocks of (ids drawn from the draft, draft rows, target rows), float32.

    Draft and target differ token by token and, more gently, group by group, so that group matching
    also rejects.
    """
    maker = torch.Generator().manual_seed(args.seed + 1)
    size = groups.vocab_size
    made: list[tuple[list[int], Tensor, Tensor]] = []
    family = groups.indices[groups.indptr[:-1]].long()
    for _ in range(8):
        shape = (args.lookahead + 1, size)
        target = 2.5 * torch.randn(shape, generator=maker)
        noise = torch.randn(shape, generator=maker)[:, family] + torch.randn(shape, generator=maker)
        draft = (target + noise)[:-1].softmax(1)
        ids = torch.multinomial(draft, 1, generator=maker)[:, 0].tolist()
        made.append((ids, draft, target.softmax(1)))
    return made


def time_rule(
    name: str, groups: AcousticGroups, table: Tensor, args: argparse.Namespace
) -> dict[str, Any]:
    """CPU time of one rule a round; the share is of ``--forward-ms``.

    A round is judged several times from the same random stream and the least time counts: what
    other processes do to caches and clocks can only add. Rounds differ, and their mean is taken.
    """
    rule = make_rule(name, groups=groups, embeddings=table)
    known = blocks(groups, args)
    spent: list[float] = []
    walls: list[float] = []
    rejected: list[float] = []
    trials: list[int] = []
    judged = accepted = 0
    for number in range(args.rounds):
        times: list[tuple[float, float]] = []
        for _ in range(REPEATS):
            source = Randomness(torch.Generator().manual_seed(args.seed + number))
            wall, began = time.perf_counter(), time.thread_time()
            verdict = rule.judge(*known[number % len(known)], source)
            times.append((time.thread_time() - began, time.perf_counter() - wall))
        spent.append(1000 * min(times)[0])
        walls.append(1000 * min(wall for _, wall in times))
        judged += len(verdict.judgements)
        accepted += verdict.accepted
        if verdict.next_kind != "bonus":
            rejected.append(spent[-1])
            trials.append(verdict.trials)
    mean = statistics.fmean(spent)
    return {
        "ms": round(mean, 4),
        "median_ms": round(statistics.median(spent), 4),
        "worst_ms": round(max(spent), 3),
        "rejecting_ms": round(statistics.fmean(rejected), 4) if rejected else None,
        "wall_median_ms": round(statistics.median(walls), 4),
        "share": round(mean / args.forward_ms, 5),
        "acceptance": round(accepted / judged, 4),
        "rejections": len(rejected),
        "trials_mean": round(statistics.fmean(trials), 2) if trials else None,
    }


def show(report: dict[str, Any]) -> None:
    """The figures as text."""
    setting_, groups = report["setting"], report["groups"]
    print(f"{setting_['cpu']}, {setting_['threads']} thread(s), mean group {groups['mean']:.1f}")
    for part in ("build", "dense"):
        if part in report:
            print(part + ": " + ", ".join(f"{key} {value}" for key, value in report[part].items()))
    print(f"{'rule':12}{'ms':>9}{'rejecting':>11}{'share':>9}{'accepted':>10}")
    for name, found in report["rules"].items():
        rejecting = "-" if found["rejecting_ms"] is None else f"{found['rejecting_ms']:.3f}"
        print(
            f"{name:12}{found['ms']:9.3f}{rejecting:>11}{found['share']:9.2%}"
            f"{found['acceptance']:10.3f}"
        )
