"""The decoding loop on toy models: law, caches, ends, budgets, cancelling, interleaving."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from scipy import stats

from pcg.acceptance import make_rule
from pcg.acceptance.rule import Rule
from pcg.decoding import Round, decode
from pcg.groups import AcousticGroups
from pcg.sampling import Sampling
from tests.toys import PROMPT, Toy

PLAIN = Sampling(temperature=1.0)
TARGET = Toy(1)
DRAFT = Toy(2, near=TARGET)


def groups() -> AcousticGroups:
    return AcousticGroups.from_sets([[0, 1], [1, 2], [2], [3, 4], [4], [5], [6], [7]], n_codes=7)


def rule(name: str) -> Rule:
    table = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    return make_rule(name, groups=groups(), embeddings=table)


def speak(
    name: str = "pcg", seed: int = 0, max_tokens: int = 30, lookahead: int = 3, **more: object
) -> Iterator[Round]:
    options = {"target": TARGET, "draft": DRAFT, "sampling": PLAIN, **more}
    return decode(
        prompt=PROMPT,
        rule=rule(name),
        lookahead=lookahead,
        max_tokens=max_tokens,
        seed=seed,
        **options,
    )  # type: ignore[arg-type]


def tokens(rounds: Iterator[Round]) -> list[int]:
    return [token for one in rounds for token in one.emitted]


def contexts(name: str, runs: int) -> dict[tuple[int, ...], Counter[int]]:
    """Counts of the token after each context that decides its row, for every spoken token."""
    seen: dict[tuple[int, ...], Counter[int]] = {}
    for seed in range(runs):
        spoken = tokens(speak(name, seed, max_tokens=8))
        for place, token in enumerate(spoken):
            last = spoken[place - 1] if place else -1
            seen.setdefault((place, last), Counter())[token] += 1
    return seen


@pytest.mark.parametrize("name", ["target", "sd"])
def test_every_token_follows_the_targets_row(name: str) -> None:
    """Target-only and SD agree in law: both fit the target's own rows, context by context."""
    statistic, freedom, checked = 0.0, 0, 0
    for (place, last), counts in contexts(name, 400).items():
        logits = TARGET.logits[-1].clone() if place == 0 else TARGET.logits[last].clone()
        if place:
            logits[place % 7] += 1.0
        row, total = logits.softmax(0).double(), sum(counts.values())
        kept = [t for t in range(8) if total * float(row[t]) >= 5]
        if total < 60 or len(kept) < 2:
            continue
        rest = 1 - float(row[kept].sum())
        for token in kept:
            expected = total * float(row[token])
            statistic += (counts[token] - expected) ** 2 / expected
        if rest > 1e-9:
            others = total - sum(counts[t] for t in kept)
            statistic += (others - total * rest) ** 2 / (total * rest)
        freedom += len(kept) - (rest <= 1e-9)
        checked += 1
    assert checked >= 8
    assert stats.chi2.sf(statistic, freedom) > 1e-4


def test_a_wrong_rule_shows_in_the_same_test() -> None:
    """SSD accepts more than it may: the first judged place drifts from the target's row."""
    counts = Counter[int]()
    for seed in range(500):
        spoken = tokens(speak("ssd", seed, max_tokens=3, draft=Toy(9)))
        if len(spoken) > 1 and spoken[0] == 0:
            counts[spoken[1]] += 1
    logits = TARGET.logits[0].clone()
    logits[1] += 1.0
    row, total = logits.softmax(0).double(), sum(counts.values())
    observed = [counts[t] for t in range(8)]
    assert stats.chisquare(observed, [total * float(p / row.sum()) for p in row]).pvalue < 1e-4


