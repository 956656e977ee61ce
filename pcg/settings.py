"""One frozen `Settings`: which voice model, on what, within which limits.

Order: the defaults below, then one TOML of `spaces_config/` (or any path) named by `PCG_CONFIG`,
then `PCG_*` variables: `PCG_DEVICE=cuda`, `PCG_LIMITS_MAX_SECONDS=20`. Every mistake is one
sentence (`PcgError`): unknown key, wrong type, value out of range, weights that are not there.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from pcg.errors import PcgError

ROOT = Path(__file__).resolve().parent.parent
CONFIG_DIR = ROOT / "spaces_config"
BUNDLED_DIR = ROOT / "assets" / "bundled"
PREFIX = "PCG_"
# Read where they are used, not settings: where metric models, spellings and listening tests lie.
ELSEWHERE = frozenset(
    {
        "PCG_CONFIG",
        "PCG_ASR_MODEL",
        "PCG_SPEAKER_MODEL",
        "PCG_SPELLINGS",
        "PCG_LISTENING_DIR",
        "PCG_LISTENING_DATASET",
    }
)
DTYPES = ("auto", "float32", "float16-weights", "int8", "bfloat16", "float16")


@dataclass(frozen=True)
class Limits:
    """What one request and one visitor may ask for; seconds are of speech unless said."""

    max_text_chars: int = 600
    max_seconds: float = 30.0
    max_rules: int = 6
    max_lookahead: int = 16
    max_upload_mb: float = 20.0
    max_upload_seconds: float = 60.0
    max_trace_mb: float = 8.0
    request_seconds: float = 180.0  # wall clock; generators stop themselves when it has passed
    visitor_requests_per_minute: int = 30
    visitor_compute_seconds_per_hour: float = 1800.0  # wall clock spent on one visitor's requests


@dataclass(frozen=True)
class Server:
    """How the page is served."""

    host: str = "127.0.0.1"
    port: int = 7860
    queue_size: int = 32  # waiting requests; the next visitor is told that the queue is full
    concurrency: int = 1  # requests that use the model at once
    mcp: bool = False  # offer the named endpoints as MCP tools
    api: bool = True  # offer the named endpoints to gradio_client
    temp_hours: float = 1.0  # files made for visitors are removed after this
    log_level: str = "info"


@dataclass(frozen=True)
class Gpu:
    """The arithmetic of a ZeroGPU duration: fixed + tokens / rate, within [minimum, maximum]."""

    zero: bool = False
    fixed_seconds: float = 6.0  # weights to the device, codec, first kernels
    tokens_per_second: float = 60.0  # slowest mode, measured; speech itself is 50 a second
    safety: float = 1.3
    min_seconds: int = 10
    max_seconds: int = 110


SECTIONS: tuple[type[Any], ...] = (Limits, Server, Gpu)


@dataclass(frozen=True)
class Settings:
    """Everything a process is told from outside, read once at the start."""

    model: str = "bundled"  # a name of pcg.catalog, or a folder
    draft: str = ""  # "" = the model's own draft
    device: str = "auto"
    dtype: str = "auto"
    compile: bool = False  # torch.compile; impossible on ZeroGPU
    speech_head: bool = True  # score only speech ids and the end token
    threads: int = 0  # torch threads; 0 leaves torch's choice
    metrics: bool = True  # WER and speaker similarity of what was made, where their models are
    data_dir: str = ""  # listening-test results and the like; "" = not kept past the process
    config: str = "defaults"  # which file these came from; set by load_settings
    limits: Limits = field(default_factory=Limits)
    server: Server = field(default_factory=Server)
    gpu: Gpu = field(default_factory=Gpu)

    def check(self) -> Settings:
        """Raise PcgError where a value cannot work; returns itself."""
        _check_device(self.device)
        _one_of("dtype", self.dtype, DTYPES)
        _one_of("server.log_level", self.server.log_level, ("debug", "info", "warning", "error"))
        for section in (self.limits, self.server, self.gpu):
            for item in fields(section):
                value = getattr(section, item.name)
                if isinstance(value, (int, float)) and not isinstance(value, bool) and value <= 0:
                    name = f"{type(section).__name__.lower()}.{item.name}"
                    raise PcgError(f"Setting {name} must be above zero, not {value}.")
        if self.server.port > 65535:
            raise PcgError(f"Setting server.port must be at most 65535, not {self.server.port}.")
        if self.threads < 0:
            raise PcgError(f"Setting threads must be 0 or more, not {self.threads}.")
        if self.gpu.zero and self.compile:
            raise PcgError("ZeroGPU forbids torch.compile: set compile = false.")
        if self.gpu.min_seconds > self.gpu.max_seconds:
            raise PcgError("Setting gpu.min_seconds must not exceed gpu.max_seconds.")
        return self

    def check_weights(self) -> Settings:
        """Raise PcgError when the model is a folder, or the bundled voice, and is not there."""
        if self.model == "bundled":
            _check_model_folder(BUNDLED_DIR, "the bundled voice")
        elif _looks_like_path(self.model):
            _check_model_folder(Path(self.model).expanduser(), f"model {self.model!r}")
        return self


def load_settings(
    config: str | None = None, environ: Mapping[str, str] | None = None, **overrides: Any
) -> Settings:
    """Defaults, then the TOML named by `config` or PCG_CONFIG, then PCG_* variables, then keywords.

    On ZeroGPU (`SPACES_ZERO_GPU` is set) the default TOML is "zerogpu".
    """
    env = os.environ if environ is None else environ
    name = config or env.get(PREFIX + "CONFIG") or ("zerogpu" if env.get("SPACES_ZERO_GPU") else "")
    values = read_config(name) if name else {}
    _merge(values, _from_environ(env))
    _merge(values, overrides)
    values["config"] = name or "defaults"
    return _build(Settings, values, "").check()


def available_configs() -> list[str]:
    """Names of the TOML files that ship, one a kind of Space."""
    return sorted(path.stem for path in CONFIG_DIR.glob("*.toml"))


def read_config(name: str) -> dict[str, Any]:
    """The contents of `spaces_config/NAME.toml`, or of the file NAME itself."""
    path = Path(name).expanduser() if _looks_like_path(name) else CONFIG_DIR / f"{name}.toml"
    try:
        with path.open("rb") as handle:
            return tomllib.load(handle)
    except FileNotFoundError:
        known = ", ".join(available_configs()) or "none"
        raise PcgError(f"No settings file {name!r}; use a path or one of: {known}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PcgError(f"Settings file {name!r} is not valid TOML: {error}.") from None


def describe(settings: Settings) -> dict[str, Any]:
    """Settings as plain JSON values."""
    return dataclasses.asdict(settings)


def _build(cls: type[Any], values: Mapping[str, Any], prefix: str) -> Any:
    hints = get_type_hints(cls)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        known = ", ".join(sorted(hints))
        raise PcgError(f"Unknown setting {prefix + unknown[0]!r}; known here: {known}.")
    made = {}
    for key, value in values.items():
        kind = hints[key]
        if kind in SECTIONS:
            if not isinstance(value, Mapping):
                raise PcgError(f"Setting {prefix + key!r} must be a table [{key}].")
            made[key] = _build(kind, value, f"{prefix}{key}.")
        else:
            made[key] = _convert(prefix + key, value, kind)
    return cls(**made)


def _convert(name: str, value: Any, kind: type[Any]) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is kind:
        return value
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[kind]
    raise PcgError(f"Setting {name!r} must be {wanted}, not {value!r}.")


def _from_environ(env: Mapping[str, str]) -> dict[str, Any]:
    """PCG_DEVICE -> device, PCG_LIMITS_MAX_SECONDS -> limits.max_seconds; others are refused."""
    targets: dict[str, tuple[str, ...]] = {}
    hints = get_type_hints(Settings)
    kinds: dict[tuple[str, ...], type[Any]] = {}
    for key, kind in hints.items():
        if kind in SECTIONS:
            for inner, inner_kind in get_type_hints(kind).items():
                targets[f"{PREFIX}{key}_{inner}".upper()] = (key, inner)
                kinds[(key, inner)] = inner_kind
        elif key != "config":
            targets[f"{PREFIX}{key}".upper()] = (key,)
            kinds[(key,)] = kind
    values: dict[str, Any] = {}
    for name, raw in env.items():
        if not name.startswith(PREFIX) or name in ELSEWHERE:
            continue
        if name not in targets:
            raise PcgError(f"Unknown variable {name}; settings are listed in pcg/settings.py.")
        where = targets[name]
        spot = values
        for part in where[:-1]:
            spot = spot.setdefault(part, {})
        spot[where[-1]] = _parse(name, raw, kinds[where])
    return values


def _parse(name: str, raw: str, kind: type[Any]) -> Any:
    text = raw.strip()
    if kind is bool:
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        if text.lower() in ("0", "false", "no", "off"):
            return False
        raise PcgError(f"Variable {name} must be true or false, not {raw!r}.")
    if kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise PcgError(f"Variable {name} must be {wanted}, not {raw!r}.") from None


def _merge(values: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(values.get(key), dict):
            _merge(values[key], value)
        else:
            values[key] = value


def _check_device(device: str) -> None:
    kind, _, index = device.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (index and not index.isdigit()):
        raise PcgError(f"Setting 'device' must be auto, cpu, mps, cuda or cuda:N, not {device!r}.")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise PcgError(f"Setting {name!r} must be one of {', '.join(allowed)}, not {value!r}.")


def _looks_like_path(name: str) -> bool:
    return name.endswith(".toml") or name.startswith((".", "~")) or Path(name).is_absolute()


def _check_model_folder(folder: Path, what: str) -> None:
    target = folder / "target" if (folder / "target").is_dir() else folder
    if not (target / "config.json").is_file():
        raise PcgError(
            f"The weights of {what} are missing: {target} holds no config.json; "
            "restore the folder or name another model with PCG_MODEL."
        )
    if not any(target.glob("*.safetensors")):
        raise PcgError(f"The weights of {what} are missing: {target} holds no *.safetensors.")
