"""Assemble the files of a Space in a folder, check them, and upload them with huggingface_hub.

The token comes from the environment (`HF_TOKEN`) and from nowhere else; it is never written,
printed or logged. Without an upload (`dry_run`) nothing leaves the machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pcg.errors import PcgError
from pcg.settings import ROOT, available_configs, load_settings

TOP = ("app.py", "requirements.txt", "README.md", "LICENSE", "NOTICE", "pyproject.toml")
FOLDERS = ("pcg", "assets", "spaces_config")
HARDWARE = {"cpu-basic": "cpu-basic", "zerogpu": "zero-a10g", "gpu": "l4x1"}
SYSTEM_PACKAGES = ("ffmpeg",)
MOST_MB, LARGEST_MB = 900.0, 200.0
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
# What access tokens look like, the usual private-key banner, and pickles by their names.
SECRETS = (
    re.compile(rb"\bhf_[A-Za-z0-9]{30,}"),
    re.compile(rb"\b(?:ghp|gho|github_pat)_[A-Za-z0-9_]{30,}"),
    re.compile(rb"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
)
PICKLES = frozenset({".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".dill"})


@dataclass(frozen=True)
class Assembly:
    """A folder ready to upload: `files` relative to it, total bytes, the variables to set."""

    folder: Path
    files: tuple[str, ...]
    total_bytes: int
    variables: Mapping[str, str]
    hardware: str


def assemble(folder: Path, config: str, root: Path = ROOT) -> Assembly:
    """Copy the tracked files a Space needs into the empty `folder`, adapted to `config`."""
    settings = load_settings(config, {})
    if config not in available_configs():
        raise PcgError(f"Publish with one of: {', '.join(available_configs())}.")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise PcgError(f"The folder {folder} is not empty; name a new one.")
    for name in tracked(root):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target)
    hardware = HARDWARE.get(config, "cpu-basic")
    readme = folder / "README.md"
    readme.write_text(front_matter(readme.read_text("utf-8"), hardware), "utf-8")
    (folder / "packages.txt").write_text("\n".join(SYSTEM_PACKAGES) + "\n", "utf-8")
    files = tuple(
        sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    )
    check(folder, files)
    if settings.model == "bundled" and not (folder / "assets/bundled/target").is_dir():
        raise PcgError("The bundled voice is not in assets/bundled; a Space without it is silent.")
    total = sum((folder / name).stat().st_size for name in files)
    return Assembly(folder, files, total, {"PCG_CONFIG": config}, hardware)


def tracked(root: Path) -> list[str]:
    """Files that git tracks under TOP and FOLDERS; where there is no git, all but caches."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "--", *TOP, *FOLDERS],
            capture_output=True,
            check=True,
        ).stdout.decode()
        names = [name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [name for name in TOP if (root / name).is_file()]
        for top in FOLDERS:
            names += [path.relative_to(root).as_posix() for path in (root / top).rglob("*.*")]
    kept = [name for name in names if "__pycache__" not in name and (root / name).is_file()]
    missing = [name for name in ("app.py", "requirements.txt", "README.md") if name not in kept]
    if missing:
        raise PcgError(f"{missing[0]} is missing; run this from a complete checkout.")
    return sorted(kept)


def front_matter(readme: str, hardware: str) -> str:
    """The README with its Space header's hardware hint replaced."""
    if not readme.startswith("---\n") or "\n---\n" not in readme[4:]:
        raise PcgError("README.md must begin with the Space's front matter.")
    header, body = readme[4:].split("\n---\n", 1)
    lines = [line for line in header.splitlines() if not line.startswith("suggested_hardware:")]
    return "---\n" + "\n".join([*lines, f"suggested_hardware: {hardware}"]) + "\n---\n" + body


def check(folder: Path, files: Iterable[str]) -> None:
    """Refuse secrets, pickles, links and sizes that a Space does not take."""
    total = 0.0
    for name in files:
        path = folder / name
        size = path.stat().st_size / 1e6
        total += size
        if path.is_symlink():
            raise PcgError(f"{name} is a link; a Space wants real files.")
        if path.suffix in PICKLES:
            raise PcgError(f"{name} looks like a pickle; only safetensors are published.")
        if size > LARGEST_MB:
            raise PcgError(f"{name} has {size:.0f} MB; at most {LARGEST_MB:.0f} are published.")
        if any(pattern.search(path.read_bytes()) for pattern in SECRETS):
            raise PcgError(f"{name} holds something that looks like a secret; take it out.")
    if total > MOST_MB:
        raise PcgError(f"The Space would have {total:.0f} MB; at most {MOST_MB:.0f} are published.")


def publish(
    repository: str, assembly: Assembly, *, private: bool = True, dry_run: bool = False
) -> str:
    """Create or update the Space `owner/name`; returns its name. A dry run uploads nothing."""
    if not REPOSITORY.fullmatch(repository):
        raise PcgError(f"Name the Space as owner/name, not {repository!r}.")
    if dry_run:
        return repository
    token = os.environ.get("HF_TOKEN")
    if not token:
        raise PcgError("Set HF_TOKEN to a token that may write the Space, or use --dry-run.")
    from huggingface_hub import HfApi

    api = HfApi(token=token)
    api.create_repo(
        repository, repo_type="space", space_sdk="gradio", private=private, exist_ok=True
    )
    for key, value in assembly.variables.items():
        api.add_space_variable(repository, key, value)
    api.upload_folder(
        repo_id=repository,
        repo_type="space",
        folder_path=str(assembly.folder),
        delete_patterns=["*"],
        commit_message="Publish",
    )
    return repository
