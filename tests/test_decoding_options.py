"""The decoding loop's options and refusals."""

import pytest
import torch

from pcg.decoding import AdaptiveLookahead, Prompt, decode
from pcg.errors import PcgError
from pcg.sampling import Sampling
from tests.test_decoding import DRAFT, PLAIN, TARGET, rule, speak, tokens
from tests.toys import PROMPT, Toy


def test_the_same_seed_repeats_and_another_differs() -> None:
    assert tokens(speak(seed=4)) == tokens(speak(seed=4))
    assert len({tuple(tokens(speak(seed=seed))) for seed in range(6)}) > 4


def test_greedy_decoding_is_the_targets_own_path_under_sd() -> None:
    greedy = Sampling(temperature=0.0)
    assert tokens(speak("sd", sampling=greedy)) == tokens(speak("target", sampling=greedy))


def test_rows_are_those_that_were_judged() -> None:
    for one in speak("sd", keep_rows=True):
        assert one.rows is not None
        draft, target = one.rows
        assert draft.shape == (len(one.drafted), 8)
        assert target.shape == (len(one.drafted) + 1, 8)
        for judged in one.verdict.judgements:
            assert judged.draft_prob == float(draft[judged.position, judged.token])
            assert judged.target_prob == float(target[judged.position, judged.token])
    assert all(one.rows is None for one in speak("sd"))


def test_adaptive_lookahead_stays_within_its_bounds() -> None:
    quiet = Toy(1, end=-50.0)
    adaptive = AdaptiveLookahead(1, 6, 3)
    rounds = list(speak("pcg", 0, 200, target=quiet, draft=quiet, adaptive=adaptive))
    drafted = [len(one.drafted) for one in rounds[1:-1]]
    assert max(drafted) == 6, "a perfect draft is asked for more"
    assert all(1 <= count <= 6 for count in drafted)
    far = AdaptiveLookahead(1, 6, 3)
    for _ in range(50):
        far.learn(far.choose(), 0)
    assert far.choose() == 1
    with pytest.raises(PcgError, match="lowest"):
        AdaptiveLookahead(0, 6, 3)


@pytest.mark.parametrize("name", ["target", "pcg"])
def test_positions_are_the_last_budget(name: str) -> None:
    """A model with few positions is never stepped beyond them."""
    small = Toy(1, end=-50.0, max_positions=12)
    rounds = list(speak(name, 0, 100, target=small, draft=Toy(2, end=-50.0)))
    assert sum(len(one.emitted) for one in rounds) == 9
    assert rounds[-1].finished == "budget"
    short = Toy(2, end=-50.0, max_positions=10)
    if name == "pcg":
        assert len(tokens(speak(name, 0, 100, target=small, draft=short))) == 7


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"lookahead": -1}, "lookahead must be"),
        ({"lookahead": 17}, "lookahead must be"),
        ({"lookahead": 2.5}, "lookahead must be"),
        ({"max_tokens": 0}, "budget must be"),
        ({"draft": None}, "needs a draft"),
        ({"draft": Toy(1, vocab_size=9)}, "different vocabularies"),
        ({"prompt": Prompt(())}, "positions"),
        ({"prompt": Prompt(tuple(range(500)))}, "500 of 500 positions: shorten"),
    ],
)
def test_arguments_are_checked_at_the_call(changed: dict[str, object], sentence: str) -> None:
    options: dict[str, object] = {
        "target": TARGET,
        "draft": DRAFT,
        "prompt": PROMPT,
        "rule": rule("sd"),
        "sampling": PLAIN,
        "max_tokens": 5,
        **changed,
    }
    with pytest.raises(PcgError, match=sentence):
        decode(**options)  # type: ignore[arg-type]


def test_broken_logits_close_the_caches() -> None:
    broken = Toy(1)
    broken.logits[:-1] = torch.nan
    with pytest.raises(PcgError, match="not numbers"):
        list(speak("sd", 0, target=broken))
    assert broken.sessions and all(session.closed for session in broken.sessions)
