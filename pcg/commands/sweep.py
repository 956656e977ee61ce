"""`python -m pcg sweep`: acceptance, tokens a round and expected speed over theta, for one text."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pcg.commands import voice_options as options
from pcg.errors import PcgError
from pcg.evaluation.replica import judged_rows


def add_parser(subparsers: Any) -> None:
    """Add the sub-command to the program's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "sweep",
        help="acceptance over theta for one text, from one exact decoding",
        description="Decode TEXT exactly once, then evaluate every theta on its rows.",
    )
    options.add_options(parser)
    parser.add_argument("--thetas", help="comma separated (default: by mean group size)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    from pcg.evaluation.laws import as_rows, overlap
    from pcg.synthesis import speak

    model = options.load_model(args)
    if model.groups is None:
        raise PcgError(f"The model {model.name} has no groups to sweep over.")
    voice = options.choose_voice(args, model)
    request = options.make_request(args, model, voice, "sd", {})
    draft, target = as_rows(*judged_rows(speak(model, request, keep_rows=True, preview=False)))
    points = [_point(args, model, draft, target, theta) for theta in _thetas(args, model)]
    exact = _speed(float(overlap(draft, target).mean()), args.lookahead, model)
    result = {"positions": len(draft), "voice": voice and voice.name, "sd": exact, "points": points}
    print(f"SD: acceptance {exact['acceptance']:.3f}, {exact['tokens_per_round']:.2f} a round")
    for point in points:
        print(
            f"theta {point['theta']:.4f}  mean group {point['mean_group_size']:7.1f}  acceptance "
            f"{point['acceptance']:.3f}  SSD at the same: beta {point['ssd_beta']:.2f}  tokens a "
            f"round {point['tokens_per_round']:.2f}  token drift {point['pcg_token_drift']:.3f}, "
            f"SSD {point['ssd_token_drift']:.3f}"
        )
    if args.json:
        print(json.dumps(result, separators=(",", ":")))
    return 0


def _thetas(args: argparse.Namespace, model: Any) -> list[float]:
    nested = model.groups
    if args.thetas:
        try:
            return [float(theta) for theta in args.thetas.split(",")]
        except ValueError as error:
            raise PcgError("--thetas takes numbers with commas, such as 0.3,0.4,0.5.") from error
    from pcg.evaluation.laws import reachable

    sizes = reachable(nested, (1.5, 2, 4, 8, 16, 32, 64, 128))
    return [float(nested.calibrate(mean_size=size)) for size in sizes]


def _point(
    args: argparse.Namespace, model: Any, draft: Any, target: Any, theta: float
) -> dict[str, Any]:
    from pcg.evaluation import laws

    groups = model.groups.at(theta)
    matrix = laws.adjacency(groups)
    accepted = laws.overlap(laws.coarse(draft, matrix), laws.coarse(target, matrix)).mean()
    beta = laws.solve_beta(draft, target, float(accepted))
    drift = laws.distance(laws.pcg_law(draft, target, matrix), target).mean()
    ssd = laws.distance(laws.ssd_law(draft, target, beta), target).mean()
    return {
        "theta": round(theta, 5),
        "mean_group_size": round(float(matrix.nnz / matrix.shape[0]), 2),
        "ssd_beta": round(beta, 4),
        "pcg_token_drift": round(float(drift), 5),
        "ssd_token_drift": round(float(ssd), 5),
        **_speed(float(accepted), args.lookahead, model),
    }


def _speed(acceptance: float, lookahead: int, model: Any) -> dict[str, Any]:
    """Expected tokens a round and, where c and v were measured, the expected speed-up."""
    from pcg.theory import expected_speedup, expected_tokens

    expected = expected_tokens(acceptance, lookahead)
    result = {"acceptance": round(acceptance, 5), "tokens_per_round": round(expected, 4)}
    measured = model.measured
    if "c" in measured and "v" in measured:
        speed = expected_speedup(acceptance, lookahead, measured["c"], measured["v"])
        result["expected_speedup"] = round(speed, 4)
    return result
