"""One line of JSON an event, without what people typed, said or heard.

Only the fields of `ALLOWED` are ever written, and text among them only as a name from the code
(a rule, an endpoint, an error's class). A visitor is a salted hash that changes with the process.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOGGER = logging.getLogger("pcg")
ALLOWED = frozenset(
    {"endpoint", "visitor", "rule", "rules", "seconds", "tokens", "rounds", "text_chars", "outcome"}
    | {"error", "queue", "model", "device", "dtype", "lookahead", "audio_seconds", "upload_bytes"}
    | {"files", "bytes", "port", "config"}
)
LONGEST = 60
_SALT = secrets.token_bytes(16)


def visitor_id(address: str | None, session: str | None = None) -> str:
    """Eight hex digits that tell visitors apart within this process and nothing else."""
    data = f"{address or ''}|{session or ''}".encode()
    return hashlib.blake2b(data, key=_SALT, digest_size=4).hexdigest()


def event(name: str, **values: Any) -> None:
    """Log one event; unknown fields and values that are not plain are dropped."""
    LOGGER.info(
        name, extra={"pcg": {k: v for k, v in values.items() if k in ALLOWED and _plain(v)}}
    )


@contextmanager
def timed(name: str, **values: Any) -> Iterator[dict[str, Any]]:
    """Log an event with its seconds and outcome; the yielded dict takes more fields."""
    began, more = time.perf_counter(), dict(values)
    try:
        yield more
        more.setdefault("outcome", "done")
    except GeneratorExit:
        more["outcome"] = "stopped"
        raise
    except BaseException as error:
        more.update(outcome="failed", error=type(error).__name__)
        raise
    finally:
        event(name, **more, seconds=round(time.perf_counter() - began, 3))


class JsonFormatter(logging.Formatter):
    """{"time", "level", "event", ...fields}; a foreign message is cut, an exception named only."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of compact JSON."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{stamp}Z", "level": record.levelname.lower(), "event": str(record.msg)}
        line["event"] = line["event"][:LONGEST]
        line.update(getattr(record, "pcg", {}))
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=True, separators=(",", ":"))


def set_up(level: str = "info") -> None:
    """Send the package's events to standard error as JSON lines; safe to call twice."""
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False
    if not LOGGER.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonFormatter())
        LOGGER.addHandler(handler)


def _plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST and value.isprintable()
    if isinstance(value, (list, tuple)):
        return len(value) <= 16 and all(_plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float))
