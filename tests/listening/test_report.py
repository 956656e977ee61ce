"""From votes to report, text, page, CSV and JSON; flagged listeners are shown, never dropped."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from pcg.errors import PcgError
from pcg.listening.analysis.page import to_html
from pcg.listening.analysis.report import analyse
from pcg.listening.analysis.text import to_text
from pcg.listening.backup import Backup
from pcg.listening.export import flat_rows, to_csv, to_json
from pcg.listening.plots import charts
from tests.listening.conftest import listen


def gather(desk, clock, study, listeners=6, careless=True, patience=5.0):
    """Listeners who like earlier systems better; the last one always answers the same."""
    rng = np.random.default_rng(0)
    for person in range(listeners):
        name = f"{person + 1:032x}"
        state = desk.join(study.id, name, True)
        while state["state"] == "question":
            heard = listen(desk, clock, state)
            row = desk.store.rows(
                "SELECT slot, system FROM servings WHERE listener = ? AND trial = ?",
                (name, state["trial"]),
            )
            systems = {r["slot"]: study.systems.index(r["system"]) for r in row}
            lazy = careless and person == listeners - 1
            clock.now += 0.0 if lazy else patience
            answer = respond(state, systems, lazy, rng)
            state = desk.vote(study.id, name, state["trial"], answer, heard)["next"]


def respond(state, systems, lazy, rng):
    if state["kind"] == "mos":
        return {
            "score": 3.0
            if lazy
            else float(np.clip(np.round(2 * (4.5 - systems["A"] + rng.normal(0, 0.4))) / 2, 1, 5))
        }
    if state["kind"] == "mushra":
        return {
            "scores": {
                k: 50 if lazy else max(0, 100 - 30 * v) for k, v in systems.items() if k != "R"
            }
        }
    if state["kind"] == "abx":
        return {"choice": "A" if lazy or systems["X"] == systems["A"] else "B"}
    return {
        "choice": "A" if lazy or (systems["A"] < systems["B"]) == (rng.random() < 0.85) else "B"
    }


@pytest.mark.parametrize("kind", ["ab", "abx", "mos", "mushra"])
def test_every_kind_goes_from_votes_to_report(kind, make, desk, clock):
    study = make(kind, items=6, systems=3, practice=1)
    gather(desk, clock, study)
    rows = flat_rows(study, desk.store)
    report = json.loads(json.dumps(analyse(study, rows, desk.store.checks(study.id))))
    assert report["votes"] == 6 * len(study.scored) * len(study.conditions)
    assert report["items"] == 5 and len(report["listeners"]) == 6
    lazy = next(person for person in report["listeners"] if person["listener"] == f"{6:032x}")
    assert lazy["flags"]
    assert report["results_without_flagged"] is not None
    text, page = to_text(report), to_html(report)
    assert "included above" in text and "<svg" in page and "all included above" in page
    if kind in ("mos", "mushra"):
        order = [
            row["system"] for row in report["results"]["systems"] if row["system"] != study.anchor
        ]
        assert order == list(study.systems[:3])
    if kind == "ab":
        assert [row["system"] for row in report["results"]["ranking"]["abilities"]] == list(
            study.systems
        )
    if kind == "abx":
        assert all(row["correct"] > 0.8 * row["n"] for row in report["results"]["pairs"])
    assert len(charts(report)) >= 1


def test_flags_never_remove_anyone_from_the_main_result(make, desk, clock):
    study = make("mos", items=10)
    gather(desk, clock, study)
    rows = flat_rows(study, desk.store)
    report = analyse(study, rows)
    own = [row["score"] for row in rows if row["system"] == study.systems[0]]
    named = {row["system"]: row for row in report["results"]["systems"]}
    assert named[study.systems[0]]["value"] == pytest.approx(np.mean(own))
    assert named[study.systems[0]]["n"] == len(own)
    assert report["results_without_flagged"]["systems"][0]["n"] < len(own)


def test_no_votes_is_a_sentence(make, desk):
    study = make()
    with pytest.raises(PcgError, match="no votes yet"):
        analyse(study, flat_rows(study, desk.store))


def test_csv_and_json_hold_the_same_rows(make, desk, clock):
    study = make("ab", practice=1)
    gather(desk, clock, study, listeners=3)
    rows = flat_rows(study, desk.store)
    table = list(csv.DictReader(io.StringIO(to_csv(study, rows))))
    document = json.loads(to_json(study, rows))
    assert len(table) == len(document["votes"]) == 3 * 2
    assert [row["chosen"] for row in table] == [row["chosen"] for row in document["votes"]]
    assert len(flat_rows(study, desk.store, practice=True)) == 3 * 3
    assert {row["left"] for row in table} <= set(study.systems)


def test_csv_cells_are_no_formulas(make, desk, clock, tmp_path):
    from dataclasses import replace

    study = make("mos", items=1)
    gather(desk, clock, study, listeners=1)
    rows = [{**row, "system": "=HYPERLINK(1)"} for row in flat_rows(study, desk.store)]
    assert "'=HYPERLINK" in to_csv(replace(study), rows)


def test_names_are_escaped_in_the_page(make, desk, clock):
    study = make("mos", items=2, title="<script>alert(1)</script>")
    gather(desk, clock, study, listeners=2)
    rows = [
        {**row, "system": row["system"] + "<img src=x>"} for row in flat_rows(study, desk.store)
    ]
    page = to_html(analyse(study, rows))
    assert "<script>alert" not in page and "<img" not in page


class FakeHub:
    """Counts what would be pushed; `broken` raises as the hub does."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.broken = False

    def create_repo(self, repo_id, **kw):
        assert kw["repo_type"] == "dataset" and kw["private"]

    def create_commit(self, repo_id, **kw):
        if self.broken:
            raise ConnectionError("offline")
        self.commits.append([operation.path_in_repo for operation in kw["operations"]])


def test_backup_pushes_what_is_new_and_survives_trouble(make, desk, clock):
    pytest.importorskip("huggingface_hub")
    study, hub = make(items=2), FakeHub()
    backup = Backup(desk, "someone/votes", hub)
    assert backup.push() == []
    gather(desk, clock, study, listeners=1)
    hub.broken = True
    with pytest.raises(PcgError, match="safe on disk"):
        backup.push()
    hub.broken = False
    assert backup.push() == [study.id] and backup.push() == []
    assert hub.commits == [[f"listening/{study.id}.csv", f"listening/{study.id}.json"]]
