"""README tables generated from the stored rows, between two comment lines:

<!-- results:table1 --> ... <!-- /results -->
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from pcg.errors import PcgError
from pcg.evaluation.report import TITLES, arms_table, claims_table, drift_table, origin_line
from pcg.evaluation.rows import Row

BLOCK = re.compile(r"(<!-- results:([\w.-]+) -->\n)(.*?)(<!-- /results -->)", re.DOTALL)


def block(summary: Row) -> str:
    """What stands between the two comment lines."""
    table = drift_table(summary) if "drift" in summary else arms_table(summary)
    claims = [claims_table(summary)] if summary["claims"] else []
    title = f"**{TITLES.get(summary['experiment'], summary['experiment'])}**"
    return "\n\n".join([title, table, *claims, origin_line(summary)]) + "\n"


def refreshed(text: str, root: Path) -> str:
    """``text`` with every block rebuilt from the stored summary of its name under ``root``.

    Raises PcgError for a block whose run is not there.
    """

    def rebuild(match: re.Match[str]) -> str:
        folder = root / match[2]
        if not (folder / "summary.json").exists():
            raise PcgError(f"The README asks for the results {match[2]!r}, which are not stored.")
        return f"{match[1]}{block(json.loads((folder / 'summary.json').read_text()))}{match[4]}"

    return BLOCK.sub(rebuild, text)


def refresh(readme: Path, root: Path) -> bool:
    """Rewrite the README's tables; True when something changed."""
    before = readme.read_text(encoding="utf-8")
    after = refreshed(before, root)
    if after != before:
        readme.write_text(after, encoding="utf-8")
    return after != before
