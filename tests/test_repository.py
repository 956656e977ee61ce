"""What must never be in the repository, over the files that git tracks."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from pcg.publish import PICKLES, SECRETS
from pcg.settings import ROOT

TEXT = {".py", ".js", ".css", ".md", ".toml", ".txt", ".json", ".jsonl", ".yaml", ".yml", ".html"}
# Spelled in pieces, so that this file does not find itself.
ABSOLUTE = re.compile("|".join(rf"(?<![\w./-])/{top}/" for top in ("work", "root", "home/[a-z]")))
HOSTS = re.compile(
    "|".join(("pypi" + r"\.org", "pythonhosted" + r"\.org", "npmjs" + r"\.", "deb" + r"\.debian"))
)
LOADERS = {"pickle", "cPickle", "dill", "shelve", "marshal", "joblib", "cloudpickle"}
LARGEST_MB = 100


def _tracked() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True
        ).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def _texts() -> list[tuple[Path, str]]:
    return [
        (path.relative_to(ROOT), path.read_text("utf-8"))
        for path in _tracked()
        if path.suffix in TEXT or path.parent.name == ".ci"
    ]


def test_no_path_of_one_machine() -> None:
    found = [
        str(path)
        for path, text in _texts()
        if ABSOLUTE.search(text) and path.name not in ("Dockerfile", "test_repository.py")
    ]
    assert found == []


def test_no_host_of_a_package_registry() -> None:
    assert [str(path) for path, text in _texts() if HOSTS.search(text)] == []


def test_no_secret_and_no_pickle() -> None:
    for path in _tracked():
        assert path.suffix not in PICKLES, path
        data = path.read_bytes()
        assert not any(pattern.search(data) for pattern in SECRETS), path


def test_no_large_file() -> None:
    large = [str(path) for path in _tracked() if path.stat().st_size > LARGEST_MB * 1e6]
    assert large == []


def _python() -> list[tuple[Path, ast.Module]]:
    return [
        (path.relative_to(ROOT), ast.parse(path.read_text("utf-8")))
        for path in _tracked()
        if path.suffix == ".py" and path.is_relative_to(ROOT / "pcg")
    ]


def test_nothing_is_unpickled() -> None:
    """No pickle module, no numpy with allow_pickle, no torch.load but with weights_only=True."""
    wrong = []
    for path, tree in _python():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import) and LOADERS & {
                a.name.split(".")[0] for a in node.names
            }:
                wrong.append(f"{path}:{node.lineno} imports {node.names[0].name}")
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LOADERS:
                wrong.append(f"{path}:{node.lineno} imports {node.module}")
            if isinstance(node, ast.Call):
                flags = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
                if flags.get("allow_pickle"):
                    wrong.append(f"{path}:{node.lineno} allows pickles")
                if ast.unparse(node.func) == "torch.load" and flags.get("weights_only") is not True:
                    wrong.append(f"{path}:{node.lineno} torch.load without weights_only=True")
    assert wrong == []


def test_nothing_global_is_seeded() -> None:
    """Requests draw from their own generators: two visitors never share a random stream."""
    wrong = []
    for path, tree in _python():
        for node in ast.walk(tree):
            # training is one process; the engine benchmark drives generate(), which knows no other
            apart = {"training", "testing.py"} & set(path.parts) or path.match("bench/engine.py")
            if isinstance(node, ast.Call) and not apart:
                name = ast.unparse(node.func)
                if name in (
                    "torch.manual_seed",
                    "np.random.seed",
                    "numpy.random.seed",
                    "random.seed",
                ):
                    wrong.append(f"{path}:{node.lineno} {name}")
    assert wrong == []


def test_probabilities_are_spelled_out() -> None:
    """No argument is called p or q: the papers disagree on which is the draft's."""
    wrong = []
    for path, tree in _python():
        for node in ast.walk(tree):
            core = path.parts[1] in ("acceptance", "coarse.py", "sampling.py", "decoding.py")
            if core and isinstance(node, ast.FunctionDef | ast.Lambda):
                names = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
                if names & {"p", "q"}:
                    wrong.append(f"{path}:{node.lineno}")
    assert wrong == []


def test_files_stay_small() -> None:
    """A Python file that has outgrown one idea is split."""
    long = {
        str(path): lines
        for path, text in _texts()
        if path.suffix == ".py" and (lines := text.count("\n")) > 420
    }
    assert long == {}
