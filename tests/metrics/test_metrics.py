"""Metric sanity: what must move a metric moves it, and a missing model is told, not a zero."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pcg import metrics
from pcg.errors import PcgError
from pcg.metrics import speaker as speaker_module
from pcg.metrics.measure import Measure, MetricMissing
from tests.metrics.speech import speech

Clip = tuple[np.ndarray, str, str]


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    return speech()


def test_swapped_transcripts_raise_wer(clips: list[Clip]) -> None:
    (first, text, _), (_, other, _) = clips[0], clips[1]
    right, wrong = metrics.wer(text, first), metrics.wer(other, first)
    assert right.ok, right.missing
    assert float(right) <= 0.2 and float(wrong) > 0.7
    assert "tiny.en" in right.model and right.details["words"] == len(text.split())


def test_transcription_is_deterministic(clips: list[Clip]) -> None:
    assert metrics.transcribe(clips[3][0]) == metrics.transcribe(clips[3][0])


def test_another_speaker_lowers_similarity(clips: list[Clip]) -> None:
    a0, a1, b0 = clips[0][0], clips[1][0], clips[2][0]
    same, other = metrics.speaker_similarity(a0, a1), metrics.speaker_similarity(a0, b0)
    assert float(same) > float(other) + 0.15
    assert "Resemblyzer" in same.model
    assert float(metrics.speaker_similarity(a0, a0)) == pytest.approx(1.0, abs=1e-5)


def test_noise_lowers_naturalness(clips: list[Clip]) -> None:
    if find_spec("distillmos") is None:
        pytest.skip("distillmos is a development requirement")
    clean = clips[0][0]
    noise = np.random.default_rng(0).standard_normal(clean.size).astype(np.float32)
    assert (
        float(metrics.naturalness(clean)) > float(metrics.naturalness(clean + 0.05 * noise)) + 0.3
    )


def test_own_embedding_agrees_with_the_package(clips: list[Clip]) -> None:
    pytest.importorskip("webrtcvad")
    resemblyzer = pytest.importorskip("resemblyzer")
    encoder = resemblyzer.VoiceEncoder("cpu", verbose=False)
    for audio, _, _ in clips[:3]:
        theirs = encoder.embed_utterance(resemblyzer.preprocess_wav(audio))
        assert float(theirs @ metrics.speaker_embedding(audio)) > 0.99


def test_missing_model_is_visible(clips: list[Clip], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaker_module, "find_spec", lambda name: None)
    speaker_module._resemblyzer.cache_clear()
    result = metrics.speaker_similarity(clips[0][0], clips[1][0])
    speaker_module._resemblyzer.cache_clear()
    assert result.value is None and "pip install" in str(result.missing)
    with pytest.raises(PcgError, match="not measured"):
        float(result)


def test_missing_recogniser_is_visible(clips: list[Clip], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jiwer", None)
    result = metrics.wer(clips[0][1], clips[0][0])
    assert result.value is None and "jiwer" in str(result.missing)


def test_unreachable_hub_model_is_visible(tmp_path: Path, clips: list[Clip]) -> None:
    for result in (
        metrics.speaker_similarity(clips[0][0], clips[1][0], model=str(tmp_path)),
        metrics.wer("some words", clips[0][0], model=str(tmp_path)),
    ):
        assert isinstance(result, Measure) and result.value is None
        assert "not installed" in str(result.missing)


def test_word_errors_normalise_both_sides() -> None:
    same = metrics.word_errors(
        "Mr. Smith paid twenty dollars, didn't he?", "mister smith paid $20 did not he"
    )
    assert same.errors == 0
    worse = metrics.word_errors("one small step", "one step for man")
    assert (worse.errors, worse.words) == (3, 3)
    with pytest.raises(PcgError, match="no words"):
        metrics.word_errors("...", "anything")


@pytest.mark.parametrize(
    "audio",
    [
        np.zeros((2, 16000), np.float32),
        np.zeros(10, np.float32),
        np.full(16000, np.nan, np.float32),
    ],
)
def test_unusable_audio_is_refused(audio: np.ndarray) -> None:
    with pytest.raises(PcgError):
        metrics.speaker_embedding(audio)


def test_signal_checks() -> None:
    tone = 0.5 * np.sin(2 * np.pi * 200 * np.arange(16000) / 16000).astype(np.float32)
    quiet = np.zeros(16000, np.float32)
    facts = metrics.signal_checks(np.concatenate([tone, quiet]), expected_seconds=0.6, ended=True)
    assert facts["silence"] == pytest.approx(0.5, abs=0.02)
    assert facts["longest_silence"] == pytest.approx(1.0, abs=0.05)
    assert facts["runaway"] and not facts["silent"]
    assert metrics.signal_checks(quiet)["silent"]
    assert metrics.signal_checks(np.clip(tone * 4, -1, 1))["clipping"] > 0.3
    assert metrics.signal_checks(tone, ended=False)["runaway"]


def test_f0_error_sees_a_shift() -> None:
    pytest.importorskip("pyworld")
    time = np.arange(16000) / 16000

    def buzz(hz: float) -> np.ndarray:
        return (
            sum(np.sin(2 * np.pi * hz * k * time) / k for k in range(1, 9)).astype(np.float32) * 0.2
        )

    assert float(metrics.f0_error(buzz(150), buzz(150))) < 1
    assert float(metrics.f0_error(buzz(150), buzz(150 * 2 ** (1 / 12)))) == pytest.approx(
        100, abs=5
    )
    assert issubclass(MetricMissing, PcgError)


@pytest.mark.slow
def test_real_recordings_are_heard_as_known() -> None:
    """WER on real held-out prompts within 3 points of the 3.1 % measured elsewhere."""
    from pcg.evaluation.recordings import debian_utterances, recording

    utterances = debian_utterances(40)
    if not utterances:
        pytest.skip("install Debian's asterisk-core-sounds-en-g722 and asterisk-core-sounds-en")
    heard = [metrics.wer(u.text, recording(u.audio, u.text)) for u in utterances]
    rate = sum(h.details["errors"] for h in heard) / sum(h.details["words"] for h in heard)
    assert rate <= 0.061
