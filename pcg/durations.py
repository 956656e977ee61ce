"""How long each phoneme symbol of the bundled voice lasts, in speech tokens of 25 ms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pcg.codec.bundled import ConvNeXtBlock
from pcg.errors import PcgError
from pcg.phonemes import PHONEME_INDEX, PHONEMES

WIDTH, BLOCKS = 128, 4
FILE = "durations.safetensors"


class DurationNetwork(nn.Module):
    """Phoneme classes ``(B, T)`` -> ``log(1 + tokens)`` of each, ``(B, T)``."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(PHONEMES) + 1, WIDTH)
        self.blocks = nn.Sequential(*[ConvNeXtBlock(WIDTH, kernel=5) for _ in range(BLOCKS)])
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, classes: Tensor) -> Tensor:
        out: Tensor = self.out(self.blocks(self.embed(classes)))[..., 0]
        return out


def classes_of(phonemes: str) -> npt.NDArray[np.int64]:
    """Class of each symbol; unknown symbols share the last class."""
    return np.asarray([PHONEME_INDEX.get(s, len(PHONEMES)) for s in phonemes], np.int64)


class Durations:
    """Predicts durations at the training voice's ordinary pace."""

    def __init__(self, network: DurationNetwork) -> None:
        self.network = network.eval()

    @classmethod
    def load(cls, folder: Path | str) -> Durations:
        """Reads ``durations.safetensors`` of ``folder``; raises PcgError when it is not there."""
        from safetensors.torch import load_file

        network = DurationNetwork()
        try:
            weights = load_file(Path(folder) / FILE)
            network.load_state_dict({key: value.float() for key, value in weights.items()})
        except (OSError, RuntimeError) as error:
            raise PcgError(
                "The durations of this voice are missing: restore its folder."
            ) from error
        return cls(network)

    @torch.inference_mode()
    def predict(self, phonemes: str) -> npt.NDArray[np.float64]:
        """Tokens of each symbol of ``phonemes``, ``(symbols,)``, at least 0."""
        if not phonemes:
            return np.zeros(0)
        logs = self.network(torch.from_numpy(classes_of(phonemes))[None])[0]
        return logs.expm1().clamp(min=0).double().numpy()
