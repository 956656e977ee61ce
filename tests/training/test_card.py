"""The model card says what the stored JSON says."""

from pathlib import Path

import pytest

from pcg.settings import BUNDLED_DIR
from pcg.training.card import RESULTS, card_text, measured_table


@pytest.mark.bundled
def test_card_is_not_stale() -> None:
    stored = (BUNDLED_DIR / "CARD.md").read_text(encoding="utf-8")
    assert stored == card_text(BUNDLED_DIR, RESULTS), "run `python -m pcg train card`"


def test_card_says_when_nothing_was_measured(tmp_path: Path) -> None:
    assert "Not yet" in measured_table(tmp_path / "none.json")
