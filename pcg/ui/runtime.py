"""What all visitors share: the voice model, its limits and one lock; nothing of a visitor."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pcg.errors import PcgError
from pcg.serving.health import HEALTH
from pcg.settings import BUNDLED_DIR

if TYPE_CHECKING:
    from pcg.settings import Limits, Settings
    from pcg.voice_model import VoiceModel
    from pcg.voices import VoicePrompt

P = ParamSpec("P")
R = TypeVar("R")

WARM_UP_AFTER = 4.0  # seconds; the page itself is answered first
_LOCK = threading.RLock()
_STOPS: dict[str, threading.Event] = {}


@cache
def settings() -> Settings:
    """The house's settings, read once."""
    from pcg.settings import load_settings

    return load_settings()


def limits() -> Limits:
    """What one request and one visitor may ask for."""
    return settings().limits


@cache
def _load() -> VoiceModel:
    from pcg import catalog

    known = settings()
    try:
        loaded = catalog.load(known.model, known)
    except Exception:
        HEALTH.failed()
        raise
    HEALTH.ready(loaded.name)
    return loaded


def model() -> VoiceModel:
    """The voice model, loaded at the first call; raises `PcgError` when it cannot be."""
    with _LOCK:
        try:
            return _load()
        except (ImportError, FileNotFoundError) as error:
            raise PcgError("The voice model of this page is not installed yet.") from error


@cache
def default_theta() -> float | None:
    """The model's own theta: from its folder's card where there is one, so that none is loaded."""
    known = settings()
    folder = BUNDLED_DIR if known.model == "bundled" else Path(known.model).expanduser()
    try:
        return float(json.loads((folder / "pcg.json").read_text("utf-8"))["default_theta"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        return float(model().default_theta)
    except PcgError:
        return None


def warm_up() -> None:
    """Load the model a moment after the page has started; a request before that loads it itself."""

    def load() -> None:
        with contextlib.suppress(PcgError):
            model()

    if not settings().gpu.zero:
        timer = threading.Timer(WARM_UP_AFTER, load)
        timer.daemon = True
        timer.start()


@cache
def voices() -> tuple[VoicePrompt, ...]:
    """The model folder's own voices, else the bundled ones, in the order of their names."""
    from pcg.voices import bundled_voices

    own = Path(settings().model) / "voices"
    return tuple(bundled_voices(own if own.is_dir() else None))


def voice_named(name: str) -> VoicePrompt:
    """One bundled voice by its name."""
    for voice in voices():
        if voice.name == name:
            return voice
    raise PcgError(f"There is no voice called {name!r}; choose one from the list.")


def stop_event(session: str | None) -> threading.Event:
    """A fresh stop flag for a visitor's next run; an older run of the same visitor is stopped."""
    key = session or "api"
    event = threading.Event()
    with _LOCK:
        old = _STOPS.get(key) if session else None
        _STOPS[key] = event
    if old is not None:
        old.set()
    return event


def stop(session: str | None) -> None:
    """Ask a visitor's run to end at its next round."""
    with _LOCK:
        event = _STOPS.pop(session or "", None)
    if event is not None:
        event.set()


def guarded(fn: Callable[P, R]) -> Callable[P, R | dict[str, str]]:
    """A server function whose `PcgError` becomes `{"error": sentence}`."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R | dict[str, str]:
        try:
            return fn(*args, **kwargs)
        except PcgError as error:
            return {"error": str(error)}

    call.__name__ = getattr(fn, "__name__", "call")
    call.__doc__ = fn.__doc__
    return call
