"""Sound from codes for the timeline and the map: short windows, no visitor state."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pcg.errors import PcgError
from pcg.ui import runtime
from pcg.ui.components.player import audio_file, pcm_chunk

MOST_CODES = 120
CARRIER_SECONDS = 0.45
_LOCK = threading.Lock()


def decode(codes: Sequence[int]) -> Any:
    """Float32 samples of a code sequence by the page's codec."""
    model = runtime.model()
    with _LOCK:
        return model.codec.decode(list(codes))


def check_codes(codes: Any, most: int = MOST_CODES) -> list[int]:
    """Codes from a browser, all in range, at most `most`."""
    n_codes = runtime.model().codec.n_codes
    if not isinstance(codes, list) or not 0 < len(codes) <= most:
        raise PcgError(f"Between 1 and {most} tokens can be heard at once.")
    if not all(isinstance(c, int) and not isinstance(c, bool) and 0 <= c < n_codes for c in codes):
        raise PcgError(f"Speech tokens are numbers from 0 to {n_codes - 1}.")
    return codes


@runtime.guarded
def hear_codes(payload: Mapping[str, Any]) -> dict[str, Any]:
    """`{"pcm", "sample_rate", "hop"}` for `{"codes": [...]}`."""
    codes = check_codes(payload.get("codes") if isinstance(payload, Mapping) else None)
    codec = runtime.model().codec
    return {
        "pcm": pcm_chunk(decode(codes)),
        "sample_rate": codec.sample_rate,
        "hop": codec.hop,
    }


@cache
def carrier() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Codes before and after the place where a token of the map is heard."""
    model = runtime.model()
    side = max(4, round(CARRIER_SECONDS * model.codec.sample_rate / model.codec.hop))
    for voice in runtime.voices():
        codes = voice.codes
        if codes is None:
            codes = tuple(int(c) for c in model.codec.encode(voice.audio))
        middle = len(codes) // 2
        if middle > side:
            return tuple(codes[middle - side : middle]), tuple(codes[middle : middle + side])
    return (0,) * side, (0,) * side


@runtime.guarded
def hear_token(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A token three times in a row inside a stretch of a bundled voice: `{"id"}` -> sound."""
    token = check_codes([payload.get("id")] if isinstance(payload, Mapping) else None)[0]
    codec = runtime.model().codec
    before, after = carrier()
    step = codec.hop / codec.sample_rate
    begin = len(before) * step
    return {
        "pcm": pcm_chunk(decode([*before, token, token, token, *after])),
        "sample_rate": codec.sample_rate,
        "from": max(0.0, begin - 0.2),
        "to": begin + 3 * step + 0.2,
        "focus_from": begin,
        "focus_to": begin + 3 * step,
    }


def trace_audio(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Sound of a loaded trace, when its codes fit the codec of this page; else None."""
    try:
        codec = runtime.model().codec
    except PcgError:
        return None
    header = value["header"]
    if header.get("n_codes") != codec.n_codes or header.get("hop") != codec.hop:
        return None
    codes = [t for r in value["rounds"] for t in r["e"] if 0 <= t < codec.n_codes]
    if not codes or len(codes) > 4000:
        return None
    return audio_file(decode(codes), codec.sample_rate)
