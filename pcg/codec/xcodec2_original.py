"""The original X-Codec2 checkpoint in transformers' layout: one architecture, other names.

Differences: weight normalisation is stored in two parts; q, k and v in one matrix, with rotary
pairs interleaved; the semantic encoder keeps more layers than are used. Codes come out equal and
audio within float rounding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pcg.errors import PcgError

SEMANTIC_LAYERS = 16  # the features X-Codec2 reads come from this layer of w2v-BERT 2.0
HEADS = 16
ADAPTER = {
    "initial_conv": "conv1",
    "residual_blocks.1": "conv2",
    "residual_blocks.3": "conv3",
    "final_conv": "conv4",
}
RENAMED = {
    "fc_prior.": "fc_encoder.",
    "fc_post_a.": "acoustic_decoder.fc.",
    "generator.quantizer.": "quantizer.",
    "generator.head.out.": "acoustic_decoder.head.linear.",
    "generator.backbone.final_layer_norm.": "acoustic_decoder.norm.",
    "generator.backbone.": "acoustic_decoder.",
    ".transformers.": ".layers.",
    ".att_norm.": ".input_layernorm.",
    ".ffn_norm.": ".post_attention_layernorm.",
    ".att.c_proj.": ".self_attn.o_proj.",
}
UNIT = {"0": "snake1", "1": "conv1", "2": "snake2", "3": "conv2"}


def load_original(source: str | Path) -> Any:
    """An ``Xcodec2Model`` with the weights of the original checkpoint.

    Raises:
        PcgError: when there is no ``model.safetensors``, or a weight is missing after conversion.
    """
    from safetensors.torch import load_file

    return model_of(load_file(_weights_file(source)), str(source))


def model_of(original: Mapping[str, Tensor], source: str) -> Any:
    """An ``Xcodec2Model`` with original weights; PcgError where one is missing."""
    from transformers import Xcodec2Model

    from pcg.codec.xcodec2 import refuse_gaps

    weights = convert(original)
    model = Xcodec2Model(config_for(weights))
    report = model.load_state_dict(weights, strict=False)
    refuse_gaps(report.missing_keys, source)
    return model


def _weights_file(source: str | Path) -> str:
    path = Path(source) / "model.safetensors"
    if path.is_file():
        return str(path)
    if Path(source).is_dir():
        raise PcgError(f"{source} holds no model.safetensors: download it again.")
    from huggingface_hub import hf_hub_download

    try:
        return hf_hub_download(str(source), "model.safetensors")
    except OSError as error:
        from pcg.loading import explain

        raise PcgError(explain(str(source), error)) from error


def convert(weights: Mapping[str, Tensor], heads: int = HEADS) -> dict[str, Tensor]:
    """State of the original model -> state of ``Xcodec2Model``."""
    converted: dict[str, Tensor] = {}
    for key, value in _whole_weights(weights).items():
        if key.endswith(".filter") or key == "generator.head.istft.window":
            continue
        if key.startswith("semantic_model."):
            layer = re.match(r"semantic_model\.encoder\.layers\.(\d+)\.", key)
            if layer is None or int(layer[1]) < SEMANTIC_LAYERS:
                converted[key.replace("semantic_model.", "semantic_encoder.", 1)] = value
        elif key.startswith("SemanticEncoder_module."):
            converted[_adapter(key)] = value
        elif key.startswith("CodecEnc."):
            converted[_acoustic(key)] = value
        elif ".att.c_attn." in key:
            _split_attention(converted, _renamed(key), value, heads)
        else:
            converted[_renamed(key)] = value
    return converted


def _whole_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weight normalisation undone: magnitude and direction become one weight."""
    whole, mark = {}, ".parametrizations.weight.original"
    for key, value in weights.items():
        if mark not in key:
            whole[key] = value
        elif key.endswith("original0"):
            direction = weights[key[:-1] + "1"]
            name = key.split(".parametrizations")[0] + ".weight"
            whole[name] = torch._weight_norm(direction, value, 0)
    return whole


def _adapter(key: str) -> str:
    for old, new in ADAPTER.items():
        key = key.replace(f"SemanticEncoder_module.{old}", f"semantic_adapter.{new}")
    return key


def _acoustic(key: str) -> str:
    key = key.replace(".act.bias", ".act.beta")
    key = key.replace("CodecEnc.conv_blocks.0.", "acoustic_encoder.conv1.")
    key = key.replace("CodecEnc.conv_final_block.0.", "acoustic_encoder.snake1.")
    key = key.replace("CodecEnc.conv_final_block.1.", "acoustic_encoder.conv2.")
    found = re.match(r"CodecEnc\.conv_blocks\.(\d+)\.block\.(\d)\.(.*)", key)
    if not found:
        return key
    block, part, rest = int(found[1]) - 1, int(found[2]), found[3]
    if part < 3:
        unit = re.match(r"block\.(\d)\.(.*)", rest)
        assert unit is not None
        return f"acoustic_encoder.block.{block}.res_unit{part + 1}.{UNIT[unit[1]]}.{unit[2]}"
    return f"acoustic_encoder.block.{block}.{'snake1' if part == 3 else 'conv1'}.{rest}"


def _renamed(key: str) -> str:
    for old, new in RENAMED.items():
        key = key.replace(old, new)
    return key


def _split_attention(out: dict[str, Tensor], key: str, value: Tensor, heads: int) -> None:
    query, keys, values = value.chunk(3, 0)
    out[key.replace(".att.c_attn.", ".self_attn.q_proj.")] = half_split(query, heads)
    out[key.replace(".att.c_attn.", ".self_attn.k_proj.")] = half_split(keys, heads)
    out[key.replace(".att.c_attn.", ".self_attn.v_proj.")] = values


def half_split(weight: Tensor, heads: int) -> Tensor:
    """Rotary rows from interleaved pairs to two halves."""
    size = weight.shape[0] // heads
    return weight.view(heads, size // 2, 2, -1).transpose(1, 2).reshape(weight.shape)


def config_for(weights: Mapping[str, Tensor]) -> Any:
    """The ``Xcodec2Config`` that fits converted weights, read from their shapes."""
    from transformers import Wav2Vec2BertConfig, Xcodec2Config

    def depth(prefix: str) -> int:
        found = [re.match(rf"{re.escape(prefix)}(\d+)\.", key) for key in weights]
        return 1 + max((int(m[1]) for m in found if m), default=-1)

    inner = next(
        value.shape[0]
        for key, value in weights.items()
        if key.endswith("encoder.layers.0.ffn1.intermediate_dense.weight")
    )
    semantic = Wav2Vec2BertConfig(
        num_hidden_layers=depth("semantic_encoder.encoder.layers."), intermediate_size=inner
    )
    return Xcodec2Config(
        num_hidden_layers=depth("acoustic_decoder.layers."),
        encoder_hidden_size=weights["acoustic_encoder.conv1.weight"].shape[0],
        semantic_model_config=semantic,
    )
