"""Odd recordings: each gives a voice or one clear sentence, quickly and in little memory."""

import io
import json
import shutil
import subprocess
import time
import tracemalloc

import numpy as np
import pytest
import soundfile

from pcg import testing
from pcg.errors import PcgError
from pcg.voices import VoicePrompt, bundled_voices, read_voice, with_transcript

SPEECH = testing.speech_like(3.0)


def sound(rate=16000, channels=1, seconds=3.0, **how):
    import soxr

    wave = testing.speech_like(seconds)
    if rate != 16000:
        wave = soxr.resample(wave, 16000, rate)
    data = io.BytesIO()
    stacked = np.stack([wave] * channels, 1)
    soundfile.write(data, stacked, rate, **({"format": "WAV"} | how))
    return data.getvalue()


def raw(values, rate=16000, subtype="FLOAT"):
    data = io.BytesIO()
    soundfile.write(data, np.asarray(values, np.float32), rate, format="WAV", subtype=subtype)
    return data.getvalue()


def with_nan():
    wave = SPEECH.copy()
    wave[1000] = np.nan
    return raw(wave)


def one_click():
    wave = np.zeros(32000, np.float32)
    wave[1000] = 1.0
    return raw(wave)


def two_halves():
    return raw(np.concatenate([SPEECH, np.zeros(16000 * 20, np.float32), SPEECH]))


GOOD = {
    "8 kHz": lambda: sound(8000),
    "11.025 kHz": lambda: sound(11025),
    "22.05 kHz": lambda: sound(22050),
    "24 kHz": lambda: sound(24000),
    "32 kHz": lambda: sound(32000),
    "44.1 kHz": lambda: sound(44100),
    "48 kHz": lambda: sound(48000),
    "96 kHz": lambda: sound(96000),
    "192 kHz": lambda: sound(192000),
    "stereo": lambda: sound(channels=2),
    "three channels": lambda: sound(channels=3),
    "5.1": lambda: sound(48000, channels=6),
    "24 bit": lambda: sound(subtype="PCM_24"),
    "32 bit": lambda: sound(subtype="PCM_32"),
    "8 bit": lambda: sound(subtype="PCM_U8"),
    "double": lambda: sound(subtype="DOUBLE"),
    "mu-law": lambda: sound(subtype="ULAW"),
    "adpcm": lambda: sound(subtype="IMA_ADPCM"),
    "flac": lambda: sound(format="FLAC"),
    "ogg": lambda: sound(format="OGG"),
    "opus": lambda: sound(48000, format="OGG", subtype="OPUS"),
    "mp3": lambda: sound(44100, format="MP3"),
    "aiff": lambda: sound(format="AIFF"),
    "caf": lambda: sound(format="CAF"),
    "w64": lambda: sound(format="W64"),
    "clipped": lambda: raw(np.clip(20 * SPEECH, -1, 1)),
    "above full scale": lambda: raw(50 * SPEECH),
    "very quiet": lambda: raw(0.02 * SPEECH),
    "offset": lambda: raw(0.3 + 0.3 * SPEECH),
    "half a second": lambda: sound(seconds=0.75),
    "30 s": lambda: sound(seconds=30),
    "20 min": lambda: sound(8000, seconds=1200),
    "20 min of mp3": lambda: sound(16000, seconds=1200, format="MP3"),
    "truncated data": lambda: sound()[:60000],
    "silence in the middle": two_halves,
}
BAD = {
    "no bytes": lambda: b"",
    "no samples": lambda: raw([]),
    "silence": lambda: raw(np.zeros(48000)),
    "NaN": with_nan,
    "infinity": lambda: raw(np.full(48000, np.inf)),
    "a click": one_click,
    "too short": lambda: raw(SPEECH[:3000]),
    "truncated header": lambda: sound()[:20],
    "text": lambda: b"This is not a sound at all.\n" * 50,
    "html": lambda: b"<html><body>404</body></html>",
    "zeros": lambda: bytes(10000),
    "a playlist": lambda: b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n",
    "a concat list": lambda: b"ffconcat version 1.0\nfile '/etc/hostname'\n",
    "header only": lambda: sound()[:44],
    "an absurd rate": lambda: raw(SPEECH, rate=100),
    "a picture": lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
}


