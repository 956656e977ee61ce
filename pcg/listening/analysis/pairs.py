"""Bradley-Terry abilities from paired choices; bootstrap intervals over listeners and items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from pcg.errors import PcgError
from pcg.listening.analysis.means import codes

Floats = npt.NDArray[np.float64]
PRIOR = 0.1


@dataclass(frozen=True)
class Ability:
    """One system: log ability (all sum to zero), its interval, and the chance to beat the average
    opponent.
    """

    system: str
    ability: float
    error: float
    low: float
    high: float
    beats_average: float
    wins: float
    n: int


@dataclass(frozen=True)
class Ranking:
    """All systems, best first. `better[a, b]`: share of bootstrap draws in which a lies above b."""

    abilities: tuple[Ability, ...]
    better: dict[tuple[str, str], float]
    draws: int
    clusters: str


def fit(wins: npt.ArrayLike, prior: float = PRIOR, steps: int = 25) -> Floats:
    """Log abilities (..., S) of win counts (..., S, S), `wins[i, j]` = times i beat j, a tie being
    half a win each.

    Newton's method on the log-likelihood, summing to zero. `prior` half-wins each way between every
    two systems keep abilities finite when one always wins.
    """
    counts = np.asarray(wins, dtype=np.float64)
    systems = counts.shape[-1]
    off = 1.0 - np.eye(systems)
    counts = counts * off + prior / 2 * off
    games = counts + np.swapaxes(counts, -1, -2)
    ability = np.zeros(counts.shape[:-1])
    for _ in range(steps):
        expected = 1 / (
            1 + np.exp(np.clip(ability[..., None, :] - ability[..., :, None], -500, 500))
        )
        gradient = (counts - games * expected).sum(-1)
        weight = games * expected * (1 - expected)
        hessian = np.eye(systems) * weight.sum(-1)[..., None] - weight + 1.0 / systems
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        ability = ability + np.clip(step, -3, 3)
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    return np.asarray(ability - ability.mean(-1, keepdims=True), dtype=np.float64)


def win_tensor(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    outcome: npt.ArrayLike,
    listeners: npt.ArrayLike,
    items: npt.ArrayLike,
    systems: Sequence[str],
) -> Floats:
    """Wins (L, I, S, S) by listener and item; `outcome` is 1 when left won, 0 when right, 0.5 for a
    tie.
    """
    place = {name: index for index, name in enumerate(systems)}
    first = np.array([place[str(name)] for name in np.asarray(left)], dtype=np.int64)
    second = np.array([place[str(name)] for name in np.asarray(right)], dtype=np.int64)
    won, who, what = np.asarray(outcome, dtype=np.float64), codes(listeners), codes(items)
    tensor = np.zeros((who.max() + 1, what.max() + 1, len(systems), len(systems)))
    np.add.at(tensor, (who, what, first, second), won)
    np.add.at(tensor, (who, what, second, first), 1 - won)
    return tensor


def _draws(
    tensor: Floats, number: int, generator: np.random.Generator, over: str, prior: float
) -> Floats:
    """Bootstrap abilities (number, S), resampling "listener", "item" or "cell"."""
    people, things, systems = tensor.shape[:3]
    flat = tensor.reshape(people, things, -1)
    if over == "listener":
        units = flat.sum(1)
    elif over == "item":
        units = flat.sum(0)
    else:
        units = flat.reshape(people * things, -1)
        units = units[units.sum(1) > 0]
    weights = generator.multinomial(len(units), np.full(len(units), 1 / len(units)), size=number)
    return fit((weights @ units).reshape(number, systems, systems), prior)


def bradley_terry(
    tensor: Floats,
    systems: Sequence[str],
    *,
    seed: int = 0,
    draws: int = 400,
    confidence: float = 0.95,
    prior: float = PRIOR,
) -> Ranking:
    """Abilities with intervals from bootstraps over listeners and over items.

    The two bootstrap variances add up and the variance of a bootstrap over single cells, which both
    contain, is taken off; a plain resampling of both at once would count it three times (Owen
    2007). With one listener or one item, the other decides.
    """
    total = tensor.sum((0, 1))
    games = (total + total.T).sum(1)
    if total.sum() == 0:
        raise PcgError("There are no choices to rank yet.")
    _check_connected(total, systems)
    ability, generator = fit(total, prior), np.random.default_rng(seed)
    people = int((tensor.sum((1, 2, 3)) > 0).sum())
    things = int((tensor.sum((0, 2, 3)) > 0).sum())
    covariance, spread, clusters = _covariance(tensor, (people, things), draws, generator, prior)
    error = np.sqrt(np.diag(covariance))
    quantile = stats.t.ppf(0.5 + confidence / 2, spread)
    # correlated normal draws around the estimate: how often one system lies above another
    gap = ability[:, None] - ability[None, :]
    gap_error = np.sqrt(
        np.maximum(error[:, None] ** 2 + error[None, :] ** 2 - 2 * covariance, 1e-12)
    )
    above = stats.t.cdf(gap / gap_error, spread)
    order = np.argsort(-ability)
    rows = tuple(
        Ability(
            system=systems[place],
            ability=float(ability[place]),
            error=float(error[place]),
            low=float(ability[place] - quantile * error[place]),
            high=float(ability[place] + quantile * error[place]),
            beats_average=float(
                np.mean([1 / (1 + np.exp(-gap[place, other])) for other in order if other != place])
            ),
            wins=float(total[place].sum()),
            n=int(games[place]),
        )
        for place in order
    )
    better = {(systems[a], systems[b]): float(above[a, b]) for a in order for b in order if a != b}
    return Ranking(rows, better, draws, clusters)


def _covariance(
    tensor: Floats,
    counts: tuple[int, int],
    draws: int,
    generator: np.random.Generator,
    prior: float,
) -> tuple[Floats, float, str]:
    """(covariance of the abilities, degrees of freedom, what was resampled)."""

    def of(over: str) -> Floats:
        return np.cov(_draws(tensor, draws, generator, over, prior), rowvar=False)

    people, things = counts
    if people < 2 and things < 2:
        return of("cell"), 1.0, "votes"
    if things < 2:
        return of("listener") * people / (people - 1), people - 1.0, "listeners"
    if people < 2:
        return of("item") * things / (things - 1), things - 1.0, "items"
    by_listener = of("listener") * people / (people - 1)
    by_item = of("item") * things / (things - 1)
    variance = by_listener + by_item - of("cell")
    floor = np.maximum(np.diag(by_listener), np.diag(by_item))
    low = np.sqrt(np.maximum(floor / np.maximum(np.diag(variance), 1e-12), 1.0))
    variance = (
        variance * low[:, None] * low[None, :]
        if np.all(np.diag(variance) > 0)
        else by_listener + by_item
    )
    parts = np.trace(by_listener) ** 2 / (people - 1) + np.trace(by_item) ** 2 / (things - 1)
    df = float(np.clip(np.trace(variance) ** 2 / max(parts, 1e-12), 1, people * things))
    return variance, df, "listeners and items"


def _check_connected(total: Floats, systems: Sequence[str]) -> None:
    met, reached = (total + total.T) > 0, {0}
    while True:
        more = {int(place) for index in reached for place in np.flatnonzero(met[index])} | reached
        if more == reached:
            break
        reached = more
    if len(reached) < len(systems):
        left = ", ".join(name for index, name in enumerate(systems) if index not in reached)
        raise PcgError(
            f"No chain of comparisons joins {left} to the other systems yet: collect more votes."
        )
