"""The report as HTML: a fragment for the page of the Space, or a file of its own."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from pcg.listening.plots import charts

_SHELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; }}
body {{ max-width: 900px; margin: 24px auto; padding: 0 16px; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 5px 10px; text-align: right; border-bottom: 1px solid #8884; }}
th:first-child {{ text-align: left; }}
.listen-chart {{ width: 100%; height: auto; max-width: 600px; }}</style></head>
<body>{body}</body></html>"""


def to_html(report: Mapping[str, Any]) -> str:
    """A page of its own."""
    return _SHELL.format(title=html.escape(report["title"]), body=fragment(report))


def fragment(report: Mapping[str, Any]) -> str:
    """Headline, charts, tables and flags; every name is escaped."""
    head = (
        f"<h3>{html.escape(report['title'])}</h3><p>{report['votes']} votes by "
        f"{len(report['listeners'])} listeners on {report['items']} items. "
        f"{html.escape(report['question'])}</p>"
    )
    body = [head]
    drawn = [
        f"<section><h4>{html.escape(name)}</h4>{svg}</section>" for name, svg in charts(report)
    ]
    body.append(f'<div class="listen-charts">{"".join(drawn)}</div>')
    body.append(_results(report["results"], report["confidence"]))
    body.append(_listeners(report["listeners"]))
    if report["results_without_flagged"]:
        body.append("<h4>Without the flagged listeners</h4>")
        body.append(_results(report["results_without_flagged"], report["confidence"]))
    return f'<div class="listen-results">{"".join(body)}</div>'


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    top = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{html.escape(str(row[0]))}</th>'
        + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="pcg-scroll"><table class="pcg-table"><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _range(row: Mapping[str, Any]) -> str:
    return f"{row['low']:.2f} to {row['high']:.2f}"


def _small(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _results(results: Mapping[str, Any], confidence: float) -> str:
    level, parts = f"{confidence:.0%} interval", []
    if "systems" in results:
        rows = [[r["system"], f"{r['value']:.2f}", _range(r), r["n"]] for r in results["systems"]]
        parts.append(_table(["System", "Mean", level, "Votes"], rows))
        gaps = [
            [
                f"{r['first']} minus {r['second']}",
                f"{r['value']:+.2f}",
                _range(r),
                _small(r["p_value"]),
            ]
            for r in results["differences"]
        ]
        if gaps:
            parts.append(_table(["Difference", "Mean", level, "p (Holm)"], gaps))
    elif "correct" in (results["pairs"] or [{}])[0]:
        rows = [
            [
                f"{r['left']} / {r['right']}",
                f"{r['correct']} of {r['n']}",
                r["needed_correct"],
                _range(r["exact"]),
                _small(r["exact"]["p_value"]),
                _small(r["clustered"]["p_value"]),
            ]
            for r in results["pairs"]
        ]
        parts.append(_table(["Pair", "Right", "Needed", level, "Exact p", "Clustered p"], rows))
    else:
        parts.append(_preferences(results, level))
    if "required_votes" in results:
        rows = [[f"{r['share']:.0%}", r["votes"]] for r in results["required_votes"]]
        parts.append(
            "<details><summary>How many votes a result needs (5 % level, 80 % power)</summary>"
            + _table(["True share", "Votes"], rows) + "</details>"
        )  # fmt: skip
    parts.append(f'<p class="pcg-muted">Method: {html.escape(results["method"])}.</p>')
    return "".join(parts)


def _preferences(results: Mapping[str, Any], level: str) -> str:
    rows = [
        [
            f"{r['left']} / {r['right']}",
            f"{r['wins']} : {r['losses']}",
            r["ties"],
            _range(r["clustered"]),
            _small(r["exact"]["p_value"]) if r["exact"] else "none",
            _small(r["clustered"]["p_value"]),
        ]
        for r in results["pairs"]
    ]
    text = _table(["Pair", "Preferred", "Ties", level, "Exact p", "Clustered p"], rows)
    ranking = results.get("ranking", {})
    if "error" in ranking:
        text += f"<p>{html.escape(ranking['error'])}</p>"
    if "abilities" in ranking:
        rows = [_ability_row(r) for r in ranking["abilities"]]
        text += _table(["System", "Log ability", level, "Beats the average", "Won"], rows)
    return text


def _ability_row(row: Mapping[str, Any]) -> list[object]:
    return [
        row["system"],
        f"{row['ability']:+.2f}",
        _range(row),
        f"{row['beats_average']:.0%}",
        f"{row['wins']:g} of {row['n']}",
    ]


def _listeners(people: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            p["listener"][:8],
            p["votes"],
            f"{p['median_seconds']:.1f}",
            "" if p["agreement"] is None else f"{p['agreement']:.2f}",
            "; ".join(p["flags"]) or "none",
        ]
        for p in people
    ]
    flagged = sum(bool(p["flags"]) for p in people)
    note = "nobody is flagged" if not flagged else f"{flagged} flagged, all included above"
    head = ["Listener", "Votes", "Median s", "Agreement", "Flags"]
    tag = "<details open>" if flagged else "<details>"
    return f"{tag}<summary>Listeners: {note}</summary>{_table(head, rows)}</details>"
