"""Features, alignment, prompts and sequences of the bundled voice."""

import numpy as np
import pytest
import torch

from pcg.codec import world
from pcg.codec.bundled import HOP, N_CODES, BundledCodec, CodecNetwork, FiniteScalarQuantiser
from pcg.errors import PcgError
from pcg.phonemes import PHONEMES, Layout, phoneme_labels
from pcg.training.corpus import align
from pcg.training.sequences import collate


def tone(seconds: float, hertz: float = 150.0) -> np.ndarray:
    time = np.arange(int(seconds * 16_000)) / 16_000
    pulses = sum(np.cos(2 * np.pi * hertz * k * time) / k for k in range(1, 20))
    return (0.1 * pulses).astype(np.float32)


def tiny_codec() -> BundledCodec:
    torch.manual_seed(0)
    return BundledCodec(CodecNetwork(16, 16, 1, 2))


def test_world_analysis_finds_the_pitch_and_synthesis_returns_it() -> None:
    features = world.analyse(tone(0.6))
    assert features.shape == (world.frames_of(9600), world.N_FEATURES)
    voiced = features[10:-10]
    assert voiced[:, world.VOICED].mean() > 0.9
    assert np.exp(np.median(voiced[:, world.LOG_F0])) == pytest.approx(150, rel=0.02)
    again = world.analyse(world.synthesise(features))
    assert np.exp(np.median(again[10:-10, world.LOG_F0])) == pytest.approx(150, rel=0.03)


def test_warp_moves_pitch_and_formants() -> None:
    features = world.analyse(tone(0.4))
    moved = world.warp(features, pitch=1.5, formants=1.2)
    assert np.allclose(moved[:, world.LOG_F0] - features[:, world.LOG_F0], np.log(1.5), atol=1e-4)
    assert not np.allclose(moved[:, : world.N_BANDS], features[:, : world.N_BANDS])
    assert np.array_equal(world.warp(features), features)


def test_quantiser_numbers_every_code_once() -> None:
    quantiser = FiniteScalarQuantiser()
    codes = torch.arange(N_CODES)
    values = quantiser.values(codes)
    unbounded = torch.atanh(values.clamp(-1 + 1e-6, 1 - 1e-6))
    _, back = quantiser(unbounded[None])
    assert torch.equal(back[0], codes)


@pytest.mark.parametrize("samples", [HOP, HOP + 1, 5 * HOP - 1, 16_000])
def test_codec_keeps_lengths_and_is_deterministic(samples: int) -> None:
    codec = tiny_codec()
    audio = tone(2.0)[:samples]
    codes = codec.encode(audio)
    assert len(codes) == samples // HOP
    assert np.array_equal(codes, codec.encode(audio))
    sound = codec.decode(codes)
    assert len(sound) == len(codes) * HOP
    assert np.isfinite(sound).all()


def test_codec_refuses_what_it_cannot_use() -> None:
    codec = tiny_codec()
    for audio in (np.zeros(10), np.zeros((2, 16_000)), np.full(16_000, np.nan)):
        with pytest.raises(PcgError):
            codec.encode(audio.astype(np.float32))
    for codes in ([], [N_CODES], [-1], [0] * 100_000):
        with pytest.raises(PcgError):
            codec.decode(codes)


def test_alignment_follows_a_stretch() -> None:
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(30, world.N_FEATURES)).astype(np.float32) * 3
    known = np.repeat(steps, 4 * 2, axis=0)
    other = np.repeat(steps, 4 * 3, axis=0)
    durations = align(known, np.full(30, 2), other)
    assert durations.sum() == 90
    assert np.abs(durations - 3).mean() < 0.5


def test_sequence_puts_text_beside_its_sound() -> None:
    layout = Layout(16)
    ids, positions = layout.sequence("aQ", np.array([2, 5]), 9, np.array([3, 4]))
    assert ids.tolist() == [
        layout.text_start, PHONEMES.index("a"), PHONEMES.index("Q"), layout.text_end,
        layout.speech_start, layout.speech + 3, layout.speech + 4,
    ]  # fmt: skip
    assert positions.tolist() == [0, 2, 5, 9, 0, 1, 2]


def test_batches_label_speech_only() -> None:
    layout = Layout(16)
    one = layout.sequence("a", np.array([0]), 1, np.array([5]))
    ids, labels, positions, mask = collate([one, (one[0][:4], one[1][:4])], layout)
    assert ids.shape == labels.shape == positions.shape == mask.shape
    assert (labels != -100).sum() == 1
    assert int(labels[labels != -100]) == layout.speech + 5


def test_labels_cover_every_token() -> None:
    labels = phoneme_labels("ab", np.array([2, 3, 1, 2]), 9)
    assert labels.tolist()[:2] == [len(PHONEMES)] * 2
    assert len(labels) == 9
