"""Takes the metrics of one utterance, each once, as plain data for its row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcg import metrics
from pcg.evaluation.arms import Options
from pcg.evaluation.manifest import Utterance
from pcg.evaluation.rows import Row

Audio = NDArray[np.float32]


class Judge:
    """``voices``: the bundled voices by name, for the similarity to voices that are not meant."""

    def __init__(self, options: Options, voices: Mapping[str, Any]) -> None:
        self.options, self.voices = options, voices
        self._embeddings: dict[str, Any] = {}

    def __call__(
        self, utterance: Utterance, audio: Audio, ended: bool | None, prompt: Audio | None
    ) -> Row:
        """Signal, WER and CER, similarity to ``prompt`` and naturalness of ``audio``.

        Silence counts as a transcript without words; it has no voice and no naturalness.
        """
        signal = metrics.signal_checks(audio, ended=ended)
        if signal["seconds"] < 0.1 or signal["silent"]:
            words = metrics.word_errors(utterance.text, "")
            counts = _counts(dataclasses.asdict(words))
            return {"signal": signal, "wer": {**counts, "note": "no sound to transcribe"}}
        row: Row = {"signal": signal, "wer": self._words(utterance.text, audio)}
        if prompt is not None:
            row["similarity"] = self._similarity(utterance, audio, prompt)
        if self.options.mos:
            row["naturalness"] = metrics.naturalness(audio).to_dict()
        return row

    def _words(self, text: str, audio: Audio) -> Row:
        heard = metrics.wer(text, audio, self.options.asr or None)
        row = {**_counts(heard.details), "model": heard.model}
        return {**row, "missing": heard.missing} if heard.missing else row

    def _similarity(self, utterance: Utterance, audio: Audio, prompt: Audio) -> Row:
        """Cosine with the prompt, and the mean and highest with the other bundled voices."""
        name = self.options.speaker or None
        try:
            vector = metrics.speaker_embedding(audio, name)
            own = self._embedding(utterance.voice or utterance.prompt, prompt)
            others = [
                float(vector @ self._embedding(other, voice.audio))
                for other, voice in sorted(self.voices.items())
                if utterance.voice and other != utterance.voice
            ]
        except metrics.MetricMissing as error:
            return {"value": None, "missing": f"not installed: {error}"}
        row: Row = {"value": round(float(vector @ own), 6), "model": metrics.speaker_label(name)}
        if others:
            row["others"] = round(float(np.mean(others)), 6)
            row["closest_other"] = round(max(others), 6)
        return row

    def _embedding(self, name: str, audio: Audio) -> Any:
        if name not in self._embeddings:
            self._embeddings[name] = metrics.speaker_embedding(audio, self.options.speaker or None)
        return self._embeddings[name]


def _counts(details: Mapping[str, Any]) -> Row:
    names = ("errors", "words", "char_errors", "chars", "hypothesis")
    return {name: details[name] for name in names if name in details}
