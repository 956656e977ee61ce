"""Tiny random models of the real classes, saved as the real ones are: for tests and trials.

``tiny_llasa(folder)`` writes a Llama in LLaSA's layout (byte-level text, Llama-3's specials, the
eight controls, then the speech ids) with a chat template like Llama-3's; ``tiny_xcodec2(folder)``
an ``Xcodec2Model``; ``tiny_bundled(folder)`` a folder like ``assets/bundled``. What they say is
noise, but every code path is the one the real weights take.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

SPECIALS = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|eot_id|>",
)
CONTROLS = tuple(
    f"<|{what}_{how}_{edge}|>"
    for what in ("TEXT", "SPEECH")
    for how in ("GENERATION", "UNDERSTANDING")
    for edge in ("START", "END")
)
# As Llama-3.1's: a system turn that carries a date, and turns that end with <|eot_id|>.
CHAT_TEMPLATE = (
    "{{ bos_token }}{% if date_string is not defined %}{% set date_string = '26 Jul 2024' %}"
    "{% endif %}<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
    "2023\nToday Date: {{ date_string }}\n\n<|eot_id|>{% for m in messages %}<|start_header_id|>"
    "{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)


def tiny_tokenizer(n_codes: int) -> Any:
    """A byte-level tokenizer in LLaSA's order with ``n_codes`` speech tokens last."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    base = Tokenizer(models.BPE(vocab=letters, merges=[]))
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = decoders.ByteLevel()
    base.add_special_tokens([*SPECIALS, *CONTROLS])
    base.add_tokens([f"<|s_{n}|>" for n in range(n_codes)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=base,
        bos_token="<|begin_of_text|>",
        eos_token="<|eot_id|>",
        pad_token="<|eot_id|>",
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def tiny_llama(
    vocabulary: int,
    end: int,
    layers: int = 3,
    width: int = 64,
    tied: bool = False,
    seed: int = 0,
    spread: float = 0.35,
) -> Any:
    """A random ``LlamaForCausalLM``; ``spread`` is the deviation of its weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
        tie_word_embeddings=tied,
        initializer_range=spread / (width / 64) ** 0.5,
        eos_token_id=end,
        pad_token_id=end,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval().requires_grad_(False)


def tiny_llasa(
    folder: Path | str, n_codes: int = 65536, layers: int = 3, tied: bool = True, seed: int = 0
) -> Path:
    """Saves a tiny LLaSA: tokenizer with chat template, Llama, safetensors. Returns the folder."""
    folder = Path(folder)
    tokenizer = tiny_tokenizer(n_codes)
    end = tokenizer.convert_tokens_to_ids("<|SPEECH_GENERATION_END|>")
    tiny_llama(len(tokenizer), end, layers, tied=tied, seed=seed).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_xcodec2_config() -> Any:
    """An ``Xcodec2Config`` of about a million parameters."""
    from transformers import Wav2Vec2BertConfig, Xcodec2Config

    semantic = Wav2Vec2BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        feature_projection_input_dim=160, position_embeddings_type="relative_key",
        output_hidden_size=32,
    )
    return Xcodec2Config(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, head_dim=16, encoder_hidden_size=4,
        downsampling_ratios=[2, 2, 4, 4, 5], quantization_dim=96, semantic_model_config=semantic,
    )


def tiny_xcodec2(folder: Path | str, seed: int = 0) -> Path:
    """Saves a random tiny ``Xcodec2Model``. Returns the folder."""
    from transformers import Xcodec2Model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Xcodec2Model(tiny_xcodec2_config()).eval()
    model.save_pretrained(folder)
    return Path(folder)


def tiny_bundled(folder: Path | str, n_codes: int = 512, seed: int = 0) -> Path:
    """Saves a folder like ``assets/bundled`` with byte text, LLaSA prompts and a tone codec.

    The draft is the target with a little noise, so that it is right about half of the time.
    """
    folder = Path(folder)
    tokenizer = tiny_tokenizer(n_codes)
    end = tokenizer.convert_tokens_to_ids("<|SPEECH_GENERATION_END|>")
    target = tiny_llama(len(tokenizer), end, layers=3, seed=seed)
    for name in ("target", "draft"):
        target.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
        generator = torch.Generator().manual_seed(seed + 1)
        for weight in target.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.data += 0.04 * weight.std().nan_to_num(0.0) * noise
    card = {
        "name": "tiny", "prompts": "llasa", "codec": "tones", "n_codes": n_codes,
        "default_theta": 0.25, "tokens_per_second": 50, "licence": "random weights",
    }
    (folder / "pcg.json").write_text(json.dumps(card))
    _tiny_voices(folder / "voices")
    return folder


def _tiny_voices(folder: Path) -> None:
    import soundfile

    folder.mkdir(parents=True, exist_ok=True)
    for name, pitch in (("low", 110.0), ("high", 220.0)):
        soundfile.write(folder / f"{name}.flac", speech_like(1.5, pitch), 16_000)
        facts = {"name": name, "transcript": "a short test sentence", "source": "made by a formula"}
        (folder / f"{name}.json").write_text(json.dumps(facts))


def speech_like(seconds: float = 1.5, pitch: float = 120.0, seed: int = 0) -> Any:
    """A harmonic sound in syllables with a little noise, float32 (16000 * seconds,)."""
    time = np.arange(int(16_000 * seconds)) / 16_000
    tone = sum(np.sin(2 * np.pi * pitch * k * time) / k for k in range(1, 12))
    syllables = 0.5 - 0.5 * np.cos(2 * np.pi * 4.0 * time)
    noise = np.random.default_rng(seed).standard_normal(len(time))
    return (0.15 * tone * syllables + 0.002 * noise).astype(np.float32)


class ToneCodec:
    """A codec for tests: code n is 20 ms of its own tone. See :class:`pcg.codec.codec.Codec`."""

    name = "tones (for tests)"
    sample_rate = 16_000
    hop = 320
    tokens_per_second = 50.0

    def __init__(self, n_codes: int = 512) -> None:
        self.n_codes = n_codes

    def encode(self, audio: Any) -> Any:
        """Audio ``(samples,)`` -> codes ``(samples // hop,)`` from each frame's first values."""
        frames = np.asarray(audio, np.float32)[: len(audio) // self.hop * self.hop]
        sums = np.abs(frames.reshape(-1, self.hop)[:, ::16]).sum(1)
        return (sums * 1000).astype(np.int64) % self.n_codes

    def decode(self, codes: Any) -> Any:
        """Codes -> audio ``(hop * len(codes),)`` float32."""
        ids = np.asarray(codes, np.int64)
        hertz = 100.0 + 2000.0 * ids / self.n_codes
        phase = 2 * np.pi * np.cumsum(np.repeat(hertz, self.hop)) / self.sample_rate
        return (0.2 * np.sin(phase)).astype(np.float32)
