"""The board: every output a lane, all lanes on one playhead."""

from __future__ import annotations

import base64
from typing import Any, ClassVar

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from pcg.ui.components.base import WebComponent


class Player(WebComponent):
    """Synchronised player.

    Value: `{"tracks": [track, ...], "live": {"track", "sample_rate", "chunks"}, "note", "kind"}`;
    a track is `{"id", "label", "detail", "state", "progress", "message", "stats", "file"}` with
    `state` one of waiting, running, done, stopped, error and `file` from `audio_file`.
    """

    view: ClassVar[str] = "player"
    triggers: ClassVar[tuple[str, ...]] = ("lane_chosen",)

    def __init__(self, value: Any = None, *, empty: str = "", live: bool = True, **kw: Any) -> None:
        super().__init__(value=value or {"tracks": []}, empty=empty, live=live, **kw)


def audio_file(audio: NDArray[np.float32], sample_rate: int) -> dict[str, Any]:
    """Write float32 mono samples as 16-bit WAV under an unguessable name; a `FileData` dict."""
    from gradio import processing_utils, utils

    path = processing_utils.save_audio_to_cache(
        to_int16(audio), sample_rate, format="wav", cache_dir=str(utils.get_cache_folder())
    )
    return gr.FileData(path=path, mime_type="audio/wav").model_dump()


def to_int16(audio: NDArray[np.float32]) -> NDArray[np.int16]:
    """Clip to [-1, 1] and scale; float input to Gradio would be peak-normalised."""
    return (np.clip(np.nan_to_num(audio), -1.0, 1.0) * 32767.0).astype(np.int16)


def pcm_chunk(audio: NDArray[np.float32]) -> str:
    """Base64 of little-endian 16-bit samples, for `live`."""
    return base64.b64encode(to_int16(audio).astype("<i2").tobytes()).decode("ascii")
