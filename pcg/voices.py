"""A voice prompt: some seconds of one voice and what is said in them."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pcg.audio_files import SAMPLE_RATE, read_audio
from pcg.codec.codec import Audio
from pcg.errors import PcgError

MAX_SECONDS = 15.0
MIN_SECONDS = 0.5
FRAME = SAMPLE_RATE // 50
KEEP_FRAMES = 5  # a tenth of a second of quiet stays at either end
QUIET_DB = 40.0  # below the loudest frame counts as silence
SILENT_RMS = 1e-3
LOUDNESS_RMS = 0.08
PEAK = 0.95
BUNDLED = Path(__file__).resolve().parent.parent / "assets" / "bundled" / "voices"


@dataclass(frozen=True, eq=False)
class VoicePrompt:
    """One voice.

    Attributes:
        name: for people.
        audio: float32 ``(samples,)`` at 16 kHz in [-1, 1].
        transcript: what is said; "" is not known yet.
        codes: speech codes of the audio, if known.
        source: where it comes from.
        codec: which codec ``codes`` belong to, as named in a model's ``pcg.json``.
        notes: what was done to the recording, one sentence each.
    """

    name: str
    audio: Audio
    transcript: str
    codes: tuple[int, ...] | None = None
    source: str = ""
    codec: str = ""
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """How long the audio is."""
        return len(self.audio) / SAMPLE_RATE


def read_voice(
    source: Path | str | bytes,
    transcript: str = "",
    name: str = "",
    max_seconds: float = MAX_SECONDS,
) -> VoicePrompt:
    """A voice prompt from a recording: mono, 16 kHz, quiet ends cut, even loudness.

    A recording longer than ``max_seconds`` is cut at a pause when it has no transcript yet; with
    one it is refused, because the transcript would no longer fit. An empty transcript stays
    empty: see :func:`with_transcript`.

    Raises:
        PcgError: one sentence, for whatever cannot be used.
    """
    wave, seconds = read_audio(source, max_seconds + 3.0)
    transcript = " ".join(transcript.split())
    if transcript and seconds > max_seconds + 3.0:
        raise _too_long(seconds, max_seconds)
    wave, notes = _trimmed(wave - wave.mean(dtype=np.float64).astype(np.float32)), []
    if transcript and len(wave) > max_seconds * SAMPLE_RATE:
        raise _too_long(seconds, max_seconds)
    if len(wave) > max_seconds * SAMPLE_RATE:
        wave = _cut_at_pause(wave, max_seconds)
        notes.append(f"only its first {len(wave) / SAMPLE_RATE:.1f} s are used")
    if len(wave) < MIN_SECONDS * SAMPLE_RATE:
        raise PcgError(f"Less than {MIN_SECONDS} s of voice is in it: record 3 to 12 seconds.")
    if float((np.abs(wave) >= 0.999).mean()) > 0.01:
        notes.append("it is clipped; a quieter recording would sound better")
    if not name:
        name = Path(source).stem if isinstance(source, (str, Path)) else "recording"
    return VoicePrompt(name, _levelled(wave), transcript, None, "recording", "", tuple(notes))


def with_transcript(voice: VoicePrompt) -> VoicePrompt:
    """The voice with its words, by the speech recogniser where they are not given.

    Raises:
        PcgError: when there is no recogniser here or it hears no words.
    """
    if voice.transcript:
        return voice
    try:
        from pcg.metrics.wer import transcribe

        words = " ".join(str(transcribe(voice.audio)).split())
    except (ImportError, PcgError):
        raise PcgError("Write what the voice recording says: no recogniser is here.") from None
    if not words:
        raise PcgError("No words were heard in the voice recording: write what is said in it.")
    return dataclasses.replace(voice, transcript=words)


def bundled_voices(folder: Path | str | None = None) -> list[VoicePrompt]:
    """The voices of a folder, in order of their names.

    Each is ``NAME.json`` (name, transcript, source and, if known, codes) beside ``NAME.flac`` or
    ``NAME.wav``.
    """
    voices = []
    for path in sorted(Path(folder or BUNDLED).glob("*.json")):
        sound = next((p for s in (".flac", ".wav") if (p := path.with_suffix(s)).is_file()), None)
        if sound is None:
            continue
        try:
            facts = json.loads(path.read_text())
            wave, _ = read_audio(sound, 60.0)
            codes = facts.get("codes")
            voices.append(
                VoicePrompt(
                    str(facts.get("name", path.stem)),
                    wave,
                    str(facts["transcript"]),
                    None if codes is None else tuple(int(c) for c in codes),
                    str(facts.get("source", "bundled")),
                    str(facts.get("codec", "bundled")),
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise PcgError(f"The voice {path.stem} cannot be read: restore its files.") from error
    return voices


def _too_long(seconds: float, limit: float) -> PcgError:
    return PcgError(
        f"The recording is {seconds:.0f} s long and at most {limit:.0f} s can be used: cut it, "
        "with its transcript, or leave the transcript empty."
    )


def _levels(wave: Audio) -> Audio:
    """Root mean square of each 20 ms frame."""
    frames = wave[: len(wave) // FRAME * FRAME].reshape(-1, FRAME)
    return np.asarray(np.sqrt((frames.astype(np.float64) ** 2).mean(1)), np.float32)


def _trimmed(wave: Audio) -> Audio:
    """Without the quiet at both ends."""
    levels = _levels(wave)
    if not len(levels) or float(levels.max()) < SILENT_RMS:
        raise PcgError("The recording is silent or too short: record 3 to 12 seconds of a voice.")
    loud = np.flatnonzero(levels > levels.max() * 10 ** (-QUIET_DB / 20))
    start = max(0, int(loud[0]) - KEEP_FRAMES) * FRAME
    return wave[start : (int(loud[-1]) + 1 + KEEP_FRAMES) * FRAME]


def _cut_at_pause(wave: Audio, seconds: float) -> Audio:
    """The first ``seconds``, ended at the quietest frame of the last two of them."""
    stop = int(seconds * SAMPLE_RATE) // FRAME
    levels = _levels(wave[: stop * FRAME])
    from_frame = max(1, stop - 100)
    return wave[: (from_frame + int(levels[from_frame:].argmin())) * FRAME]


def _levelled(wave: Audio) -> Audio:
    """At an even loudness, never above :data:`PEAK`."""
    levels = _levels(wave)
    speech = levels[levels > levels.max() * 0.1]
    gain = LOUDNESS_RMS / float(np.sqrt((speech**2).mean()))
    peak = float(np.abs(wave).max())
    return np.asarray(wave * min(gain, PEAK / peak), np.float32)