@pytest.mark.parametrize("kind", GOOD)
def test_usable_recordings(kind, tmp_path):
    data = GOOD[kind]()
    path = tmp_path / "voice.wav"
    path.write_bytes(data)
    started = time.monotonic()
    voice = read_voice(path)
    assert time.monotonic() - started < 2
    assert voice.audio.dtype == np.float32 and voice.audio.ndim == 1
    assert 0.5 <= voice.seconds <= 15
    assert np.isfinite(voice.audio).all()
    assert 0.02 < float(np.sqrt((voice.audio**2).mean())) < 0.3
    assert float(np.abs(voice.audio).max()) <= 0.96
    assert read_voice(data).seconds == pytest.approx(voice.seconds, abs=0.01)


@pytest.mark.parametrize("kind", BAD)
def test_useless_recordings_are_one_sentence(kind, tmp_path):
    path = tmp_path / "voice.wav"
    path.write_bytes(BAD[kind]())
    started = time.monotonic()
    with pytest.raises(PcgError) as error:
        read_voice(path)
    assert time.monotonic() - started < 2
    assert "\n" not in str(error.value) and len(str(error.value)) < 160


def test_memory_stays_small():
    data = GOOD["20 min"]()
    tracemalloc.start()
    read_voice(data)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg")
@pytest.mark.parametrize("kind", ["m4a", "webm", "mp4"])
def test_ffmpeg_reads_what_soundfile_cannot(kind, tmp_path):
    source, made = tmp_path / "a.wav", tmp_path / f"b.{kind}"
    source.write_bytes(sound())
    codec = "libopus" if kind == "webm" else "aac"
    command = ["ffmpeg", "-v", "error", "-i", source, "-c:a", codec, made]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("this ffmpeg has no encoder for it")
    assert read_voice(made).seconds == pytest.approx(3.0, abs=0.4)


def test_a_long_recording_with_its_words_is_refused_and_without_is_cut():
    data = sound(seconds=30)
    with pytest.raises(PcgError, match="30 s long"):
        read_voice(data, "some words")
    voice = read_voice(data)
    assert voice.seconds <= 15 and "only its first" in voice.notes[0]
    assert voice.transcript == ""


def test_quiet_ends_are_cut():
    quiet = np.zeros(16000, np.float32)
    voice = read_voice(raw(np.concatenate([quiet, SPEECH, quiet])), "words")
    assert voice.seconds == pytest.approx(3.0, abs=0.45)


def test_a_missing_file_is_one_sentence():
    with pytest.raises(PcgError, match="no file"):
        read_voice("/nowhere/at-all.wav")


def test_bundled_voices_are_read_from_a_folder(tmp_path):
    testing.tiny_bundled(tmp_path, n_codes=64)
    voices = bundled_voices(tmp_path / "voices")
    assert [voice.name for voice in voices] == ["high", "low"]
    assert voices[0].transcript
    (tmp_path / "voices" / "low.json").write_text(json.dumps({"name": "low"}))
    with pytest.raises(PcgError, match="restore"):
        bundled_voices(tmp_path / "voices")
    assert bundled_voices(tmp_path / "none") == []


def test_the_recogniser_is_asked_only_when_words_are_missing(monkeypatch):
    import importlib

    wer, heard = importlib.import_module("pcg.metrics.wer"), []
    monkeypatch.setattr(wer, "transcribe", lambda audio: heard.append(1) or " some  words ")
    known = VoicePrompt("a", SPEECH, "known")
    assert with_transcript(known) is known and not heard
    assert with_transcript(VoicePrompt("a", SPEECH, "")).transcript == "some words"
    monkeypatch.setattr(wer, "transcribe", lambda audio: "")
    with pytest.raises(PcgError, match="No words"):
        with_transcript(VoicePrompt("a", SPEECH, ""))
