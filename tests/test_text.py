"""Whatever people type is spoken or refused in one sentence."""

import time

import pytest

from pcg.errors import PcgError
from pcg.text import normalise, split_text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "3:45pm on 12/03/2026 costs $1,204.50, see https://a.b/c?d=1",
            "three forty five P M on December third twenty twenty six costs one thousand two "
            "hundred and four dollars and fifty cents, see a dot b slash c question mark d equals "
            "one",
        ),
        ("25/12/2025", "December twenty fifth twenty twenty five"),
        ("2026-01-05", "January fifth twenty twenty six"),
        ("at 9:05 or 9:00", "at nine oh five or nine o'clock"),
        ("Dr. Li owes 5% of -3.5 km", "Doctor Li owes five percent of minus three point five "
         "kilometers"),
        ("the 21st, 10-12 people in 1999", "the twenty first, ten to twelve people in nineteen "
         "ninety nine"),
        ("$3.5 million, $0.99", "three point five million dollars, ninety nine cents"),
        ("555-123-4567", "five five five, one two three, four five six seven"),
        ("v2.0.1", "v two point zero point one"),
        ("agent 007", "agent zero zero seven"),
        ("me@x.org!", "me at x dot org!"),
        ("<b>Bold</b> <script>alert(1)</script>&amp; more", "Bold and more"),
        ("a\x00b\x07\u200bc d\te", "abc d e"),
        ("so 😀 good ❤️", "so good"),
        ("caf\u00e9 na\u00efve", "café naïve"),
        ("1e400 and 99999999999999999999", None),
    ],
)  # fmt: skip
def test_what_is_said(text, said):
    words = normalise(text)
    assert not any(c.isdigit() for c in words)
    if said is not None:
        assert words == said


@pytest.mark.parametrize(
    "text", ["", "   ", "😀😀", "...", "\x00\x01", "<br>", "a" * 5001, "你好", "Привет"]
)
def test_what_is_refused(text):
    with pytest.raises(PcgError) as error:
        split_text(text)
    assert len(str(error.value)) < 160


def test_languages_may_be_allowed():
    assert normalise("你好, world", english_only=False) == "你好, world"


def test_long_texts_split_quickly_at_sentences_and_clauses():
    started = time.monotonic()
    text = "One two three. " * 100 + "alpha beta gamma, delta epsilon zeta " * 90
    pieces = split_text(text[:5000])
    assert time.monotonic() - started < 1
    assert max(map(len, pieces)) <= 180
    assert pieces[0] == "One two three."
    assert " ".join(pieces).split() == normalise(text[:5000]).split()
    assert len(split_text("x" * 4999)) == 28


@pytest.mark.parametrize("seed", range(20))
def test_noise_never_breaks_it(seed):
    import random

    rng = random.Random(seed)
    marks = "0123456789$€%:/.,-+()[]{}<>@#&x aZé你😀\n\x00\u202e"
    for _ in range(40):
        text = "".join(rng.choice(marks) for _ in range(rng.randint(1, 80)))
        try:
            assert split_text(text)
        except PcgError:
            pass