@pytest.mark.parametrize("name", ["target", "sd", "ssd", "pcg", "lantern", "gsd", "tolerance"])
@pytest.mark.parametrize("lookahead", [0, 1, 3, 5])
def test_caches_hold_what_was_committed(name: str, lookahead: int) -> None:
    """After every round the caches hold the prompt and all emitted tokens but the last.

    The draft lacks one more after a fully accepted block: it has not read its own last token.
    """
    target, draft = Toy(1), Toy(2, near=TARGET)
    emitted: list[int] = []
    for one in speak(name, 5, 25, lookahead, target=target, draft=draft):
        emitted += one.emitted
        assert one.start == len(emitted) - len(one.emitted)
        assert len(one.drafted) <= lookahead
        kept_whole = len(one.emitted) == len(one.drafted) + 1 and bool(one.drafted)
        for session in target.sessions:
            assert session.ids == emitted[:-1]
        for session in draft.sessions if one.drafted else ():  # else it had nothing to do
            assert session.ids == emitted[: len(emitted) - 1 - kept_whole]
    assert all(session.closed for session in target.sessions + draft.sessions)
    assert len(target.sessions) == 1
    assert len(draft.sessions) == (name != "target" and lookahead > 0)
    assert len(emitted) == 25 or emitted[-1] == 7


def test_one_target_pass_a_round() -> None:
    target = Toy(1)
    rounds = list(speak("pcg", 3, target=target))
    assert target.steps == len(rounds) - 1
    assert sum(len(one.emitted) for one in rounds) > len(rounds)


def test_the_end_inside_an_accepted_run_ends_the_utterance() -> None:
    ending = Toy(1, end=1.5)
    helper = Toy(2, near=ending, end=1.5)
    inside = 0
    for seed in range(60):
        rounds = list(speak("pcg", seed, 40, target=ending, draft=helper))
        spoken = [token for one in rounds for token in one.emitted]
        assert 7 not in spoken[:-1]
        last = rounds[-1]
        assert last.finished == ("end" if spoken[-1] == 7 else "budget")
        assert all(one.finished is None for one in rounds[:-1])
        assert 7 not in last.drafted[:-1], "nothing is drafted after the end"
        inside += last.finished == "end" and 7 in last.drafted[: last.verdict.accepted]
    assert inside > 5
    for session in ending.sessions + helper.sessions:
        assert 7 not in session.ids


@pytest.mark.parametrize("budget", range(1, 12))
def test_the_budget_inside_a_run(budget: int) -> None:
    quiet = Toy(1, end=-50.0)
    rounds = list(speak("pcg", 2, budget, target=quiet, draft=Toy(2, near=quiet, end=-50.0)))
    assert sum(len(one.emitted) for one in rounds) == budget
    assert rounds[-1].finished == "budget"


@pytest.mark.parametrize("after", range(6))
def test_closing_after_any_round_closes_both_caches(after: int) -> None:
    target, draft = Toy(1, end=-9.0), Toy(2, near=TARGET, end=-9.0)
    run = speak("pcg", 1, target=target, draft=draft)
    spoken = [next(run) for _ in range(after)]
    run.close()  # type: ignore[attr-defined]
    assert all(session.closed for session in target.sessions + draft.sessions)
    assert len(target.sessions) == (after > 0)
    if spoken:
        emitted = [token for one in spoken for token in one.emitted]
        assert target.sessions[0].ids == emitted[:-1]
        read = draft.sessions[0].ids
        assert read == emitted[: len(read)] and len(read) >= len(emitted) - 2
    assert spoken == [] or spoken[-1].finished is None


def test_cancelling_finishes_the_round_it_falls_into() -> None:
    asked = iter([False, False, True])
    rounds = list(speak("pcg", 1, should_stop=lambda: next(asked)))
    assert [one.finished for one in rounds] == [None, None, "cancelled"]


@pytest.mark.timeout(900)
def test_a_thousand_interleavings_speak_as_alone() -> None:
    """Requests that take turns in any order never touch each other's caches or streams."""
    kinds = [(name, seed) for name in ("target", "sd", "ssd", "pcg") for seed in range(3)]
    alone = {kind: tokens(speak(*kind, max_tokens=4)) for kind in kinds}
    chooser = random.Random(0)
    for _ in range(1000):
        chosen = chooser.sample(kinds, 2)
        running = {kind: speak(*kind, max_tokens=4) for kind in chosen}
        spoken: dict[tuple[str, int], list[int]] = {kind: [] for kind in chosen}
        while running:
            kind = chooser.choice(list(running))
            one = next(running[kind], None)
            if one is None:
                del running[kind]
            else:
                spoken[kind] += one.emitted
        assert all(spoken[kind] == alone[kind] for kind in chosen)
