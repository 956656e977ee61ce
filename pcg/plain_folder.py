"""A Llama straight from its files, without transformers, whose imports take seconds.

Only for what this reader knows to be complete: one ``model.safetensors`` of a Llama with plain
rotary positions, beside a ``tokenizer.json``. Anything else is left to transformers, and the two
ways give the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pcg.errors import PcgError
from pcg.llama import Llama, LlamaSpec, from_weights

WEIGHTS = "model.safetensors"


class LazyTokenizer:
    """The vocabulary at once; everything else from transformers when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        self.folder = folder
        self._plain = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def get_vocab(self) -> dict[str, int]:
        """Token -> id, added tokens included."""
        return dict(self._plain.get_vocab(with_added_tokens=True))

    @cached_property
    def _whole(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.folder)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._whole, name)

    def __len__(self) -> int:
        return len(self._whole)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As transformers' tokenizer."""
        return self._whole(*args, **kwargs)


@dataclass(frozen=True)
class PlainFolder:
    """A folder that can be read without transformers; see :func:`plain_folder`."""

    folder: Path
    config: dict[str, Any]

    @property
    def rows(self) -> int:
        """Rows of the input table."""
        return int(self.config["vocab_size"])

    @property
    def max_positions(self) -> int:
        """Longest sequence its configuration allows."""
        return int(self.config.get("max_position_embeddings", 2048))

    def tokenizer(self) -> LazyTokenizer:
        """Raises PcgError when the file is not a tokenizer."""
        try:
            return LazyTokenizer(self.folder)
        except Exception as error:  # tokenizers raises bare Exception
            raise PcgError(f"{self.folder.name}/tokenizer.json is not a tokenizer.") from error

    def llama(
        self,
        head_rows: Sequence[int] | None,
        dtype: torch.dtype,
        device: torch.device,
        packing: str,
        max_positions: int,
    ) -> Llama:
        """The engine's Llama; arguments as for :func:`pcg.llama.from_weights`.

        Raises:
            PcgError: when the file is cut short, or weights are missing or of another shape.
        """
        from safetensors import SafetensorError, safe_open

        c, spec = self.config, LlamaSpec.of(self.config)
        exponents = torch.arange(0, spec.head_dim, 2, dtype=torch.int64).float() / spec.head_dim
        try:
            with safe_open(self.folder / WEIGHTS, "pt") as file:
                table = file.get_tensor("model.embed_tokens.weight")
                tied = bool(c.get("tie_word_embeddings"))
                return from_weights(
                    spec,
                    table.to(dtype),
                    self._blocks(file, dtype),
                    file.get_tensor("model.norm.weight").to(dtype),
                    (table if tied else file.get_tensor("lm_head.weight")).to(dtype),
                    1.0 / rope_theta(c) ** exponents,
                    head_rows=head_rows,
                    dtype=dtype,
                    device=device,
                    packing=packing,
                    max_positions=max_positions,
                )
        except (SafetensorError, OSError, KeyError, RuntimeError, IndexError) as error:
            raise PcgError(
                f"{self.folder.name} is incomplete or damaged: copy the model folder again."
            ) from error

    def _blocks(self, file: Any, dtype: torch.dtype) -> Iterator[dict[str, Tensor]]:
        names = list(file.keys())
        for number in range(self.config["num_hidden_layers"]):
            prefix = f"model.layers.{number}."
            yield {
                name.removeprefix(prefix): file.get_tensor(name).to(dtype)
                for name in names
                if name.startswith(prefix)
            }


def rope_theta(config: dict[str, Any]) -> float:
    """Base of the rotary frequencies, where either generation of configurations puts it."""
    parameters = config.get("rope_parameters") or {}
    return float(parameters.get("rope_theta") or config.get("rope_theta") or 10_000.0)


def plain_folder(source: str | Path) -> PlainFolder | None:
    """``source`` as a :class:`PlainFolder`, or None where transformers has to read it."""
    folder = Path(source)
    if not all((folder / name).is_file() for name in (WEIGHTS, "config.json", "tokenizer.json")):
        return None
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(config, dict):
        return None
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    plain = (
        config.get("model_type") == "llama"
        and config.get("hidden_act") == "silu"
        and not config.get("attention_bias")
        and not config.get("mlp_bias")
        and rope.get("rope_type", rope.get("type", "default")) == "default"
        and all(isinstance(config.get(key), int) for key in _NEEDED)
        and "quantization_config" not in config
    )
    return PlainFolder(folder, config) if plain else None


_NEEDED = (
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "num_hidden_layers",
    "vocab_size",
)
