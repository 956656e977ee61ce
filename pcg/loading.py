"""Weights from a folder or a hub id into a :class:`SpeechLM`; safetensors only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from pcg.errors import PcgError
from pcg.layout import SpeechLayout
from pcg.llama import Llama, from_transformers
from pcg.matrices import PACKED, packing_works
from pcg.plain_folder import PlainFolder, plain_folder
from pcg.speech_lm import SpeechLM

TYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float16-weights": torch.float32,
    "int8": torch.float32,
}
# Another type is taken only where it needs at most this share of float32's time: a narrow race
# would be won by chance, and the same seed must give the same tokens in the next process.
GAIN_WANTED = 0.75
INT8_SHARE = 0.5  # int8 is tried where its matrices hold at least this share of the weights


def load_speech_lm(
    source: str | Path,
    device: str = "auto",
    dtype: str = "auto",
    speech_head: bool = True,
    max_positions: int = 2048,
) -> SpeechLM:
    """Load a speech model.

    Args:
        source: a folder as ``save_pretrained`` writes it, or a hub id.
        device: "auto" takes the first CUDA device where there is one, else the CPU.
        dtype: "float32", "bfloat16", "float16"; on a CPU also "float16-weights" and "int8", whose
            activations stay in float32. "auto" is bfloat16 on CUDA and on a CPU the quickest of
            those it has, by a short timing of one and four rows.
        speech_head: score only speech ids and the end token; the rows then sum to one over speech.
        max_positions: the longest request; at most what the model's configuration allows.

    Raises:
        PcgError: when weights are missing, gated, not safetensors, or not a speech model.
    """
    place = pick_device(device)
    if dtype == "auto":
        return _quickest(source, place, speech_head, max_positions)
    if dtype not in TYPES:
        raise PcgError(f"There is no type {dtype!r}; choose auto, {', '.join(TYPES)}.")
    if dtype in PACKED and (place.type != "cpu" or not packing_works(dtype)):
        raise PcgError(f"{dtype} runs on CPUs with torch's own packed products only: use auto.")
    plain = plain_folder(source)
    if plain is not None and place.type == "cpu":
        return _from_files(plain, place, dtype, speech_head, max_positions)
    tokenizer, model = read_model(source, TYPES[dtype])
    return assemble(model, tokenizer, str(source), place, dtype, speech_head, max_positions)


def _from_files(
    plain: PlainFolder, device: torch.device, dtype: str, speech_head: bool, max_positions: int
) -> SpeechLM:
    tokenizer = plain.tokenizer()
    layout = SpeechLayout.of(tokenizer, plain.rows)
    rows = layout.head_rows(speech_head)
    limit = min(max_positions, plain.max_positions)
    engine = plain.llama(rows, TYPES[dtype], device, _packing(dtype), limit)
    others = () if speech_head else tuple(rows[layout.n_codes + 1 :])
    name, note = plain.folder.name, "hand-written Llama forward"
    return SpeechLM(engine, layout, speech_head, name, dtype, tokenizer, (note,), others)


def _packing(dtype: str) -> str:
    return dtype if dtype in PACKED else ""


def assemble(
    model: Any,
    tokenizer: Any,
    name: str,
    device: torch.device,
    dtype: str,
    speech_head: bool,
    max_positions: int,
) -> SpeechLM:
    """A :class:`SpeechLM` of a loaded ``transformers`` model, whose weights it takes over."""
    layout = SpeechLayout.of(tokenizer, model.get_input_embeddings().weight.shape[0])
    limit = min(max_positions, int(getattr(model.config, "max_position_embeddings", max_positions)))
    rows = layout.head_rows(speech_head)
    others = () if speech_head else tuple(rows[layout.n_codes + 1 :])
    engine: Any
    if is_plain_llama(model):
        how = {"dtype": TYPES[dtype], "device": device, "packing": _packing(dtype)}
        engine = from_transformers(model, limit, head_rows=rows, **how)
        note = "hand-written Llama forward"
        if device.type == "cuda" and not os.environ.get("SPACES_ZERO_GPU"):
            from pcg.graphed_llama import GraphedLlama

            engine, note = GraphedLlama.of(engine), "hand-written Llama forward in CUDA graphs"
    else:
        from pcg.fallback import TransformersForward

        if dtype in PACKED:
            raise PcgError(f"{name} runs on transformers' forward: choose float32 or bfloat16.")
        engine = TransformersForward(model.to(device), rows, limit)
        note = f"transformers' forward, because {model.config.model_type} is not a plain Llama"
    return SpeechLM(engine, layout, speech_head, Path(name).name, dtype, tokenizer, (note,), others)


def read_model(source: str | Path, dtype: torch.dtype) -> tuple[Any, Any]:
    """Tokenizer and model, in eval mode on the CPU, of a folder or hub id."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source))
        model = AutoModelForCausalLM.from_pretrained(
            str(source), dtype=dtype, use_safetensors=True, low_cpu_mem_usage=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise PcgError(explain(str(source), error)) from error
    return tokenizer, model.eval().requires_grad_(False)


def explain(source: str, error: Exception) -> str:
    """One sentence for weights that cannot be read."""
    text = f"{type(error).__name__} {error} {error.__cause__ or ''}".lower()
    if os.path.isdir(source):
        return f"{source} is not a model folder with config.json, tokenizer and *.safetensors."
    if "gated" in text or "401" in text or "403" in text:
        return (
            f"{source} is gated: accept its licence on its page, then log in with `hf auth login`."
        )
    if os.environ.get("HF_HUB_OFFLINE") or "offline" in text or "connect" in text:
        return f"{source} is not here and the hub cannot be reached: fetch it once online."
    return f"{source} cannot be loaded: check the name, or give a folder that holds its weights."


def is_plain_llama(model: Any) -> bool:
    """Whether the hand-written forward computes this model."""
    config = model.config
    return (
        config.model_type == "llama"
        and config.hidden_act == "silu"
        and not getattr(config, "attention_bias", False)
        and not getattr(config, "mlp_bias", False)
        and hasattr(model.model, "rotary_emb")
    )


def pick_device(device: str) -> torch.device:
    """ "auto" is CUDA where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise PcgError("There is no CUDA device here: use device auto or cpu.")
    return torch.device(device)


def has_fast_bf16() -> bool:
    """Whether this CPU multiplies bfloat16 in hardware."""
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(probe()) if probe else False


def _quickest(
    source: str | Path, device: torch.device, speech_head: bool, max_positions: int
) -> SpeechLM:
    if device.type != "cpu":
        kind = "bfloat16" if device.type == "cuda" else "float32"
        return load_speech_lm(source, str(device), kind, speech_head, max_positions)
    best = load_speech_lm(source, "cpu", "float32", speech_head, max_positions)
    if not isinstance(best.llama, Llama):
        return best
    share = best.llama.large_share()
    kinds = ["float16-weights"] if packing_works("float16-weights") else []
    kinds += ["int8"] if share >= INT8_SHARE and packing_works("int8") else []
    kinds += ["bfloat16"] if has_fast_bf16() else []
    seconds: dict[str, float] = {}
    for kind in ["float32", *kinds] if kinds else []:
        model = best
        if kind != "float32":
            model = load_speech_lm(source, "cpu", kind, speech_head, max_positions)
        seconds[kind] = model.step_seconds(1) + model.step_seconds(4)
        if seconds[kind] < GAIN_WANTED * seconds[best.dtype]:
            best = model
    timed = ", ".join(f"{kind} {1e3 * value:.2f} ms" for kind, value in seconds.items())
    note = f"{best.dtype} chosen by timing one and four rows: {timed}"
    if not kinds:
        note = "float32: this CPU and torch have no quicker type"
    return SpeechLM(
        best.llama,
        best.layout,
        best.speech_head,
        best.name,
        best.dtype,
        best.tokenizer,
        (*best.notes, note),
        best.others,
    )
