"""The xcodec2 package with random weights, beside a torch it was not made for.

It imports torchaudio without use, and one class of torchtune; it fetches w2v-BERT from the hub at
construction. Stand-ins for these three let its own code run.
"""

import functools
import importlib.machinery
import sys
import types

import torch
from torch import nn


class InterleavedRotary(nn.Module):
    """Rotary embedding over ``(batch, time, heads, size)`` in adjacent pairs, as torchtune's."""

    def __init__(self, dim, max_seq_len=4096, base=10_000):
        super().__init__()
        rates = base ** (-torch.arange(0, dim, 2).float() / dim)
        turns = torch.outer(torch.arange(max_seq_len).float(), rates)
        self.register_buffer("turns", torch.polar(torch.ones_like(turns), turns), persistent=False)

    def forward(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        turned = pairs * self.turns[: x.size(1)][None, :, None]
        return torch.view_as_real(turned).flatten(3).type_as(x)


def random_package_model(monkeypatch):
    """An ``XCodec2Model`` of three decoder layers; modules are replaced for this test only."""
    import transformers  # before the stand-ins: it looks for torchaudio itself
    from transformers import SeamlessM4TFeatureExtractor, Wav2Vec2BertConfig, Wav2Vec2BertModel

    transformers.utils.is_torchaudio_available()
    audio = types.ModuleType("torchaudio")
    audio.__spec__ = importlib.machinery.ModuleSpec("torchaudio", None)
    tune, modules = types.ModuleType("torchtune"), types.ModuleType("torchtune.modules")
    modules.RotaryPositionalEmbeddings = InterleavedRotary
    tune.modules = modules
    for module in (audio, tune, modules):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    package = importlib.import_module("xcodec2.modeling_xcodec2")
    configuration = importlib.import_module("xcodec2.configuration_bigcodec")
    config = Wav2Vec2BertConfig(
        num_hidden_layers=16, intermediate_size=256, output_hidden_states=True
    )
    semantic = types.SimpleNamespace(from_pretrained=lambda *a, **k: Wav2Vec2BertModel(config))
    extractor = types.SimpleNamespace(
        from_pretrained=lambda *a, **k: SeamlessM4TFeatureExtractor(
            feature_size=80, num_mel_bins=80, sampling_rate=16_000, stride=2, padding_value=1
        )
    )
    monkeypatch.setattr(package, "Wav2Vec2BertModel", semantic)
    monkeypatch.setattr(package, "AutoFeatureExtractor", extractor)
    sizes = {"CodecEncoder_Transformer": {"ngf": 8}, "CodecDecoderVocos": {"depth": 3}}
    for name, size in sizes.items():
        monkeypatch.setattr(package, name, functools.partial(getattr(package, name), **size))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = package.XCodec2Model(configuration.BigCodecConfig()).eval()
    with torch.no_grad():  # spread the weights so that codes differ
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.mul_(1.5)
        model.generator.quantizer.project_in.weight.mul_(30)
    return model
