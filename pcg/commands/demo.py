"""``python -m pcg demo``: SD, SSD and PCG on toy tables, round by round, without weights."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from pcg.errors import PcgError

COLOURS = {"green": "32", "yellow": "33", "red": "31", "blue": "34", "bold": "1", "dim": "2"}
LABELS = {"sd": "SD (exact)", "ssd": "SSD (biased)", "pcg": "PCG (groups)"}


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "demo", help="watch SD, SSD and PCG on toy tables, without weights"
    )
    parser.add_argument("--seed", type=int, default=0, help="tables and random stream")
    parser.add_argument("--tokens", type=int, default=16, help="tokens to speak, 1 to 500")
    parser.add_argument("--lookahead", type=int, default=3)
    parser.add_argument("--theta", type=float, default=0.9, help="lower makes larger groups")
    parser.add_argument("--no-color", action="store_true", help="plain text (as NO_COLOR does)")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    from pcg.demo import run as run_demo

    if not 1 <= args.tokens <= 500 or not 0 <= args.seed < 2**63:
        raise PcgError("The demo speaks 1 to 500 tokens from a seed of 0 or more.")
    demo = run_demo(args.seed, args.tokens, args.lookahead, args.theta)
    paint = Paint(not args.no_color and not os.environ.get("NO_COLOR") and sys.stdout.isatty())
    print(opening(demo, paint))
    for name, trace in demo.traces.items():
        print("\n" + paint("bold", LABELS[name]))
        for one in trace.rounds:
            print(account(one, paint))
    print("\n" + closing(demo, paint))
    if args.json:
        print(json.dumps(as_json(args, demo), separators=(",", ":")))
    return 0


class Paint:
    """Wraps words in ANSI colours, or leaves them plain."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, colour: str, words: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{words}\x1b[0m" if self.on else words


def opening(demo: Any, paint: Paint) -> str:
    """What is about to be seen."""
    from pcg.demo import name_of

    held = demo.groups.members(1).tolist()
    return (
        "Tokens are a family of sounds and a shade: a1 a2 a3 a4, e1 .. s4. The draft guesses the "
        f"family well and the shade badly.\nAt theta {demo.groups.theta:g} a group holds "
        f"{demo.groups.stats()['mean']:.1f} tokens on average, {name_of(1)}'s "
        f"{' '.join(map(name_of, held))}. SSD's beta {demo.beta:.3f} makes it accept as often as "
        "PCG.\nMarks: + accepted, ~ accepted though exact matching would not, x rejected, "
        "> drawn from the target."
    )


def account(one: Any, paint: Paint) -> str:
    """One round in a line a drafted token."""
    from pcg.demo import name_of

    lines = []
    for judged in one.verdict.judgements:
        mark, colour = ("x", "red")
        if judged.accepted:
            mark, colour = ("+", "green") if judged.exact_accepts else ("~", "yellow")
        label = "" if judged.group is None else f" as group {name_of(judged.group)}"
        lines.append(
            f"    {paint(colour, mark + ' ' + name_of(judged.token))}{label}: {judged.why}"
        )
    verdict = one.verdict
    drawn = {"bonus": "the target's own row", "residual": "what the draft had too little of"}
    after = drawn.get(verdict.next_kind, "the target's row, as no residual was left")
    trials = f" after {verdict.trials} trials" if verdict.trials else ""
    lines.append(f"    {paint('blue', '> ' + name_of(verdict.next_token))}: {after}{trials}.")
    spoken = " ".join(map(name_of, one.emitted))
    drafted = " ".join(map(name_of, one.drafted)) or "nothing"
    head = f"  round {one.index}: drafted {drafted}; spoke {paint('bold', spoken)}"
    return "\n".join([head + (f" ({one.finished})" if one.finished else ""), *lines])


COLUMNS = (
    ("acceptance_rate", "accepted"),
    ("tokens_per_round", "a round"),
    ("expected_acceptance", "E[acc]"),
    ("expected_tokens_per_round", "E[round]"),
    ("token_drift", "token drift"),
    ("group_drift", "group drift"),
)


def closing(demo: Any, paint: Paint) -> str:
    """The table at the end."""
    lines = [paint("bold", "rule".ljust(14) + "".join(head.rjust(13) for _, head in COLUMNS))]
    for name, found in demo.figures.items():
        cells = [found[key] for key, _ in COLUMNS]
        shown = ["-" if cell is None else f"{cell:.3f}" for cell in cells]
        lines.append(LABELS[name].ljust(14) + "".join(cell.rjust(13) for cell in shown))
    note = (
        "E[..] and drift (total variation from the target's law) are exact means over all rows. "
        "Group drift is of\nlabels drawn afresh from the emitted tokens; the labels that PCG draws "
        "follow the target's group law exactly."
    )
    return "\n".join([*lines, paint("dim", note)])


def as_json(args: argparse.Namespace, demo: Any) -> dict[str, Any]:
    """Everything that was shown, as plain values."""
    from pcg.trace import round_to_dict

    return {
        "seed": args.seed,
        "theta": demo.groups.theta,
        "beta": demo.beta,
        "rules": {
            name: {"figures": demo.figures[name], "rounds": list(map(round_to_dict, trace.rounds))}
            for name, trace in demo.traces.items()
        },
    }
