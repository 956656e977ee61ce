"""The bundled codec: WORLD features through one finite scalar quantiser, 40 tokens a second.

Encoder: four 6.25 ms feature frames a token -> ConvNeXt blocks -> four digits of eight levels, so
4,096 codes. Decoder: ConvNeXt blocks over the codes, with a summary of the whole sequence added
(what does not change, the speaker, need not be spent on every code) -> features -> WORLD.
Sources: FSQ, arXiv 2309.15505; ConvNeXt, arXiv 2201.03545; WORLD, Morise 2016.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from scipy.fft import dct, idct
from torch import Tensor, nn
from torch.nn import functional as F

from pcg.codec import world
from pcg.errors import PcgError

LEVELS = (8, 8, 8, 8)
N_CODES = int(np.prod(LEVELS))
TOKEN_FRAMES = 4
HOP = TOKEN_FRAMES * world.FRAME_SAMPLES
MAX_CODES = 40 * 60 * 5
CLICK_JUMP = 1.0  # nepers of power above both neighbours
SHARPNESS = 1.05  # of the decoded envelope's cepstrum: more sounds crisper and is understood less


class ConvNeXtBlock(nn.Module):
    """Depthwise convolution, layer norm, two linear layers, scaled residual; ``(B, T, d)``."""

    def __init__(self, width: int, kernel: int = 7, expansion: int = 3) -> None:
        super().__init__()
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, width * expansion)
        self.narrow = nn.Linear(width * expansion, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.depthwise(x.transpose(1, 2)).transpose(1, 2)
        hidden = self.narrow(F.gelu(self.wide(self.norm(hidden))))
        return x + hidden * self.scale


class FiniteScalarQuantiser(nn.Module):
    """Rounds each digit to its levels, straight-through; ``(B, T, digits)``."""

    levels: Tensor
    basis: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("levels", torch.tensor(LEVELS, dtype=torch.float32), persistent=False)
        basis = torch.cumprod(torch.tensor((1, *LEVELS[:-1])), 0)
        self.register_buffer("basis", basis, persistent=False)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Unbounded ``z`` -> (values in [-1, 1], codes ``(B, T)`` int64)."""
        bounded = (torch.tanh(z) + 1) / 2 * (self.levels - 1)
        digits = bounded.round()
        through = bounded + (digits - bounded).detach()
        return through / (self.levels - 1) * 2 - 1, (digits.long() * self.basis).sum(-1)

    def values(self, codes: Tensor) -> Tensor:
        """Codes ``(...)`` -> values ``(..., digits)`` in [-1, 1]."""
        digits = (codes[..., None] // self.basis) % self.levels.long()
        return digits / (self.levels - 1) * 2 - 1


class CodecNetwork(nn.Module):
    """Normalised features ``(B, 4T, N_FEATURES)`` <-> codes ``(B, T)``."""

    mean: Tensor
    spread: Tensor

    def __init__(
        self,
        encoder_width: int = 256,
        decoder_width: int = 256,
        encoder_blocks: int = 3,
        decoder_blocks: int = 6,
    ) -> None:
        super().__init__()
        patch = TOKEN_FRAMES * world.N_FEATURES
        self.register_buffer("mean", torch.zeros(world.N_FEATURES))
        self.register_buffer("spread", torch.ones(world.N_FEATURES))
        self.into = nn.Linear(patch, encoder_width)
        self.encoder = nn.Sequential(*[ConvNeXtBlock(encoder_width) for _ in range(encoder_blocks)])
        self.to_digits = nn.Linear(encoder_width, len(LEVELS))
        self.quantiser = FiniteScalarQuantiser()
        self.from_digits = nn.Conv1d(len(LEVELS), decoder_width, 5, padding=2)
        half = decoder_blocks // 2
        self.first = nn.Sequential(*[ConvNeXtBlock(decoder_width) for _ in range(half)])
        self.summary = nn.Sequential(
            nn.Linear(2 * decoder_width, decoder_width),
            nn.GELU(),
            nn.Linear(decoder_width, decoder_width),
        )
        self.second = nn.Sequential(
            *[ConvNeXtBlock(decoder_width) for _ in range(decoder_blocks - half)]
        )
        self.norm = nn.LayerNorm(decoder_width)
        self.out = nn.Linear(decoder_width, patch)

    def encode(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Features -> (quantised values ``(B, T, digits)``, codes ``(B, T)``)."""
        batch, frames, width = features.shape
        normal = (features - self.mean) / self.spread
        patches = normal.reshape(batch, frames // TOKEN_FRAMES, TOKEN_FRAMES * width)
        quantised: tuple[Tensor, Tensor] = self.quantiser(
            self.to_digits(self.encoder(self.into(patches)))
        )
        return quantised

    def decode(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Values -> (features in natural units with voicing as a logit, hidden states)."""
        hidden = self.first(self.from_digits(values.transpose(1, 2)).transpose(1, 2))
        spread = (hidden.var(1, unbiased=False) + 1e-4).sqrt()
        whole = self.summary(torch.cat([hidden.mean(1), spread], -1))
        states = self.second(hidden + whole[:, None])
        patches = self.out(self.norm(states))
        normal = patches.reshape(len(patches), -1, world.N_FEATURES)
        return normal * self.spread + self.mean, hidden


def _quieten_clicks(bands: world.Array) -> None:
    """Lower, in place, single frames that stand out louder than the loud parts of the speech.

    A rare sequence of codes makes one frame of 6.25 ms jump by 25 dB, which is heard as a click;
    the bursts of real speech jump as far, but from silence and not above its vowels.
    """
    if len(bands) < 3:
        return
    top = bands.max(1)
    beside = np.maximum(top[:-2], top[2:])
    bound = np.maximum(beside + CLICK_JUMP, np.percentile(top, 95))
    bands[1:-1] -= np.maximum(top[1:-1] - bound, 0.0)[:, None]


class BundledCodec:
    """Any 16 kHz voice in, 40 codes of 4,096 a second, any voice out. Deterministic.

    See :class:`pcg.codec.codec.Codec` for the interface.
    """

    name = "bundled (WORLD + FSQ, 40 tokens/s)"
    sample_rate = world.SAMPLE_RATE
    hop = HOP
    n_codes = N_CODES
    levels = LEVELS
    tokens_per_second = world.SAMPLE_RATE / HOP

    def __init__(self, network: CodecNetwork) -> None:
        self.network = network.eval()

    @classmethod
    def load(cls, folder: Path | str) -> BundledCodec:
        """Reads ``codec.safetensors`` and ``codec.json`` of ``folder``.

        Raises:
            PcgError: when a file is missing or is not a codec of this version.
        """
        from safetensors.torch import load_file

        folder = Path(folder)
        try:
            shape = json.loads((folder / "codec.json").read_text())["network"]
            weights = load_file(folder / "codec.safetensors")
            network = CodecNetwork(**shape)
            network.load_state_dict({key: value.float() for key, value in weights.items()})
        except (OSError, KeyError, TypeError, RuntimeError, json.JSONDecodeError) as error:
            raise PcgError(
                f"No usable codec in {folder.name}: run `python -m pcg train codec` first."
            ) from error
        return cls(network)

    def encode(self, audio: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
        """Audio ``(samples,)`` at 16 kHz in [-1, 1] -> codes ``(samples // hop,)``.

        Raises:
            PcgError: for audio that is shorter than one code, not 1-D, or not finite.
        """
        wave = np.asarray(audio, np.float32)
        if wave.ndim != 1 or len(wave) < HOP or not np.isfinite(wave).all():
            raise PcgError(f"The codec needs mono audio of at least {1000 * HOP // 16000} ms.")
        return self.encode_features(world.analyse(wave)[: len(wave) // HOP * TOKEN_FRAMES])

    @torch.inference_mode()
    def encode_features(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """WORLD features ``(frames, N_FEATURES)`` -> codes ``(frames // 4,)``."""
        frames = len(features) // TOKEN_FRAMES * TOKEN_FRAMES
        _, codes = self.network.encode(torch.from_numpy(features[None, :frames]))
        return codes[0].numpy()

    @torch.inference_mode()
    def decode_features(self, codes: Sequence[int] | npt.NDArray[np.integer]) -> world.Array:
        """Codes -> WORLD features ``(4 * len(codes), N_FEATURES)``, voicing 0 or 1."""
        ids = torch.as_tensor(np.asarray(codes, np.int64))[None]
        features, _ = self.network.decode(self.network.quantiser.values(ids))
        out: world.Array = features[0].numpy()
        out[:, world.VOICED] = out[:, world.VOICED] > 0
        bands = out[:, : world.N_BANDS]
        spectrum = dct(bands, norm="ortho", axis=1)
        spectrum[:, 2:] *= SHARPNESS
        bands[:] = idct(spectrum, norm="ortho", axis=1)
        _quieten_clicks(bands)
        return out

    @torch.inference_mode()
    def held_features(self, repeats: int = 6) -> npt.NDArray[np.float32]:
        """Each code held for ``repeats`` tokens: ``(n_codes, frames, N_FEATURES)``, the middle."""
        parts = []
        for ids in torch.arange(N_CODES).split(256):
            held = ids[:, None].expand(-1, repeats)
            features, _ = self.network.decode(self.network.quantiser.values(held))
            parts.append(features[:, 2 * TOKEN_FRAMES : -2 * TOKEN_FRAMES])
        return torch.cat(parts).numpy()

    def decode(self, codes: Sequence[int] | npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Codes -> audio ``(hop * len(codes),)`` float32 at 16 kHz.

        Raises:
            PcgError: for a code outside 0..4095, or for none, or more than five minutes of them.
        """
        ids = np.asarray(codes, np.int64)
        if ids.ndim != 1 or not 0 < len(ids) <= MAX_CODES:
            raise PcgError(f"The codec decodes 1 to {MAX_CODES} codes at a time.")
        if ids.min() < 0 or ids.max() >= N_CODES:
            raise PcgError(f"A code lies outside 0..{N_CODES - 1}; only speech codes have a sound.")
        return world.synthesise(self.decode_features(ids))
