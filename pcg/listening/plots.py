"""Small SVG charts of a report; their colour is the text colour around them, so they fit light and
dark pages.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 460, 132, 58, 34, 12, 42
LONGEST_NAME = 18


def intervals(
    rows: Sequence[tuple[str, float, float, float]],
    low: float,
    high: float,
    ticks: Sequence[float],
    axis: str,
    middle: float | None = None,
) -> str:
    """Dots with whiskers. `rows`: (name, value, low, high); the axis runs from `low` to `high`;
    `middle` draws a line.
    """
    height = TOP + ROW * len(rows) + BOTTOM
    span = (WIDTH - LEFT - RIGHT) / (high - low)

    def x(value: float) -> float:
        return LEFT + (min(max(value, low), high) - low) * span

    bottom = TOP + ROW * len(rows)
    label = html.escape(
        f"{axis}: " + "; ".join(f"{n} {v:.2f} ({a:.2f} to {b:.2f})" for n, v, a, b in rows)
    )
    parts = [
        f'<svg class="listen-chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}" '
        'xmlns="http://www.w3.org/2000/svg" fill="currentColor" font-size="13">'
    ]
    for tick in ticks:
        parts.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{bottom}" '
            'stroke="currentColor" opacity=".18"/>'
            f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
        )
    if middle is not None:
        parts.append(
            f'<line x1="{x(middle):.1f}" x2="{x(middle):.1f}" y1="{TOP}" y2="{bottom}" '
            'stroke="currentColor" stroke-dasharray="4 4" opacity=".7"/>'
        )
    for place, (name, value, start, end) in enumerate(rows):
        y = TOP + ROW * (place + 0.5)
        short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        parts.append(
            f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{html.escape(short)}'
            f"<title>{html.escape(name)}</title></text>"
            f'<line x1="{x(start):.1f}" x2="{x(end):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="currentColor" stroke-width="2"/>'
            f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="5.5"/>'
            f'<text x="{WIDTH - RIGHT + 10}" y="{y + 4:.1f}">{value:.2f}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{height - 6}" text-anchor="middle">'
        f"{html.escape(axis)}</text></svg>"
    )
    return "".join(parts)


def histogram(counts: Mapping[str, int], name: str) -> str:
    """Bars of how often each score (1 to 5 in halves) was given."""
    values = [1 + step / 2 for step in range(9)]
    shown = [counts.get(f"{value:g}", 0) for value in values]
    tallest, width, base = max([*shown, 1]), 30, 92
    label = html.escape(
        f"{name}: " + ", ".join(f"{v:g}: {n}" for v, n in zip(values, shown, strict=True))
    )
    parts = [
        f'<svg class="listen-chart small" viewBox="0 0 {width * 9 + 10} 120" role="img" '
        f'aria-label="{label}" xmlns="http://www.w3.org/2000/svg" fill="currentColor" '
        'font-size="12">'
    ]
    for place, (value, count) in enumerate(zip(values, shown, strict=True)):
        tall, left = 80 * count / tallest, 5 + width * place
        parts.append(
            f'<rect x="{left + 3}" y="{base - tall:.1f}" width="{width - 6}" '
            f'height="{tall:.1f}" rx="3" opacity=".75"/>'
            f'<text x="{left + width / 2}" y="{base + 16}" text-anchor="middle">{value:g}</text>'
        )
    return "".join(parts) + "</svg>"


def charts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(heading, SVG) pairs for a report."""
    results, level = report["results"], f"{report['confidence']:.0%}"
    if "systems" in results:
        rows = [
            (row["system"], row["value"], row["low"], row["high"]) for row in results["systems"]
        ]
        if report["kind"] == "mushra":
            return [
                (
                    "Scores",
                    intervals(rows, 0, 100, range(0, 101, 20), f"mean score, {level} interval"),
                )
            ]
        found = [
            (
                "Mean opinion scores",
                intervals(rows, 1, 5, range(1, 6), f"mean opinion score, {level} interval"),
            )
        ]
        return found + [
            (f"Scores of {row['system']}", histogram(row["histogram"], row["system"]))
            for row in results["systems"]
        ]
    key = "exact" if report["kind"] == "abx" else "clustered"
    shares = [
        (f"{row['left']} / {row['right']}", row[key]["share"], row[key]["low"], row[key]["high"])
        for row in results["pairs"]
        if row[key]
    ]
    quarters = (0.0, 0.25, 0.5, 0.75, 1.0)
    axis = "share right" if report["kind"] == "abx" else "share that prefers the first"
    found = [("Shares", intervals(shares, 0, 1, quarters, f"{axis}, {level} interval", middle=0.5))]
    if "abilities" in results.get("ranking", {}):
        abilities = results["ranking"]["abilities"]
        rows = [(row["system"], row["ability"], row["low"], row["high"]) for row in abilities]
        edge = float(max(1, round(max(max(abs(row[2]), abs(row[3])) for row in rows) + 0.5)))
        edge = min(edge, 6.0)
        ticks = (-edge, -edge / 2, 0.0, edge / 2, edge)
        found.append(
            (
                "Bradley-Terry",
                intervals(rows, -edge, edge, ticks, f"log ability, {level} interval", middle=0),
            )
        )
    return found
