"""The ``xcodec2`` package behind the codec interface, where it can be imported.

The package pins an old torch, so :mod:`pcg.codec.xcodec2` is the usual way; this adapter serves
those who have it, and the test that both agree.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pcg.codec.codec import Audio, Codes, check_audio, check_codes
from pcg.errors import PcgError


class Xcodec2PackageCodec:
    """``XCodec2Model`` of the package; see :class:`pcg.codec.codec.Codec`."""

    name = "X-Codec2 (xcodec2 package)"
    sample_rate = 16_000
    hop = 320
    n_codes = 65_536
    tokens_per_second = 50.0

    def __init__(self, model: Any) -> None:
        self.model = model.eval()

    @staticmethod
    def importable() -> bool:
        """Whether the package is installed."""
        return find_spec("xcodec2") is not None

    @classmethod
    def load(cls, source: str | Path = "HKUSTAudio/xcodec2", device: str = "cpu") -> Any:
        """Load by the package's own loader.

        Raises:
            PcgError: when the package or the weights do not load.
        """
        try:
            from xcodec2.modeling_xcodec2 import XCodec2Model

            return cls(XCodec2Model.from_pretrained(str(source)).to(device))
        except Exception as error:  # the package fails in many ways beside a newer torch
            raise PcgError(
                "The xcodec2 package does not load here: use the native codec, which reads the "
                "same weights."
            ) from error

    @torch.inference_mode()
    def encode(self, audio: Audio) -> Codes:
        """Audio ``(samples,)`` at 16 kHz -> codes ``(frames,)``, the last frame padded."""
        wave = torch.from_numpy(check_audio(audio))[None]
        codes = self.model.encode_code(wave)
        wanted = -(-len(audio) // self.hop)
        return np.asarray(codes[0, 0, :wanted].cpu().numpy(), np.int64)

    @torch.inference_mode()
    def decode(self, codes: Any) -> Audio:
        """Codes -> audio ``(hop * len(codes),)`` float32."""
        ids = torch.from_numpy(check_codes(codes, self.n_codes))[None, None]
        place = next(self.model.parameters()).device
        audio = self.model.decode_code(ids.to(place))
        return np.asarray(audio.reshape(-1).float().cpu().numpy(), np.float32)
