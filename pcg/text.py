"""Text as it is said: numbers, dates, times, money, addresses and signs in words; sentences.

Numbers are worded by num2words; this module finds what is a date, a price or an address.
English; a day in figures is read the American way (12/03 is December 3rd) unless it cannot be.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable

from pcg.errors import PcgError

MAX_CHARS = 5000
SENTENCE_CHARS = 180
MONTHS = (
    "January February March April May June July August September October November December"
).split()
UNITS = {
    "km": "kilometers", "cm": "centimeters", "mm": "millimeters", "kg": "kilograms",
    "mg": "milligrams", "km/h": "kilometers per hour", "mph": "miles per hour", "GB": "gigabytes",
    "MB": "megabytes", "kHz": "kilohertz", "Hz": "hertz", "ms": "milliseconds",
    "°C": "degrees Celsius", "°F": "degrees Fahrenheit", "°": "degrees", "%": "percent",
    "lbs": "pounds", "ft": "feet", "kWh": "kilowatt hours",
}  # fmt: skip
WORDS = {
    "Mr.": "Mister", "Mrs.": "Missus", "Ms.": "Miz", "Dr.": "Doctor", "Prof.": "Professor",
    "St.": "Saint", "vs.": "versus", "etc.": "et cetera", "e.g.": "for example",
    "i.e.": "that is", "approx.": "approximately", "No.": "number", "Jr.": "Junior",
    "a.m.": "AM", "p.m.": "PM", "U.S.": "US", "U.K.": "UK",
}  # fmt: skip
SIGNS = {
    "&": " and ", "@": " at ", "+": " plus ", "=": " equals ", "#": " number ", "°": " degrees ",
    "€": " euros ", "£": " pounds ", "$": " dollars ", "%": " percent ", "/": " slash ",
    "_": " ", "*": " ", "~": " about ", "^": " ", "|": " ", "\\": " ", "<": " ", ">": " ",
    "×": " times ", "÷": " divided by ", "•": ", ", "©": " ", "®": " ", "™": " ", "{": " ",
    "}": " ", "[": ", ", "]": ", ", "`": " ",
}  # fmt: skip
MONEY = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "sen", "sen"),
}
NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
SCALES = r"(?:\s+(thousand|million|billion|trillion))?"


def normalise(text: str, english_only: bool = True) -> str:
    """The text as words and plain punctuation.

    Raises:
        PcgError: for text that is empty, too long, or in letters this voice cannot read.
    """
    if len(text) > MAX_CHARS:
        raise PcgError(f"The text has {len(text)} characters; at most {MAX_CHARS} can be spoken.")
    text = _plain(text)
    for pattern, say in _RULES:
        text = pattern.sub(say, text)
    text = re.sub("|".join(map(re.escape, SIGNS)), lambda m: SIGNS[m[0]], text)
    text = "".join(c for c in text if not _is_picture(c))
    text = re.sub(r"\s+([,.;:!?])", r"\1", re.sub(r"\s+", " ", text))
    text = re.sub(r"([,;:])(?:[,;:]\s*)+", r"\1 ", text).strip(" ,;:")
    if not any(c.isalpha() for c in text):
        raise PcgError("There is nothing to say in this text: write some words.")
    if english_only:
        _check_letters(text)
    return text


def split_text(
    text: str, max_chars: int = SENTENCE_CHARS, english_only: bool = True
) -> list[str]:
    """Normalised sentences of at most about ``max_chars``, cut at clauses or words if need be."""
    sentences: list[str] = []
    for sentence in re.split(r"(?<=[.!?…])[\"'”’)]*\s+", normalise(text, english_only)):
        for piece in _pieces(sentence.strip(), max_chars):
            short = sentences and len(sentences[-1]) < 12 and len(piece) < max_chars - 12
            if short:
                sentences[-1] += " " + piece
            elif any(c.isalnum() for c in piece):
                sentences.append(piece)
    return sentences


def _pieces(sentence: str, limit: int) -> list[str]:
    pieces = []
    while len(sentence) > limit:
        head = sentence[:limit]
        cut = max(head.rfind(mark) + 1 for mark in (", ", "; ", ": ", " – ", " — "))
        if cut < limit // 3:
            cut = head.rfind(" ") if " " in head else limit
        pieces.append(sentence[:cut].strip())
        sentence = sentence[cut:].strip()
    return [*pieces, sentence] if sentence else pieces


def _plain(text: str) -> str:
    """Without tags, control characters, odd spaces and composed forms."""
    text = html.unescape(re.sub(r"<(script|style)\b.*?</\1\s*>", " ", text, flags=re.S | re.I))
    text = re.sub(r"</?[A-Za-z!][^<>]{0,300}>", " ", text)
    text = unicodedata.normalize("NFKC", text.replace("\u2026", "...").replace("…", "..."))
    text = text.translate(str.maketrans("’‘“”−", "''\"\"-"))
    text = re.sub(r"\.{4,}", "...", text)
    return "".join(
        " " if c.isspace() else "" if unicodedata.category(c)[0] == "C" else c for c in text
    )


def _is_picture(c: str) -> bool:
    return unicodedata.category(c) in ("So", "Sk", "Sm", "Mn", "Me", "Co", "Cn") or c == "\ufe0f"


def _check_letters(text: str) -> None:
    letters = [c for c in text if c.isalpha()]
    foreign = [c for c in letters if "LATIN" not in unicodedata.name(c, "")]
    if foreign:
        raise PcgError(
            f"This voice reads English; it cannot say {foreign[0]!r}: write it in Latin letters."
        )


def _words(number: str, to: str = "cardinal") -> str:
    from num2words import num2words

    digits = number.replace(",", "")
    padded = digits[0] == "0" and digits.isdigit() and len(digits) > 1
    if len(digits.split(".")[0]) > 15 or padded:
        return " ".join(str(num2words(int(d))) for d in digits if d.isdigit())
    value = int(digits) if digits.isdigit() else digits
    return str(num2words(value, to=to)).replace(",", "").replace("-", " ")


def _year(number: str) -> str:
    from num2words import num2words

    return str(num2words(int(number), to="year")).replace("-", " ")


def _money(match: re.Match[str]) -> str:
    sign, amount, scale = match[1], match[2].replace(",", ""), match[3]
    one, many, cent, cents = MONEY[sign]
    if re.fullmatch(r"0\.\d\d", amount) and not scale and int(amount[2:]):
        return f"{_words(str(int(amount[2:])))} {cent if amount == '0.01' else cents}"
    if scale:
        return f"{_words(amount)} {scale} {many}"
    whole, _, part = amount.partition(".")
    said = f"{_words(whole)} {one if int(whole) == 1 else many}"
    if len(part) == 2 and int(part):
        said += f" and {_words(str(int(part)))} {cent if int(part) == 1 else cents}"
    elif part and int(part):
        return f"{_words(amount)} {many}"
    return said


def _time(match: re.Match[str]) -> str:
    hour, minute, half = int(match[1]), match[2], (match[3] or "").replace(".", "").upper()
    if hour > 23 or int(minute) > 59:
        return f"{_words(match[1])} {_words(minute)}"
    said = _words(str(hour))
    if int(minute):
        said += f" oh {_words(minute[1])}" if minute[0] == "0" else f" {_words(minute)}"
    elif not half:
        said += " o'clock" if hour <= 12 else " hundred"
    return f"{said} {' '.join(half)}".strip()


def _date(month: int, day: int, year: str) -> str:
    return f"{MONTHS[month - 1]} {_words(str(day), 'ordinal')} {_year(year)}"


def _slash_date(match: re.Match[str]) -> str:
    first, second, year = int(match[1]), int(match[2]), match[3]
    year = year if len(year) == 4 else f"20{year}"
    if first > 12 >= second:
        first, second = second, first
    if not (1 <= first <= 12 and 1 <= second <= 31):
        return match[0].replace("/", " slash ")
    return _date(first, second, year)


def _iso_date(match: re.Match[str]) -> str:
    month, day = int(match[2]), int(match[3])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0].replace("-", " ")
    return _date(month, day, match[1])


def _address(match: re.Match[str]) -> str:
    """An URL or e-mail address, its marks by name."""
    text = re.sub(r"^https?://(www\.)?", "", match[0], flags=re.I).rstrip("/.,;:!?)")
    tail = match[0][len(match[0].rstrip(".,;:!?)")) :]
    for mark, name in {
        ".": "dot", "/": "slash", "@": "at", "-": "dash", "_": "underscore", "?": "question mark",
        "=": "equals", "&": "and", ":": "colon", "#": "hash", "%": "percent", "+": "plus",
        "~": "tilde",
    }.items():  # fmt: skip
        text = text.replace(mark, f" {name} ")
    return f" {text}{tail} "


def _unit(match: re.Match[str]) -> str:
    return f"{match[1]} {UNITS[match[2]]}"


def _ordinal(match: re.Match[str]) -> str:
    return _words(match[1], "ordinal")


def _plain_number(match: re.Match[str]) -> str:
    sign, number = match[1], match[2]
    bare = len(number) == 4 and number.isdigit() and 1100 <= int(number) <= 2099
    said = _year(number) if bare and not sign else _words(number)
    letter = match.string[match.end() : match.end() + 1].isalpha()
    return f"{'minus ' if sign else ''}{said}{' ' if letter else ''}"


def _version(match: re.Match[str]) -> str:
    return " " + " point ".join(_words(part) for part in match[0].split(".")) + " "


def _telephone(match: re.Match[str]) -> str:
    return ", ".join(" ".join(part) for part in re.findall(r"\d+", match[0]))


_UNIT = "|".join(re.escape(u) for u in sorted(UNITS, key=len, reverse=True))
_RULES: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = [
    (re.compile(r"(?:https?://|www\.)[^\s<>\"']+", re.I), _address),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), _address),
    (re.compile(r"\b[a-z0-9-]{2,}\.(?:com|org|net|edu|gov|io|dev)\b(?:/[^\s<>\"']*)?"), _address),
    (re.compile("|".join(rf"(?<!\w){re.escape(w)}" for w in WORDS)), lambda m: WORDS[m[0]]),
    (re.compile(rf"([$€£¥])\s?({NUMBER}){SCALES}"), _money),
    (re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b"), _iso_date),
    (re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})\b"), _slash_date),
    (re.compile(r"\b(\d{1,2}):(\d{2})(?::\d{2})?(?:\s?([AaPp]\.?[Mm]\b\.?))?"), _time),
    (re.compile(r"\(?\b\d{3}\)?[ -]\d{3}[ -]\d{4}\b"), _telephone),
    (re.compile(r"\d+(?:\.\d+){2,}"), _version),
    (re.compile(r"(?<=\d)\s?[x×]\s?(?=\d)"), lambda m: " by "),
    (re.compile(r"\b24/7\b"), lambda m: "twenty four seven"),
    (re.compile(rf"({NUMBER})\s?({_UNIT})(?![A-Za-z])"), _unit),
    (re.compile(r"\b(\d+)(?:st|nd|rd|th)\b"), _ordinal),
    (re.compile(r"(?<=\d)\s?[-–]\s?(?=\d)"), lambda m: " to "),
    (re.compile(rf"(?<![\w.])(-)?({NUMBER})(?![\d])"), _plain_number),
    (re.compile(rf"()({NUMBER})"), lambda m: f" {_words(m[2])} "),
]
