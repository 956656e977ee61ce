"""X-Codec2 (arXiv 2502.04128) on transformers' own ``Xcodec2Model``.

"HKUSTAudio/xcodec2-hf" loads natively; "HKUSTAudio/xcodec2", the original checkpoint, has another
layout and goes through :mod:`pcg.codec.xcodec2_original`. 16 kHz, hop 320, 65,536 codes.
Weights: CC-BY-NC-4.0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pcg.codec.codec import Audio, Codes, check_audio, check_codes
from pcg.errors import PcgError

NATIVE = "HKUSTAudio/xcodec2-hf"
ORIGINAL = "HKUSTAudio/xcodec2"
COMPUTED = ("filter", "window", "codebook", "basis", "inv_freq", "embed_positions")


class Xcodec2Codec:
    """See :class:`pcg.codec.codec.Codec`. Not causal: decode windows with context."""

    name = "X-Codec2"
    sample_rate = 16_000

    def __init__(self, model: Any) -> None:
        self.model = model.eval().requires_grad_(False)
        self.hop = int(model.config.hop_length)
        self.n_codes = int(np.prod(model.config.quantization_levels))
        self.tokens_per_second = self.sample_rate / self.hop

    @classmethod
    def load(cls, source: str | Path = NATIVE, device: str = "cpu", dtype: Any = None) -> Any:
        """Load either layout from a folder or a hub id.

        Raises:
            PcgError: when the weights are missing, or any of the model's weights is not in them.
        """
        from transformers import Xcodec2Model

        if is_original(source):
            from pcg.codec.xcodec2_original import load_original

            model = load_original(source)
        else:
            try:
                model, report = Xcodec2Model.from_pretrained(
                    str(source), output_loading_info=True, use_safetensors=True
                )
            except (OSError, ValueError) as error:
                from pcg.loading import explain

                raise PcgError(explain(str(source), error)) from error
            refuse_gaps(report["missing_keys"], str(source))
        return cls(model.to(device=device, dtype=dtype or torch.float32))

    @torch.inference_mode()
    def encode(self, audio: Audio) -> Codes:
        """Audio ``(samples,)`` at 16 kHz -> codes ``(frames,)``, the last frame padded."""
        values, features = features_of(check_audio(audio), self.hop)
        place = next(self.model.parameters())
        codes = self.model.encode(
            values.to(place.device, place.dtype), features.to(place.device, place.dtype)
        ).audio_codes
        wanted = -(-len(audio) // self.hop)
        return np.asarray(codes[0, 0, :wanted].cpu().numpy(), np.int64)

    @torch.inference_mode()
    def decode(self, codes: Any) -> Audio:
        """Codes -> audio ``(hop * len(codes),)`` float32."""
        ids = torch.from_numpy(check_codes(codes, self.n_codes))[None, None]
        place = next(self.model.parameters()).device
        audio = self.model.decode(ids.to(place)).audio_values
        return np.asarray(audio.reshape(-1).float().cpu().numpy(), np.float32)


def features_of(audio: Audio, hop: int = 320) -> tuple[torch.Tensor, torch.Tensor]:
    """Audio -> ``input_values (1, 1, samples)`` and ``input_features (1, frames, 160)``.

    As X-Codec2's own extractor makes them, but without torchaudio: log-mel features of
    w2v-BERT by ``SeamlessM4TFeatureExtractor``.
    """
    from transformers import SeamlessM4TFeatureExtractor

    padded = np.pad(audio, (0, hop - len(audio) % hop))
    extractor = SeamlessM4TFeatureExtractor(
        feature_size=80, num_mel_bins=80, sampling_rate=16_000, stride=2, padding_value=1
    )
    framed = np.pad(padded, (hop // 2, hop // 2))
    made = extractor(framed, sampling_rate=16_000, return_tensors="pt").input_features
    return torch.from_numpy(padded)[None, None], made


def refuse_gaps(missing: Any, source: str) -> None:
    """Raise PcgError when weights would stay random; computed buffers do not count."""
    gaps = [key for key in missing if key.rsplit(".", 1)[-1] not in COMPUTED]
    if gaps:
        raise PcgError(
            f"{source} lacks {len(gaps)} of X-Codec2's weights, such as {sorted(gaps)[0]}: use "
            f"{NATIVE} or {ORIGINAL}."
        )


def is_original(source: str | Path) -> bool:
    """Whether a folder or hub id has the layout of the ``xcodec2`` package."""
    if str(source) == ORIGINAL:
        return True
    config = Path(source) / "config.json"
    if not config.is_file():
        return False
    return json.loads(config.read_text()).get("model_type") not in ("xcodec2",)
