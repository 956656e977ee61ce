# ruff: noqa: E501 - lines of the card are Markdown paragraphs
"""The model card of the bundled voice, written from the JSON that training and evaluation left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pcg.settings import BUNDLED_DIR

RESULTS = BUNDLED_DIR.parent / "results" / "bundled" / "summary.json"
CHAIN = (
    "corpus --workers 2",
    "codec --minutes 30",
    "decoder --minutes 44",
    "tokens --workers 2",
    "durations --minutes 2.5",
    "target --minutes 50",
    "deepen --minutes 50",
    "draft --layers 0,2 --stage corpus --minutes 38",
    "draft --layers 0,2 --stage samples --minutes 18",
    "assets --theta {theta}",
    "card",
)
MEASURES = (
    "wer",
    "cer",
    "similarity",
    "margin",
    "to_original",
    "naturalness",
    "acceptance",
    "tokens_per_round",
    "ended",
)

TEXT = """# The bundled voice

A small English voice model that this repository trained itself, on two CPU cores, so that group-level
speculative decoding can be heard anywhere without a network. It is there to show the method; it is not
a competitor of LLaSA. Every figure below is read from a stored JSON; `python -m pcg train card` writes
this file.

## Parts

- **Codec** (`codec/`): WORLD features every 6.25 ms, a finite scalar quantiser of four digits with eight
  levels (4,096 codes), 40 tokens a second, ConvNeXt encoder and decoder, WORLD synthesis. Last training
  losses: {codec}.
- **Target** (`target/`): a Llama of {layers} layers, width {width}, in LLaSA's form (text, start of speech,
  codes, end). Its text is phonemes, and the rotary position of a phoneme is the speech token at which it
  starts ("timed phonemes"); a small network predicts those times. It was trained at half that depth first,
  then a silent copy was put behind each layer (block expansion, arXiv 2401.02415) and it went on.
  Validation loss (nats a token) by step: {history}.
- **Draft** (`draft/`): layers "{draft_layers}" of the target, trained on the corpus with the
  probabilities of the target before it was deepened, then on the final target's own samples. Expected acceptance of exact matching on the target's
  own samples: {acceptance}.
- **Groups, map, voices** (`groups/`, `atlas/`, `voices/`): from the target's input embeddings, and from
  Mel features of held codes (the rival of the paper's Table 3). Default theta {theta}.

## Data

Sentences: WordNet's example sentences (Princeton, WordNet licence) and templates of this repository with
numbers, dates, times, spelled letters and phrases. Speech: {spoken} h spoken by hibari-tts (Apache-2.0) and
Debian's flite voices slt, rms and kal16 (BSD-like); WORLD-shifted versions make the other voices
({hours} h in all named voices), and each shard has two random ones. `odile` and flite's `awb` were never
trained on, nor were the sentences of the held-out shard. No recording of a person outside these packages
was used. One teacher's sentence is encoded in three voices. The encoder, the times of the phonemes and the
target at half its depth saw the first 28 of the 61 shards; the decoder, the whole target and the draft all.

## How it was made

Seeds 0 (corpus 11). Each step resumes where it stopped:

```bash
{commands}
```

## What was measured

{measured}

## Routes not taken

A free iSTFT decoder with a waveform GAN buzzed after an hour (DistillMOS 1.2, WER 13 %); the teacher's own
decoder (DistillMOS 4.2) speaks in one voice only. WORLD at 12.5 ms gave 3.3 where 6.25 ms gives 3.7 to 3.9
before any quantiser, with DIO run at 5 ms. The regression decoder alone reached 2.6; a discriminator on
envelopes brought it to 3.5 with every code unchanged.

## What it cannot do

English only; words its phonemiser does not know are guessed. It follows the pitch and timbre of a prompt,
not accents, emotions or noises. High, small voices (`pip`) are the least clear. Groups are larger, relative to
the codebook, than LLaSA's: do not carry a theta from here to LLaSA or back.
"""


def write_card(folder: Path = BUNDLED_DIR, results: Path = RESULTS) -> str:
    """Writes ``CARD.md`` into ``folder`` and returns its text."""
    text = card_text(folder, results)
    (folder / "CARD.md").write_text(text, encoding="utf-8")
    return text


def card_text(folder: Path, results: Path) -> str:
    """The card's text from the JSON files in ``folder`` and the results of `evaluate bundled`."""
    card, config = _read(folder / "pcg.json"), _read(folder / "target" / "config.json")
    codec, draft = _read(folder / "codec" / "codec.json"), _read(folder / "draft" / "training.json")
    target, corpus = _read(folder / "target" / "training.json"), _read(folder / "corpus.json")
    losses = codec.get("training", {}).get("losses", {})
    theta = card.get("default_theta", "")
    stages = (("before training", "start"), ("on the corpus", "data"), ("distilled", "distilled"))
    acceptance = [
        f"{label} {draft[f'acceptance_{key}']:.3f}"
        for label, key in stages
        if f"acceptance_{key}" in draft
    ]
    commands = [f"python -m pcg train {step}" for step in CHAIN]
    return TEXT.format(
        codec=", ".join(f"{key} {value:.3g}" for key, value in losses.items()) or "not stored",
        layers=config.get("num_hidden_layers"),
        width=config.get("hidden_size"),
        history=", ".join(f"{row[0]}: {row[2]:.2f}" for row in target.get("history", [])),
        draft_layers=draft.get("layers", ""),
        acceptance=", ".join(acceptance) or "not stored",
        theta=theta,
        spoken=corpus.get("hours_spoken", "?"),
        hours=corpus.get("hours_in_all_voices", "?"),
        commands="\n".join(commands).format(theta=theta),
        measured=measured_table(results),
    )


def measured_table(results: Path) -> str:
    """Aims and arms of `evaluate bundled` as Markdown; a sentence when it was not run."""
    summary = _read(results)
    if not summary:
        return "Not yet: run `python -m pcg evaluate bundled --n 60`."
    origin, lines = summary["origin"], ["| aim | bound | here | |", "|---|---|---|---|"]
    lines += [
        f"| {c['claim']} | {c['paper']} | {c['here']} | {c['verdict']} |" for c in summary["claims"]
    ]
    lines += ["", "| what | n | " + " | ".join(MEASURES) + " |", "|---" * (len(MEASURES) + 2) + "|"]
    for arm in summary["arms"]:
        cells = [_cell(arm.get(name)) for name in MEASURES]
        if any(cells):
            lines.append(f"| {arm['label']} | {arm['n']} | " + " | ".join(cells) + " |")
    models = "; ".join(str(model) for model in summary["metric_models"].values())
    lines += [
        "",
        f"{origin['hardware']}, {origin['dtype']}, temperature {origin['temperature']}, lookahead "
        f"{origin['lookahead']}, seed {origin['seed']}. {models}.",
    ]
    return "\n".join(lines)


def _cell(value: dict[str, float] | None) -> str:
    return "" if not value else f"{value['value']:.3f}"


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.is_file() else {}
