"""The teacher voice (``hibari-tts``): audio with its exact phoneme durations and F0.

The package's network computes an integer duration for each phoneme and an F0 for each 12.5 ms
frame. Both are read out of its graph here, so that the corpus has exact alignments and pitch
instead of estimates. The package's weights stay in the package.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pcg.codec.world import SAMPLE_RATE, frames_of, resample_f0
from pcg.errors import PcgError

TEACHER_RATE = 24_000
TEACHER_FRAME_MS = 12.5
TEACHER_TOKEN_MS = 25.0
VOICED_ABOVE_HZ = 40.0


@dataclass(frozen=True)
class TaughtUtterance:
    """``audio`` (samples,) at 16 kHz; ``durations`` in steps of 25 ms for the silence before, each
    phoneme symbol, and the silence after; ``f0`` Hz on the grid of :mod:`pcg.codec.world`."""

    text: str
    phonemes: str
    durations: npt.NDArray[np.int64]
    audio: npt.NDArray[np.float32]
    f0: npt.NDArray[np.float32]


class Teacher:
    """Loads the teacher once; calls are deterministic in (text, speed, seed)."""

    def __init__(self, cache: Path) -> None:
        try:
            import hibari
            import onnx
            import onnxruntime
        except ImportError as error:
            raise PcgError(
                f"The corpus needs {error.name}: pip install -r requirements-dev.txt."
            ) from error
        self._hibari = hibari.Hibari(threads=1)
        model = onnx.load(self._hibari.model_path)
        duration = _duration_output(model.graph)
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(duration))
        path = cache / "teacher-with-durations.onnx"
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_bytes(model.SerializeToString())
            part.rename(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )

    def phonemes(self, text: str) -> str:
        return " ".join(self._hibari.phonemize(text))

    def speak(self, text: str, speed: float = 1.0, seed: int = 0) -> TaughtUtterance:
        from hibari import dsp
        from scipy.signal import resample_poly

        known: dict[str, int] = self._hibari.vocab
        phonemes = "".join(c for c in self.phonemes(text) if c in known)
        inputs: dict[str, Any] = {
            "ids": np.asarray([self._hibari.ids(phonemes)], np.int64),
            "speed": np.asarray([speed], np.float32),
        }
        *network, durations = self._session.run(None, inputs)
        *spectra, f0 = (out[0] for out in network)
        wave = dsp.synth(*spectra, f0, np.random.default_rng(seed))
        audio = resample_poly(wave, SAMPLE_RATE, TEACHER_RATE).astype(np.float32)
        audio *= 0.6 / max(float(np.abs(audio).max()), 1e-3)
        voiced = np.where(f0 > VOICED_ABOVE_HZ, f0, 0.0)
        track = resample_f0(voiced, TEACHER_FRAME_MS, frames_of(len(audio)))
        return TaughtUtterance(text, phonemes, durations.astype(np.int64), audio, track)


def _duration_output(graph: Any) -> str:
    """Name of the integer durations: what the cumulative sum of the length regulator reads."""
    sums = [node for node in graph.node if node.op_type == "CumSum"]
    if len(sums) != 1:
        raise PcgError("This version of hibari-tts is not known: install hibari-tts==0.2.1.")
    return str(sums[0].input[0])
