"""The report as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def to_text(report: Mapping[str, Any]) -> str:
    """A few aligned tables: results, the same without flagged listeners, and the flags."""
    level = f"{report['confidence']:.0%}"
    lines = [
        f"{report['title']} ({report['kind']}): {report['votes']} votes, "
        f"{len(report['listeners'])} listeners, {report['items']} items",
        "",
        *_results(report["results"], level),
    ]
    flagged = [person for person in report["listeners"] if person["flags"]]
    if flagged:
        lines += ["", f"{len(flagged)} listener(s) flagged; they are included above:"]
        lines += [f"  {person['listener'][:8]}  {'; '.join(person['flags'])}" for person in flagged]
    if report["results_without_flagged"]:
        lines += [
            "",
            "Without the flagged listeners:",
            *_results(report["results_without_flagged"], level),
        ]
    return "\n".join(lines)


def _results(results: Mapping[str, Any], level: str) -> list[str]:
    lines = []
    if "systems" in results:
        width = max(len(row["system"]) for row in results["systems"])
        lines.append(f"{'system':<{width}}   mean   {level} interval      n")
        for row in results["systems"]:
            lines.append(
                f"{row['system']:<{width}}  {row['value']:5.2f}   {_range(row)}  {row['n']:5d}"
            )
        for row in results["differences"]:
            lines.append(
                f"{row['first']} - {row['second']}: {row['value']:+.2f} "
                f"({row['low']:+.2f} .. {row['high']:+.2f}), p = {row['p_value']:.3g}"
            )
    for row in results.get("pairs", ()):
        lines += _pair(row, level)
    if "abilities" in results.get("ranking", {}):
        lines.append(
            f"Bradley-Terry (log ability, {level} bootstrap over {results['ranking']['clusters']}):"
        )
        for row in results["ranking"]["abilities"]:
            lines.append(f"  {row['system']}: {row['ability']:+.2f} ({_range(row)})")
    if "error" in results.get("ranking", {}):
        lines.append(results["ranking"]["error"])
    return lines


def _range(row: Mapping[str, Any]) -> str:
    return f"{row['low']:.2f} .. {row['high']:.2f}"


def _pair(row: Mapping[str, Any], level: str) -> list[str]:
    if "correct" in row:
        exact = row["exact"]
        return [
            f"{row['left']} / {row['right']}: {row['correct']} of {row['n']} right "
            f"({row['needed_correct']} needed), {exact['share']:.2f} ({_range(exact)}), "
            f"exact p = {exact['p_value']:.3g}, clustered p = {row['clustered']['p_value']:.3g}"
        ]
    exact, clustered = row["exact"], row["clustered"]
    test = f"exact p = {exact['p_value']:.3g}" if exact else "only ties"
    return [
        f"{row['left']} over {row['right']}: {row['wins']} to {row['losses']}, {row['ties']} ties; "
        f"{test}; share {clustered['share']:.2f} ({_range(clustered)}), "
        f"clustered p = {clustered['p_value']:.3g}"
    ]
