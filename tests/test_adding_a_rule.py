"""A new rule is one new file and one registry line, and then it is everywhere.

The README's own example is written beside the others in a copy of the package, one line is added
to the registry, and a fresh process looks for it in the page, the command line and the evaluation.
"""

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pcg.settings import ROOT

EXAMPLE = re.search(
    r"<!-- example of a rule -->\n```python\n(.*?)```",
    (ROOT / "README.md").read_text("utf-8"),
    re.S,
)
LOOK = """
import json, sys
from types import SimpleNamespace
sys.path.insert(0, ".")
import torch
from pcg.acceptance import REGISTRY, make_rule
from pcg.ui import inputs
from pcg.commands import voice_options
from pcg.evaluation import experiments
from pcg.evaluation.arms import Options
from pcg.__main__ import build_parser

rows = torch.full((4, 5), 0.2)
rule = make_rule("coin", keep=1.0)
verdict = rule.judge([1, 2, 3], rows[:3], rows, torch.Generator().manual_seed(0))
words = ["say", "Hello.", "--rule", "coin:keep=0.9"]
options = Options(rules=("coin",))
replica = SimpleNamespace(model=SimpleNamespace(default_theta=0.4))
plan = experiments.Planner(replica, options, [], {})
page = [entry for entry in inputs.registry_view() if entry["name"] == "coin"]
print(json.dumps({
    "accepted": verdict.accepted,
    "page": page[0]["parameters"][0]["name"],
    "checked": inputs.check_rules([{"rule": "coin", "params": {"keep": 0.5}}]),
    "command": voice_options.parse_rule(build_parser(words).parse_args(words).rule),
    "evaluated": [arm.name for arm in experiments.table1(plan)],
}))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package with the example in it."""
    assert EXAMPLE is not None
    shutil.copytree(ROOT / "pcg", tmp_path / "pcg", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "assets/web", tmp_path / "assets/web")
    (tmp_path / "pcg/acceptance/coin.py").write_text(EXAMPLE[1], "utf-8")
    registry = tmp_path / "pcg/acceptance/__init__.py"
    before = registry.read_text("utf-8")
    after = before.replace('    "top_k",\n', '    "top_k",\n    "coin",\n', 1)
    added = [
        line for line in difflib.ndiff(before.split("\n"), after.split("\n")) if line[0] in "+-"
    ]
    assert added == ['+     "coin",'], "one registry line"
    registry.write_text(after, "utf-8")
    return tmp_path


def test_one_file_and_one_line_are_enough(copy: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(copy), "PCG_CONFIG": ""}
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=copy,
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["accepted"] == 3
    assert found["page"] == "keep"
    assert found["checked"] == [["coin", {"keep": 0.5}]]
    assert found["command"] == ["coin", {"keep": 0.9}]
    assert "coin" in found["evaluated"]
