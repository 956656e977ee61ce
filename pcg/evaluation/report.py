"""Tables and figures from stored rows: Markdown, and one HTML file that needs no network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pcg.errors import PcgError
from pcg.evaluation.rows import Row

TITLES = {
    "table1": "Table 1: acceptance rules",
    "table2": "Table 2: tokens swapped inside their groups",
    "table3": "Table 3: embedding groups against Mel groups",
    "figure4": "Figure 4: lookahead",
    "theta": "Theta: quality, acceptance and speed",
    "drift": "Token-law drift of PCG and SSD at equal acceptance",
    "bundled": "The bundled voice",
}
COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("speedup", "Speed-up", "{:.2f}x"),
    ("cpu_speedup", "CPU-time speed-up", "{:.2f}x"),
    ("acceptance", "Acceptance (no bonus)", "{:.3f}"),
    ("tokens_per_round", "Tokens a round (with bonus)", "{:.2f}"),
    ("realised", "Tokens swapped", "{:.1%}"),
    ("wer", "WER", "{:.1%}"),
    ("cer", "CER", "{:.1%}"),
    ("similarity", "Similarity", "{:.3f}"),
    ("margin", "Margin over other voices", "{:.3f}"),
    ("to_original", "Similarity to original", "{:.3f}"),
    ("naturalness", "DistillMOS", "{:.2f}"),
    ("f0_error", "F0 error (cents)", "{:.1f}"),
    ("ended", "Ended by itself", "{:.1%}"),
)


def run_folders(root: Path) -> list[Path]:
    """Folders under ``root`` (or ``root`` itself) that hold a run, in the order of TITLES."""
    if (root / "plan.json").exists():
        return [root]
    order = {name: i for i, name in enumerate(TITLES)}
    found = [path.parent for path in root.glob("*/plan.json")]
    if not found:
        raise PcgError(f"{root} holds no evaluation: run `python -m pcg evaluate` first.")
    return sorted(found, key=lambda path: (order.get(path.name, len(order)), path.name))


# Markdown


def _cell(value: Row | None, form: str) -> str:
    if not value:
        return "-"
    text = form.format(value["value"])
    return f"{text} [{form.format(value['low'])}, {form.format(value['high'])}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _columns(summary: Row) -> list[tuple[str, str, str]]:
    """Columns that any arm has; wall-clock speed only where times may be compared."""
    timed = summary["timing"]["own_device"]
    return [
        column
        for column in COLUMNS
        if any(arm.get(column[0]) for arm in summary["arms"]) and (column[0] != "speedup" or timed)
    ]


def arms_table(summary: Row) -> str:
    """One line an arm; every figure with its 95 % interval."""
    columns = _columns(summary)
    head = ["", "n", *(title for _, title, _ in columns)]
    rows = [
        [arm["label"], _count(arm), *(_cell(arm.get(name), form) for name, _, form in columns)]
        for arm in summary["arms"]
    ]
    return _table(head, rows)


def _count(arm: Row) -> str:
    return f"{arm['n']} (+{arm['failed']} failed)" if arm["failed"] else str(arm["n"])


def drift_table(summary: Row) -> str:
    """One line a theta: drift of both rules at PCG's acceptance."""
    head = ["theta", "mean group", "SSD beta", "acceptance", "least token drift of any rule"]
    head += ["PCG token drift", "SSD token drift", "PCG - SSD [95 %]"]
    head += ["PCG group drift", "SSD group drift", "PCG - SSD [95 %]"]
    rows = [
        [
            f"{p['theta']:.3f}",
            f"{p['mean_group_size']:g}",
            f"{p['ssd_beta']:.2f}",
            f"{p['pcg_acceptance']:.3f}",
            f"{p['least']:.3f}",
            *_drift_cells(p, "token"),
            *_drift_cells(p, "group"),
        ]
        for p in summary["drift"].get("points", [])
    ]
    return _table(head, rows)


def _drift_cells(point: Row, kind: str) -> list[str]:
    gap = point[kind]
    return [
        f"{point[f'pcg_{kind}_drift']:.3f}",
        f"{point[f'ssd_{kind}_drift']:.3f}",
        f"{gap['value']:+.3f} [{gap['low']:+.3f}, {gap['high']:+.3f}]",
    ]


def claims_table(summary: Row) -> str:
    """The paper's claims beside what was found."""
    rows = [[c["claim"], c["paper"], c["here"], c["verdict"]] for c in summary["claims"]]
    return _table(["Claim", "Paper", "Here", "Verdict"], rows)


def comparisons_table(summary: Row) -> str:
    """Paired differences with intervals and p-values."""
    rows = [
        [
            f"{c['second']} - {c['first']}",
            c["metric"],
            f"{c['difference']:+.4f} [{c['low']:+.4f}, {c['high']:+.4f}]",
            f"{c['p_value']:.4f}",
            str(c["n"]),
        ]
        for c in summary["comparisons"]
    ]
    return _table(["Pair", "Metric", "Difference [95 %]", "p", "n"], rows)


def origin_line(summary: Row) -> str:
    """Where the figures come from, in one paragraph."""
    o, t = summary["origin"], summary["timing"]
    busy = f"; mean machine load {t['mean_load']}" if t["mean_load"] is not None else ""
    times = (
        "times taken with the device to itself" if t["own_device"] else "wall times not comparable"
    )
    models = "; ".join(f"{name}: {text}" for name, text in summary["metric_models"].items())
    dtype = f", {o['dtype']}" if o.get("dtype") else ""
    theta = summary["origin"]["default_theta"]
    return (
        f"Model {o['model']}{dtype} on {o['hardware']}, one thread; n = {o['n']}, "
        f"temperature {o['temperature']:g}, lookahead {o['lookahead']}, default theta {theta:.3g}, "
        f"seed {o['seed']}, corpus {o['source'].partition(':')[0]}. {times}{busy}. {models}. "
        f"Rows: {summary['rows']['ok']} ok, {summary['rows']['failed']} failed of "
        f"{summary['rows']['expected']}."
    )


