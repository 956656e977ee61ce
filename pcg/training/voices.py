"""The voices that ship with the bundled model: prompts made by the corpus code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pcg.codec import world
from pcg.codec.bundled import BundledCodec
from pcg.training.corpus import TOKEN_FRAMES, VOICES, Utterance
from pcg.training.teacher import Teacher
from pcg.training.tokens import trim_silence

PROMPTS = {
    "heart": "The morning light came slowly over the quiet harbour.",
    "marlow": "A good story needs only a fire and someone to listen.",
    "bruno": "The old clock in the hall has not stopped for years.",
    "alma": "Please read the second page again, a little slower.",
    "pip": "We found a tiny blue shell beside the water today.",
    "wren": "Every bird in the garden seems to know this song.",
    "odile": "She keeps her letters in a wooden box by the door.",
}
LABELS = {"odile": "never heard in training"}


def make_voices(cache: Path, codec: BundledCodec, out: Path) -> list[str]:
    """Writes ``NAME.flac`` and ``NAME.json`` (transcript, codes) for each bundled voice."""
    import soundfile

    out.mkdir(parents=True, exist_ok=True)
    teacher = Teacher(cache)
    for seed, (name, text) in enumerate(PROMPTS.items()):
        taught = teacher.speak(text, speed=1.0, seed=1000 + seed)
        features = world.analyse(taught.audio, taught.f0)
        spoken = Utterance(text, "heart", taught.phonemes, taught.durations, features, taught.audio)
        first, last, _ = trim_silence(spoken)
        voiced = spoken.in_voice(VOICES[name])[first * TOKEN_FRAMES : last * TOKEN_FRAMES]
        if name == "heart":
            hop = TOKEN_FRAMES * world.FRAME_SAMPLES
            audio = taught.audio[first * hop : last * hop]
        else:
            audio = world.synthesise(voiced)
        audio = audio * (0.6 / max(1e-3, float(np.abs(audio).max())))
        codes = codec.encode_features(voiced)
        soundfile.write(out / f"{name}.flac", audio, world.SAMPLE_RATE)
        facts = {
            "name": name,
            "transcript": text,
            "source": "synthetic" + (f", {LABELS[name]}" if name in LABELS else ""),
            "codec": "bundled",
            "codes": [int(code) for code in codes],
        }
        (out / f"{name}.json").write_text(json.dumps(facts))
    return list(PROMPTS)
