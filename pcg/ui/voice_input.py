"""Whose voice: a bundled one, an upload or the microphone, with its transcript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from pcg.errors import PcgError
from pcg.ui import runtime
from pcg.ui.components.player import pcm_chunk
from pcg.ui.components.voice_sample import VoiceSample

SAMPLE_RATE = 16_000  # of every voice prompt
OWN = "my own recording"


@dataclass
class VoiceInput:
    """The components of the voice choice."""

    name: gr.Dropdown
    sample: VoiceSample
    recording: gr.Audio
    transcript: gr.Textbox

    def inputs(self) -> list[Any]:
        """What `read` needs, in order."""
        return [self.name, self.recording, self.transcript]


def voice_names() -> list[str]:
    """Bundled voices, then the visitor's own."""
    try:
        names = [voice.name for voice in runtime.voices()]
    except (ImportError, PcgError):
        names = []
    return [*names, OWN]


def build() -> VoiceInput:
    """Components and their events; call inside a Blocks context."""
    names = voice_names()
    name = gr.Dropdown(
        names, value=names[0], label="Voice", elem_id="voice", interactive=True, filterable=False
    )
    own = names[0] == OWN
    sample = VoiceSample(
        "" if own else names[0], server_functions=[hear_voice], elem_id="voice-sample"
    )
    recording = gr.Audio(
        sources=["upload", "microphone"],
        type="filepath",
        label="A few seconds of one voice",
        visible=own,
        elem_id="recording",
        buttons=[],
    )
    transcript = gr.Textbox(
        label="What is said in it",
        info="Filled in by itself when a recogniser is installed; correct it if it is wrong.",
        visible=own,
        max_length=400,
        elem_id="transcript",
    )
    name.change(
        chosen,
        name,
        [sample, recording, transcript],
        api_visibility="private",
        queue=False,
        show_progress="hidden",
    )
    recording.change(
        fill_transcript,
        [recording, transcript],
        transcript,
        api_visibility="private",
        concurrency_id="model",
    )
    return VoiceInput(name, sample, recording, transcript)


def chosen(name: str) -> tuple[str, Any, Any]:
    """Event handler: the sample's name, and the recorder for a visitor's own voice."""
    own = name == OWN
    return "" if own else name, gr.update(visible=own), gr.update(visible=own)


@runtime.guarded
def hear_voice(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Sound and transcript of a bundled voice: `{"name"}` -> `{"pcm", ...}`."""
    voice = runtime.voice_named(str(payload.get("name") if isinstance(payload, Mapping) else ""))
    return {
        "pcm": pcm_chunk(voice.audio),
        "sample_rate": SAMPLE_RATE,
        "transcript": voice.transcript,
    }


def fill_transcript(path: str | None, transcript: str) -> str:
    """What the recogniser hears in a new recording; keeps what the visitor wrote."""
    if not path or (transcript or "").strip():
        return transcript or ""
    try:
        from pcg.metrics.wer import transcribe

        return transcribe(read("", path, "").audio)[:400]
    except (PcgError, ImportError):
        return ""


def read(name: str, recording: str | None, transcript: str) -> Any:
    """The chosen voice as a `VoicePrompt`; raises `PcgError` in one sentence."""
    from pcg.voices import read_voice

    if name and name != OWN:
        return runtime.voice_named(name)
    if not recording:
        raise PcgError("Record or upload a few seconds of a voice, or choose one from the list.")
    return read_voice(Path(recording), (transcript or "").strip()[:400])
