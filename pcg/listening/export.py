"""Everything a test has gathered, as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pcg.listening.answers import rows_of
from pcg.listening.store import Store
from pcg.listening.study import Study

COLUMNS = {
    "mos": ("system", "score"),
    "mushra": ("system", "score"),
    "ab": ("left", "right", "chosen", "side", "outcome"),
    "abx": ("left", "right", "x", "chosen", "side", "correct"),
}
_COMMON = ("study", "listener", "number", "trial", "practice", "item")


def flat_rows(study: Study, store: Store, practice: bool = False) -> list[dict[str, Any]]:
    """One row an answer (a score each in MUSHRA), oldest first; `spare` is seconds beyond the
    listening itself.
    """
    rows = []
    for vote in store.votes(study.id):
        if vote["practice"] and not practice:
            continue
        for row in rows_of(study.kind, vote["slots"], vote["answer"]):
            common = {key: vote[key] for key in _COMMON if key != "study"}
            rows.append(
                {
                    "study": study.id,
                    **common,
                    **row,
                    "seconds": round(vote["seconds"], 2),
                    "spare": round(vote["seconds"] - vote["needed"], 2),
                    "voted": datetime.fromtimestamp(vote["voted"], UTC).isoformat(
                        timespec="seconds"
                    ),
                }
            )
    return rows


def to_csv(study: Study, rows: Sequence[dict[str, Any]]) -> str:
    """The rows as CSV with a header; a cell that a spreadsheet would run as a formula is quoted
    with an apostrophe.
    """
    columns = (*_COMMON, *COLUMNS[study.kind], "seconds", "spare", "voted")
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(row[key]) for key in columns} for row in rows)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    return (
        "'" + value
        if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
        else value
    )


def to_json(study: Study, rows: Sequence[dict[str, Any]]) -> str:
    """The test and its rows in one JSON document."""
    document = {
        "format": "pcg-listening-votes",
        "version": 1,
        "study": study.to_json(),
        "votes": list(rows),
    }
    return json.dumps(document, indent=1, ensure_ascii=False)
