"""Sentences for the synthetic corpus: WordNet's example sentences and seeded everyday templates.

WordNet (Princeton University, WordNet licence) is read from where Debian's ``wordnet-base`` puts
it; nothing of it is kept in this repository.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from pcg.errors import PcgError

WORDNET_FOLDER = Path("/usr/share/wordnet")
_EXAMPLE = re.compile(r'"([^"]+)"')
_PLAIN = re.compile(r"^[A-Za-z][A-Za-z ,;:.'!?-]+$")

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_NAMES = (
    "Anna Ben Clara David Emma Frank Grace Henry Ivy Jack Kate Leo Mary Noah Olive Paul".split()
)
_PLACES = "the station,the market,the library,the office,school,the harbour,the park,London,Paris"
_THINGS = "a ticket,some bread,the blue box,two apples,a new phone,the last train,my coat,coffee"
_PHRASES = (
    "Good morning, how are you today?",
    "Thank you very much for your help.",
    "Could you say that again, please?",
    "I will call you back in a minute.",
    "Please leave a message after the tone.",
    "Where is the nearest {thing} around here?",
    "Excuse me, is this seat taken?",
    "It looks like rain, so take an umbrella.",
    "See you tomorrow at {place}.",
    "{name}, would you like {thing}?",
    "We are going to {place} with {name}.",
    "{name} and {name2} met at {place}.",
    "Turn left, then right, and walk to {place}.",
    "I can hear every word you say.",
    "That sounds exactly the same to me.",
)
_NUMBERED = (
    "The answer is {n}.",
    "There were {n} people at {place}.",
    "Flight {flight} leaves at {time}.",
    "It costs {price}.",
    "The meeting is on {date} at {time}.",
    "Call me at {digits}.",
    "My number is {digits}.",
    "{name} was born on {date}.",
    "In {year}, about {percent} percent agreed.",
    "Please spell it: {letters}.",
    "The code is {letters} {digits3}.",
    "{digits}.",
    "{letters}.",
    "{n} plus {n2} is {n3}.",
    "{day}, {date}, {time}.",
    "It is {temp} degrees outside.",
)


def wordnet_sentences(
    folder: Path = WORDNET_FOLDER, shortest: int = 15, longest: int = 75
) -> list[str]:
    """Example sentences of WordNet's glosses, sorted, each once, ``shortest..longest`` characters.

    Raises:
        PcgError: when WordNet is not installed.
    """
    files = sorted(folder.glob("data.*"))
    if not files:
        raise PcgError("WordNet was not found: install Debian's wordnet-base or pass --wordnet.")
    found: set[str] = set()
    for file in files:
        for line in file.read_text(encoding="utf-8", errors="ignore").splitlines():
            gloss = line.partition(" | ")[2]
            for example in _EXAMPLE.findall(gloss):
                text = " ".join(example.split()).strip(" ;,")
                if shortest <= len(text) <= longest and _PLAIN.match(text) and " " in text:
                    found.add(text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else "."))
    return sorted(found)


def everyday_sentence(rng: random.Random) -> str:
    """One sentence with numbers, dates, times, spelled letters or an everyday phrase."""
    template = rng.choice(_NUMBERED if rng.random() < 0.7 else _PHRASES)
    one, two = rng.randint(0, 120), rng.randint(1, 99)
    big = rng.choice([one, rng.randint(100, 9999), rng.randint(0, 20)])
    name, name2 = rng.sample(_NAMES, 2)
    hour, minute = rng.randint(1, 12), rng.choice(["o'clock", "15", "30", "45", "05", "20"])
    return template.format(
        n=big,
        n2=two,
        n3=big + two,
        name=name,
        name2=name2,
        place=rng.choice(_PLACES.split(",")),
        thing=rng.choice(_THINGS.split(",")),
        day=rng.choice(_DAYS),
        date=f"{rng.choice(_MONTHS)} {rng.randint(1, 28)}",
        time=f"{hour} {minute}" if minute == "o'clock" else f"{hour}:{minute}",
        year=rng.randint(1900, 2029),
        percent=rng.randint(1, 99),
        price=f"${rng.randint(1, 90)}" + rng.choice(["", ".50", ".99", ".25"]),
        digits=" ".join(rng.choice("0123456789") for _ in range(rng.randint(4, 7))),
        digits3=" ".join(rng.choice("0123456789") for _ in range(3)),
        letters=" ".join(
            rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(rng.randint(3, 6))
        ),
        flight=rng.randint(100, 999),
        temp=rng.randint(2, 40),
    )


def corpus_texts(count: int, seed: int = 0, everyday_share: float = 0.2) -> list[str]:
    """``count`` seeded sentences; ``everyday_share`` of them from templates."""
    rng = random.Random(seed)
    plain = int(count * (1 - everyday_share))
    texts: list[str] = []
    if plain:
        wordnet = wordnet_sentences()
        rng.shuffle(wordnet)
        texts = (wordnet * (plain // len(wordnet) + 1))[:plain]
    texts += [everyday_sentence(rng) for _ in range(count - plain)]
    rng.shuffle(texts)
    return texts
