"""The clips of an evaluation run: runs keep hashes of codes, not sound, so it is spoken again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pcg.errors import PcgError
from pcg.listening.sources import Recording

RECORDING = "recording"


def is_run(folder: Path) -> bool:
    """Whether a folder was written by `python -m pcg evaluate`."""
    return (folder / "plan.json").is_file()


def recordings_of_run(
    folder: Path,
    count: int = 10,
    arms: Sequence[str] = (),
    original: bool = False,
    make: Callable[[Any], Any] | None = None,
) -> list[Recording]:
    """The first `count` utterances that every arm of the run spoke, one system an arm.

    `arms`: names to keep (default: all that speak). `original`: add each text's own recording as
    the system "recording". `make`: builds the speaker from the run's options (default: the
    evaluation's own). Every take is checked against the run's hash of its codes; `PcgError` when
    this machine speaks something else, or when fewer than `count` utterances are complete.
    """
    from pcg.evaluation.arms import utterance_seed
    from pcg.evaluation.recordings import recording
    from pcg.evaluation.replica import Replica, row_key
    from pcg.evaluation.rows import latest, read_rows
    from pcg.evaluation.runner import read_plan

    plan = read_plan(folder)
    spoken = {row["key"]: row for row in latest(read_rows(folder / "rows.jsonl"))}
    chosen = [arm for arm in plan.arms if arm.kind == "speak" and (not arms or arm.name in arms)]
    missing = set(arms) - {arm.name for arm in chosen}
    if missing or not chosen:
        names = ", ".join(arm.name for arm in plan.arms if arm.kind == "speak")
        raise PcgError(f"This run has no spoken arm {', '.join(sorted(missing))}; it has {names}.")
    whole = [
        utterance
        for utterance in plan.utterances
        if all(spoken.get(row_key(utterance, arm), {}).get("status") == "ok" for arm in chosen)
        and (utterance.audio or not original)
    ]
    if len(whole) < count:
        raise PcgError(f"Only {len(whole)} utterances of this run are complete: ask for fewer.")
    speaker = (make or Replica)(plan.options)
    found = []
    for utterance in whole[:count]:
        seed = utterance_seed(plan.options.seed, utterance.id)
        for arm in chosen:
            audio, _, row = speaker.spoken(utterance, arm, seed)
            if row["codes_sha"] != spoken[row_key(utterance, arm)]["codes_sha"]:
                raise PcgError(
                    f"{utterance.id} by {arm.name} is not what the run spoke: use the weights, "
                    "the dtype and the kind of machine of the run."
                )
            found.append(Recording(utterance.id, arm.name, audio, 16_000, utterance.text))
        if original:
            sound = recording(utterance.audio, utterance.text)
            found.append(Recording(utterance.id, RECORDING, sound, 16_000, utterance.text))
    return found