def markdown(summary: Row) -> str:
    """One experiment as a Markdown section."""
    parts = [f"### {TITLES.get(summary['experiment'], summary['experiment'])}"]
    if "drift" in summary:
        parts.append(drift_table(summary))
    else:
        parts.append(arms_table(summary))
    if summary["comparisons"]:
        parts.append(comparisons_table(summary))
    if summary["claims"]:
        parts.append(claims_table(summary))
    if summary["failures"]:
        failed = [[f["key"], f["error"].replace("|", "/")] for f in summary["failures"]]
        parts.append(_table(["Failed", "Why"], failed))
    return "\n\n".join([*parts, origin_line(summary)]) + "\n"


def write_markdown(summaries: dict[str, Row], path: Path) -> Path:
    """All runs as one Markdown file."""
    text = "\n".join(markdown(summary) for summary in summaries.values())
    _write(path, "# Results\n\nGenerated from the stored rows.\n\n" + text)
    return path


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PcgError(f"Cannot write {path}: {error.strerror}.") from error


# HTML


def figures(summary: Row) -> list[Any]:
    """Plotly figures of one experiment."""
    if "drift" in summary:
        return [_drift_figure(summary)]
    built = [_trade_figure(summary)]
    if summary["experiment"] in ("figure4", "bundled"):
        built.append(_bars(summary, "tokens_per_round", "Tokens a round"))
    return [figure for figure in built if figure is not None]


def _layout(figure: Any, title: str, x: str, y: str) -> Any:
    figure.update_layout(
        title=title, xaxis_title=x, yaxis_title=y, template="plotly_white", height=420
    )
    return figure


def _trade_figure(summary: Row) -> Any | None:
    """WER against acceptance (or share of swapped tokens), with intervals."""
    import plotly.graph_objects as go

    x_name = "realised" if summary["experiment"] == "table2" else "acceptance"
    figure = go.Figure()
    for arm in summary["arms"]:
        x, y = arm.get(x_name), arm.get("wer")
        if x and y:
            figure.add_scatter(
                x=[x["value"]],
                y=[y["value"]],
                name=arm["label"],
                mode="markers",
                marker_size=11,
                error_y=_bars_of(y),
                error_x=_bars_of(x),
            )
    if not figure.data:
        return None
    axis = "Share of tokens swapped" if x_name == "realised" else "Acceptance rate (no bonus)"
    return _layout(figure, "Word error rate", axis, "WER")


def _bars_of(value: Row) -> Row:
    middle = value["value"]
    return {
        "type": "data",
        "symmetric": False,
        "array": [value["high"] - middle],
        "arrayminus": [middle - value["low"]],
    }


def _bars(summary: Row, metric: str, title: str) -> Any | None:
    import plotly.graph_objects as go

    arms = [arm for arm in summary["arms"] if arm.get(metric)]
    if not arms:
        return None
    figure = go.Figure()
    figure.add_bar(x=[arm["label"] for arm in arms], y=[arm[metric]["value"] for arm in arms])
    return _layout(figure, title, "", title)


def _drift_figure(summary: Row) -> Any:
    import plotly.graph_objects as go

    points = summary["drift"].get("points", [])
    figure = go.Figure()
    lines = {
        "pcg_token_drift": "PCG, token law",
        "ssd_token_drift": "SSD, token law",
        "pcg_group_drift": "PCG, group law",
        "ssd_group_drift": "SSD, group law",
        "least": "least of any rule, token law",
    }
    for name, label in lines.items():
        figure.add_scatter(
            x=[p["pcg_acceptance"] for p in points],
            y=[p[name] for p in points],
            name=label,
            mode="lines+markers",
        )
    return _layout(figure, "Drift at equal acceptance", "Acceptance", "Total variation")


def _html_table(text: str) -> str:
    """A Markdown table as HTML, every cell escaped."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if "---|" not in line]
    rows = [
        "<tr>" + "".join(f"<{tag}>{html.escape(cell.strip())}</{tag}>" for cell in line) + "</tr>"
        for line, tag in zip(lines, ["th", *["td"] * len(lines)], strict=False)
    ]
    return "<table>" + "".join(rows) + "</table>"


def _html_section(summary: Row) -> str:
    title = html.escape(TITLES.get(summary["experiment"], str(summary["experiment"])))
    parts = [f"<h2>{title}</h2>", f"<p>{html.escape(origin_line(summary))}</p>"]
    for block in markdown(summary).split("\n\n"):
        if block.startswith("|"):
            parts.append(_html_table(block))
    parts += [
        figure.to_html(full_html=False, include_plotlyjs=False) for figure in figures(summary)
    ]
    return "\n".join(parts)


STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0;font-size:13px}"
    "th,td{border:1px solid #ccd;padding:.3rem .5rem;text-align:left}th{background:#f2f3f8}"
)


def write_html(summaries: dict[str, Row], path: Path) -> Path:
    """All runs as one page with its own copy of plotly: no network needed."""
    from plotly.offline import get_plotlyjs

    body = "\n".join(_html_section(summary) for summary in summaries.values())
    _write(
        path,
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>pcg results</title>"
        f"<style>{STYLE}</style><script>{get_plotlyjs()}</script></head><body>"
        f"<h1>Results</h1>{body}</body></html>\n",
    )
    return path
