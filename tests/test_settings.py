"""Every way to get a setting wrong is one sentence; every TOML that ships is right."""

import re
from pathlib import Path

import pytest

from pcg.errors import PcgError
from pcg.settings import ELSEWHERE, ROOT, Settings, available_configs, load_settings


@pytest.mark.parametrize("name", available_configs())
def test_shipped_configs_load(name: str) -> None:
    assert load_settings(name, {}).config == name


def test_order_is_defaults_file_environment_keywords(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('device = "cpu"\n[limits]\nmax_seconds = 9\nmax_rules = 2\n')
    env = {"PCG_CONFIG": str(file), "PCG_LIMITS_MAX_RULES": "3", "PCG_SERVER_MCP": "yes"}
    settings = load_settings(environ=env, threads=2)
    assert (settings.device, settings.limits.max_seconds) == ("cpu", 9.0)
    assert (settings.limits.max_rules, settings.server.mcp, settings.threads) == (3, True, 2)
    assert settings.limits.max_text_chars == Settings().limits.max_text_chars


def test_zero_gpu_spaces_choose_their_file() -> None:
    assert load_settings(environ={"SPACES_ZERO_GPU": "true"}).gpu.zero


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("modle = 'x'", "Unknown setting 'modle'"),
        ("[limits]\nmax_second = 3", "Unknown setting 'limits.max_second'"),
        ("limits = 3", "must be a table"),
        ("threads = true", "whole number"),
        ("compile = 1", "true or false"),
        ("dtype = 'float64'", "must be one of"),
        ("device = 'gpu'", "must be auto"),
        ("threads = -1", "0 or more"),
        ("[limits]\nmax_rules = 0", "above zero"),
        ("[server]\nport = 99999", "at most 65535"),
        ("compile = true\n[gpu]\nzero = true", "forbids torch.compile"),
        ("[gpu]\nmin_seconds = 500", "must not exceed"),
        ("model = ", "not valid TOML"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, toml: str, words: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(toml)
    with pytest.raises(PcgError, match=words) as caught:
        load_settings(str(file), {})
    assert "\n" not in str(caught.value).strip() or "TOML" in words


@pytest.mark.parametrize(
    "env",
    [
        {"PCG_NOPE": "1"},
        {"PCG_LIMITS_MAX_RULES": "many"},
        {"PCG_COMPILE": "perhaps"},
        {"PCG_CONFIG": "nowhere"},
    ],
)
def test_wrong_variables(env: dict[str, str]) -> None:
    with pytest.raises(PcgError):
        load_settings(environ=env)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(PcgError, match=r"config\.json"):
        load_settings(environ={}, model=str(tmp_path)).check_weights()


def test_every_variable_in_the_code_is_known() -> None:
    known = set(ELSEWHERE)
    for section in ("limits", "server", "gpu"):
        known |= {f"PCG_{section}_{name}".upper() for name in vars(getattr(Settings(), section))}
    known |= {f"PCG_{name}".upper() for name in vars(Settings())}
    used = set()
    for file in (ROOT / "pcg").rglob("*.py"):
        used |= set(re.findall(r"[\"'](PCG_[A-Z_]+[A-Z])[\"']", file.read_text("utf-8")))
    assert used - known == set()
