"""Logs hold no texts; health answers; durations add up."""

import io
import json
import logging

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pcg.serving import durations, logs
from pcg.serving.health import Health, route
from pcg.settings import load_settings


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonFormatter())
    level = logs.LOGGER.level
    logs.LOGGER.addHandler(handler)
    logs.LOGGER.setLevel("INFO")
    yield stream
    logs.LOGGER.removeHandler(handler)
    logs.LOGGER.setLevel(level)


def test_what_people_typed_is_never_logged(lines: io.StringIO) -> None:
    logs.event("say", text="my secret", endpoint="say", rule="x" * 200, tokens=5, audio=b"12")
    with pytest.raises(ValueError), logs.timed("say", rule="pcg"):
        raise ValueError("my secret")
    first, second = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert "secret" not in lines.getvalue()
    assert (first["endpoint"], first["tokens"]) == ("say", 5)
    assert set(first) == {"time", "level", "event", "endpoint", "tokens"}
    assert (second["outcome"], second["error"]) == ("failed", "ValueError")


def test_visitors_are_hashes() -> None:
    one, other = logs.visitor_id("198.51.100.7", "a"), logs.visitor_id("198.51.100.7", "b")
    assert one != other
    assert len(one) == 8
    assert one == logs.visitor_id("198.51.100.7", "a")


def test_healthz_tells_state_and_no_more() -> None:
    health = Health()
    client = TestClient(Starlette(routes=[route(health)]))
    assert client.get("/healthz").json()["model_state"] == "idle"
    health.ready("bundled")
    health.enter()
    report = client.get("/healthz")
    assert (report.status_code, report.json()["active"]) == (200, 1)
    health.failed()
    assert client.get("/healthz").status_code == 503


def test_gpu_seconds_follow_the_arithmetic_and_the_bounds() -> None:
    settings = load_settings("zerogpu", {})
    assert durations.gpu_seconds(settings, 4.0, rules=3) == 21
    assert durations.gpu_seconds(settings, 0.1) == settings.gpu.min_seconds
    assert durations.gpu_seconds(settings, 1e6, rules=99) == settings.gpu.max_seconds
    assert durations.speech_seconds("x" * 10_000, settings) == settings.limits.max_seconds
