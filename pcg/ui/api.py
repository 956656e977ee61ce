"""Named endpoints for `gradio_client` and MCP: say, compare, theta_sweep, swap, group.

None of them keeps anything of the caller. Every error is one sentence.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.context import LocalContext

from pcg.errors import PcgError
from pcg.serving.guard import guard
from pcg.ui import inputs, map, running, runtime, sounds, tune, voice_input
from pcg.ui.trace_view import plain
from pcg.ui.visitor import Run, Visitor

NO_LIMIT_SEED = -1
# What values of the wrong type or shape raise; the guard has logged which.
WRONG_FORM = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
FORM = "A value has the wrong type or form: see this endpoint's description."


def _speak(
    text: str, rules: Any, voice: str, lookahead: int, temperature: float, seed: int
) -> Visitor:
    """Run the rules with a fresh visitor; raises the first rule's error."""
    seed = inputs.new_seed() if seed == NO_LIMIT_SEED else seed
    choices = inputs.check(text, rules, lookahead, temperature, 1.0, 0, seed)
    names = [name for name in voice_input.voice_names() if name != voice_input.OWN]
    prompt = runtime.voice_named(voice or (names or [""])[0])
    visitor = Visitor()
    page = None
    for page in running.run_all(choices, prompt, visitor, lambda: False):
        pass
    failed = [lane.message for lane in page.lanes if lane.state == "error"] if page else []
    if failed:
        raise PcgError(failed[0])
    return visitor


def _wav(run: Run) -> str:
    import soundfile

    out = io.BytesIO()
    soundfile.write(out, run.audio, run.sample_rate, "PCM_16", format="WAV")
    return base64.b64encode(out.getvalue()).decode("ascii")


def _report(run: Run) -> dict[str, Any]:
    report = {"rule": run.rule, "params": run.params, "seed": run.settings["seed"]}
    report |= {"summary": run.summary, **run.figures, "sample_rate": run.sample_rate}
    return plain({**report, "codes": run.codes, "wav_base64": _wav(run)})


def _params(text: str) -> dict[str, float]:
    try:
        params = json.loads(text or "{}")
    except ValueError:
        params = None
    if not isinstance(params, dict):
        raise PcgError('Parameters are a JSON object such as {"theta": 0.4}.')
    return params


def say(
    text: str,
    rule: str = "pcg",
    params: str = "{}",
    voice: str = "",
    lookahead: int = 3,
    temperature: float = 0.8,
    seed: int = 0,
) -> dict[str, Any]:
    """Say a text with one rule.

    Args:
        text: what to say, in English.
        rule: a rule's name, such as target, sd, ssd or pcg.
        params: the rule's parameters as a JSON object, such as {"theta": 0.4}.
        voice: a bundled voice's name; empty for the first.
        lookahead: how many tokens the draft proposes each round.
        temperature: of both models, 0 to 2.
        seed: of the random numbers; -1 for a new one.

    Returns:
        summary, codes and a WAV file in base64.
    """
    chosen = [{"rule": rule, "params": _params(params)}]
    return _report(_speak(text, chosen, voice, lookahead, temperature, seed).runs[0])


def compare(
    text: str,
    rules: str = "target,sd,ssd,pcg",
    voice: str = "",
    lookahead: int = 3,
    temperature: float = 0.8,
    seed: int = 0,
) -> dict[str, Any]:
    """Say a text with several rules, the same seed for all.

    Args:
        text: what to say, in English.
        rules: rule names separated by commas, or a JSON list of {"rule", "params"}.
        voice: a bundled voice's name; empty for the first.
        lookahead: how many tokens the draft proposes each round.
        temperature: of both models, 0 to 2.
        seed: of the random numbers; -1 for a new one.

    Returns:
        runs: one report a rule, with the speed-up over target-only when that ran too.
    """
    if rules.lstrip().startswith("["):
        try:
            chosen = json.loads(rules)
        except ValueError as error:
            raise PcgError("Rules are names separated by commas or a JSON list.") from error
    else:
        chosen = [{"rule": name.strip(), "params": {}} for name in rules.split(",")]
    visitor = _speak(text, chosen, voice, lookahead, temperature, seed)
    return {"runs": [_report(run) for run in visitor.runs]}


def theta_sweep(text: str, voice: str = "", lookahead: int = 3, seed: int = 0) -> dict[str, Any]:
    """Group sizes and expected acceptance over theta, from one exact utterance.

    Args:
        text: what to say, in English.
        voice: a bundled voice's name; empty for the first.
        lookahead: how many tokens the draft proposes each round.
        seed: of the random numbers; -1 for a new one.
    """
    rules = [{"rule": "target", "params": {}}, {"rule": "sd", "params": {}}]
    run = _speak(text, rules, voice, lookahead, 0.8, seed).runs[-1]
    thetas, sizes = tune.grid()
    return plain({"thetas": thetas, "mean_sizes": sizes, **tune.curves(run, thetas)})


def swap(
    codes: list[int], theta: float = 0.4, share: float = 0.9, seed: int = 0, control: str = "group"
) -> dict[str, Any]:
    """Swap a share of speech tokens inside their groups.

    Args:
        codes: speech tokens, as `say` returns them.
        theta: cosine above which two tokens sound alike.
        share: of the tokens to swap, 0 to 1.
        seed: of the random choice.
        control: group, shuffled or any.
    """
    from pcg.swap import swap_codes

    codes = sounds.check_codes(codes, most=4000)
    theta = inputs.number_in(theta, "Theta", -1.0, 1.0)
    seed = int(inputs.number_in(seed, "Seed", 0, inputs.SEED_LIMIT))
    share = inputs.number_in(share, "The share", 0.0, 1.0)
    groups = map.groups_at(round(theta, 4))
    done = swap_codes(codes, groups, share, seed, control)  # type: ignore[arg-type]
    return {
        "codes": list(done.codes),
        "positions": list(done.positions),
        "realised": done.realised,
        "possible": done.possible,
    }


def group(token: int, theta: float = 0.4) -> dict[str, Any]:
    """The members of one token's acoustic similarity group, nearest first.

    Args:
        token: a speech token.
        theta: cosine above which two tokens sound alike.
    """
    theta = inputs.number_in(theta, "Theta", -1.0, 1.0)
    found = map.members_by_cosine(token, round(theta, 4))
    return {"size": len(found), "members": [[i, round(c, 6)] for i, c in found]}


def register() -> None:
    """Add the endpoints to the current Blocks."""
    heavy = {"concurrency_id": "model"}
    for fn, options in (
        (say, heavy),
        (compare, heavy),
        (theta_sweep, heavy),
        (swap, {}),
        (group, {}),
    ):
        gr.api(_shown(fn), api_name=fn.__name__, **options)


def _short(sentence: str, most: int = 300) -> str:
    """A sentence that quotes what was sent, without all of it."""
    return sentence if len(sentence) <= most else f"{sentence[: most - 2]} …"


def _shown(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The same endpoint with `PcgError` as the sentence the caller sees."""
    from functools import wraps

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            with guard()(fn.__name__, LocalContext.request.get(None)):
                return fn(*args, **kwargs)
        except PcgError as error:
            raise gr.Error(_short(str(error)), print_exception=False) from error
        except WRONG_FORM as error:
            raise gr.Error(FORM, print_exception=False) from error

    return call
