"""Summaries, claims and reports come from stored rows alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pcg.errors import PcgError
from pcg.evaluation import readme, report
from pcg.evaluation.manifest import ASSETS
from pcg.evaluation.rows import Row
from pcg.evaluation.runner import write_json
from pcg.evaluation.summary import summarise
from tests.evaluation.test_runner import evaluate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for experiment in ("table1", "table2", "drift", "figure4"):
        evaluate(root / experiment, experiment, n=6)
        write_json(root / experiment / "summary.json", summarise(root / experiment))
    return root


@pytest.fixture(scope="module")
def summaries(runs: Path) -> dict[str, Row]:
    return {folder.name: summarise(folder) for folder in report.run_folders(runs)}


def test_summary_has_intervals_comparisons_and_claims(runs: Path) -> None:
    summary = summarise(runs / "table1")
    arms = {arm["name"]: arm for arm in summary["arms"]}
    assert arms["pcg"]["acceptance"]["low"] <= arms["pcg"]["acceptance"]["value"]
    assert arms["pcg"]["speedup"]["value"] > 0
    assert any(c["metric"] == "wer" and 0 < c["p_value"] <= 1 for c in summary["comparisons"])
    more = next(c for c in summary["claims"] if "accepts more" in c["claim"])
    assert more["verdict"] == "agrees"
    assert summary["rows"] == {"expected": 30, "ok": 30, "failed": 0}
    json.dumps(summary, allow_nan=False)


def test_failed_rows_are_counted_and_listed(tmp_path: Path) -> None:
    evaluate(tmp_path, n=4, model="fail:b0001")
    summary = summarise(tmp_path)
    assert summary["rows"]["failed"] == 5 and summary["failures"][0]["key"].startswith("b0001")
    assert "(+1 failed)" in report.markdown(summary)


def test_drift_at_equal_acceptance(runs: Path) -> None:
    points = summarise(runs / "drift")["drift"]["points"]
    assert points[0]["pcg_token_drift"] == pytest.approx(0, abs=1e-6)
    assert points[-1]["pcg_acceptance"] > points[0]["pcg_acceptance"]
    for p in points:
        assert p["token"]["low"] <= p["token"]["value"] <= p["token"]["high"]
        assert p["ssd_acceptance"] == pytest.approx(p["pcg_acceptance"], abs=0.005)
        assert p["pcg_token_drift"] >= p["least"] - 1e-6
        assert p["ssd_token_drift"] == pytest.approx(p["least"], abs=0.005)


def test_html_is_one_offline_page(summaries: dict[str, Row], tmp_path: Path) -> None:
    text = report.write_html(summaries, tmp_path / "report.html").read_text()
    assert "Plotly.newPlot" in text
    assert 'src="http' not in text and "<link" not in text
    assert text.count("<h2>") == 4


def test_markdown_shows_every_run(summaries: dict[str, Row], tmp_path: Path) -> None:
    text = report.write_markdown(summaries, tmp_path / "report.md").read_text()
    assert all(title in text for title in ("Table 1", "Table 2", "Figure 4", "Token-law drift"))


def test_readme_blocks_are_rebuilt(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- results:table1 -->\nold\n<!-- /results -->\nafter\n")
    assert readme.refresh(page, runs)
    assert "Target only" in page.read_text() and page.read_text().endswith("after\n")
    assert not readme.refresh(page, runs)
    page.write_text("<!-- results:absent -->\n<!-- /results -->\n")
    with pytest.raises(PcgError, match="absent"):
        readme.refresh(page, runs)


def test_readme_tables_are_not_stale() -> None:
    page = ROOT / "README.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    assert readme.refreshed(text, ASSETS / "results") == text, (
        "run: python -m pcg evaluate report --readme README.md"
    )


def test_stored_summaries_are_not_stale() -> None:
    for path in (ASSETS / "results").glob("*/summary.json"):
        assert json.loads(path.read_text()) == summarise(path.parent), f"{path} is stale"
