"""X-Codec2: native, converted from the original layout, and the package agree."""

import numpy as np
import pytest
import torch

from pcg import testing
from pcg.codec.windowed import PreviewStream, decode_long
from pcg.codec.xcodec2 import Xcodec2Codec, is_original
from pcg.codec.xcodec2_original import convert, half_split, model_of
from pcg.codec.xcodec2_package import Xcodec2PackageCodec
from pcg.errors import PcgError


@pytest.fixture(scope="module")
def codec(tmp_path_factory):
    return Xcodec2Codec.load(testing.tiny_xcodec2(tmp_path_factory.mktemp("codec")))


@pytest.mark.parametrize("seconds", [0.5, 1.0, 1.013])
def test_lengths(codec, seconds):
    audio = testing.speech_like(seconds)
    codes = codec.encode(audio)
    assert len(codes) == -(-len(audio) // 320)
    assert codes.min() >= 0 and codes.max() < 65_536
    assert codec.decode(codes).shape == (320 * len(codes),)


@pytest.mark.parametrize(
    ("codes", "words"), [([], "no speech codes"), ([65_536], "outside"), ([-1], "outside")]
)
def test_codes_that_have_no_sound_are_refused_before_the_call(codec, codes, words):
    with pytest.raises(PcgError, match=words):
        codec.decode(codes)


@pytest.mark.parametrize("audio", [np.zeros(100), np.full(16000, np.nan), np.zeros((2, 16000))])
def test_bad_audio_is_refused(codec, audio):
    with pytest.raises(PcgError):
        codec.encode(audio)


def test_windows_of_a_long_decoding_join(codec):
    codes = np.random.default_rng(0).integers(0, 65_536, 900)
    whole, joined = codec.decode(codes), decode_long(codec, codes, window_seconds=4.0)
    assert joined.shape == whole.shape
    middle = slice(190 * 320, 210 * 320)  # around the seam at 200 codes
    assert np.abs(joined[middle] - whole[middle]).max() < 0.2 * np.abs(whole).max()
    clicks = np.abs(np.diff(joined)).max()
    assert clicks < 2 * np.abs(np.diff(whole)).max()


def test_a_preview_has_every_sample_once(codec):
    codes = [int(c) for c in np.random.default_rng(1).integers(0, 65_536, 130)]
    prefix = np.arange(40)
    stream = PreviewStream(codec, prefix, chunk_seconds=0.5)
    pushed = [stream.push(codes[i : i + 4]) for i in range(0, 130, 4)]
    chunks = [chunk for chunk in pushed if chunk is not None]
    assert len(chunks) >= 3
    rest = stream.finish()
    assert sum(map(len, chunks)) + (0 if rest is None else len(rest)) == 130 * 320
    assert stream.finish() is None


def test_a_checkpoint_with_gaps_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = testing.tiny_xcodec2(tmp_path)
    weights = load_file(folder / "model.safetensors")
    gone = next(key for key in weights if key.startswith("acoustic_decoder"))
    del weights[gone]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(PcgError, match="lacks"):
        Xcodec2Codec.load(folder)
    with pytest.raises(PcgError):
        Xcodec2Codec.load(tmp_path / "nowhere")


def test_rotary_rows_change_order_and_back():
    weight = torch.arange(16.0).view(8, 2)
    turned = half_split(weight, 2)
    assert turned[:, 0].tolist() == [0, 4, 2, 6, 8, 12, 10, 14]


def test_weight_normalisation_is_undone():
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(2, 3, 3))
    state = {f"CodecEnc.conv_blocks.0.{k}": v for k, v in layer.state_dict().items()}
    converted = convert(state)
    assert torch.allclose(converted["acoustic_encoder.conv1.weight"], layer.weight)


def test_the_layout_is_told_by_the_configuration(tmp_path, codec):
    (tmp_path / "config.json").write_text('{"model_type": "xcodec"}')
    assert is_original(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "xcodec2"}')
    assert not is_original(tmp_path)
    assert is_original("HKUSTAudio/xcodec2") and not is_original("HKUSTAudio/xcodec2-hf")


@pytest.mark.slow
@pytest.mark.skipif(not Xcodec2PackageCodec.importable(), reason="needs the xcodec2 package")
def test_the_package_and_its_converted_weights_agree(monkeypatch):
    """The converted model is transformers' own class: native, original and package are one."""
    from tests.codec.xcodec2_stubs import random_package_model

    package = random_package_model(monkeypatch)
    adapter, native = Xcodec2PackageCodec(package), Xcodec2Codec(model_of(package.state_dict(), ""))
    audio = testing.speech_like(0.5)
    codes = adapter.encode(audio)
    assert len(set(codes.tolist())) > 5
    assert np.array_equal(native.encode(audio), codes)
    assert np.abs(native.decode(codes) - adapter.decode(codes)).max() < 1e-4
