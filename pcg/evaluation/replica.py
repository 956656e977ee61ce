"""One voice model with its metrics: turns (utterance, arm) into one row. Lives in one process."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcg import metrics
from pcg.errors import PcgError
from pcg.evaluation.arms import Arm, Options, utterance_seed
from pcg.evaluation.judge import Judge
from pcg.evaluation.manifest import Utterance
from pcg.evaluation.origin import facts_of, plain
from pcg.evaluation.recordings import recording
from pcg.evaluation.rows import Row
from pcg.swap import swap_codes

Audio = NDArray[np.float32]


class Replica:
    """Loads the model once. ``own_device``: nothing else of this run shares its device, so that
    its times may be compared; rows say so.
    """

    def __init__(self, options: Options, own_device: bool = True) -> None:
        from pcg.catalog import load
        from pcg.voices import bundled_voices

        self.options = options
        self.own_device = own_device
        self.model: Any = load(options.model)
        own = Path(options.model) / "voices"
        voices = bundled_voices(own if own.is_dir() else None)
        self.voices = {voice.name: voice for voice in voices}
        self._models: dict[tuple[str, str], Any] = {}
        self._spoken: tuple[Any, ...] = ()
        self._warm = False
        self.judge = Judge(options, self.voices)
        self._kinds: dict[str, Callable[[Utterance, Arm, int], Row]] = {
            "speak": self._speak,
            "swap": self._swap,
            "recording": self._recording,
            "codec": self._codec,
            "drift": self._drift,
        }

    def row(self, utterance: Utterance, arm: Arm) -> Row:
        """Measure one arm on one utterance. Never raises: a failure is a row that says why."""
        seed = utterance_seed(self.options.seed, utterance.id)
        head: Row = {
            "key": row_key(utterance, arm),
            "utterance": utterance.id,
            "arm": arm.name,
            "seed": seed,
            "voice": utterance.voice or Path(utterance.prompt).stem,
        }
        try:
            return {**head, "status": "ok", **self._kinds[arm.kind](utterance, arm, seed)}
        except Exception as error:  # whatever goes wrong with one utterance is its row
            text = str(error) or "no message"
            return {**head, "status": "failed", "error": f"{type(error).__name__}: {text}"[:500]}

    # kinds of arms

    def _speak(self, utterance: Utterance, arm: Arm, seed: int) -> Row:
        self._warm_up(utterance, seed)
        audio, _, row = self.spoken(utterance, arm, seed)
        return {**row, **self._judged(utterance, arm, audio, row)}

    def _warm_up(self, utterance: Utterance, seed: int) -> None:
        """Speak once before the first timed arm, so that none pays for what is made once."""
        if not self._warm:
            self._warm = True
            rule = "sd" if self.model.draft is not None else "target"
            self._events(utterance, Arm("warm", "", rule=rule), seed)

    def _swap(self, utterance: Utterance, arm: Arm, seed: int) -> Row:
        base = Arm("target", "", lookahead=0)
        _, codes, row = self.spoken(utterance, base, seed)
        nested = self.model.mel_groups if arm.groups == "mel" else self.model.groups
        groups = nested.at(arm.params["theta"])
        swapped = swap_codes(codes, groups, arm.params["share"], seed, arm.control)  # type: ignore[arg-type]
        audio = self._sound(utterance, swapped.codes)
        facts = {
            "share": arm.params["share"],
            "realised": round(swapped.realised, 6),
            "possible": round(swapped.possible / max(1, len(codes)), 6),
        }
        quality = self._judged(utterance, arm, audio, row)
        return {"swap": facts, "finished": row["finished"], "tokens": len(codes), **quality}

    def _sound(self, utterance: Utterance, codes: Sequence[int]) -> Audio:
        """The sound of codes after the prompt's own, as the synthesis decodes them."""
        from pcg.codec.windowed import decode_long

        prompt = self.model.voice_codes(self.voice(utterance))
        whole = decode_long(self.model.codec, np.asarray([*prompt, *codes], np.int64))
        return np.asarray(whole[len(prompt) * self.model.codec.hop :], dtype=np.float32)

    def _recording(self, utterance: Utterance, arm: Arm, seed: int) -> Row:
        audio = self._own_recording(utterance)
        return self._judged(utterance, arm, audio, {})

    def _codec(self, utterance: Utterance, arm: Arm, seed: int) -> Row:
        audio = self._own_recording(utterance)
        codes = self.model.codec.encode(audio)
        back = np.asarray(self.model.codec.decode(list(codes)), dtype=np.float32)
        facts: Row = {"tokens": len(codes), "f0_error": metrics.f0_error(audio, back).to_dict()}
        similarity = metrics.speaker_similarity(audio, back, self.options.speaker or None)
        return {
            **facts,
            "to_original": similarity.to_dict(),
            **self._judged(utterance, arm, back, {}),
        }

    def _drift(self, utterance: Utterance, arm: Arm, seed: int) -> Row:
        from pcg.evaluation.laws import drift_sums

        sd = dataclasses.replace(arm, rule="sd", params={})
        draft_probs, target_probs = self.probability_rows(utterance, sd, seed)
        return {"drift": drift_sums(draft_probs, target_probs, self.model.groups)}

    # speaking

    def spoken(self, utterance: Utterance, arm: Arm, seed: int) -> tuple[Audio, list[int], Row]:
        """Audio, speech codes and facts of one decoding; the last one is kept for the next arm."""
        key = (utterance, arm.rule, tuple(sorted(arm.params.items())), arm.lookahead, arm.groups)
        if self._spoken and self._spoken[0] == (*key, arm.draft):
            return self._spoken[1], self._spoken[2], self._spoken[3]
        events, wall, cpu = self._events(utterance, arm, seed)
        finished = events[-1]
        if type(finished).__name__ != "Finished":
            raise PcgError("The synthesis ended without a result.")
        audio = np.asarray(finished.audio, dtype=np.float32)
        codes = [int(code) for code in finished.codes]
        row = self._facts(audio, codes, dict(finished.summary), events, wall, cpu)
        if arm.rule == "target":
            self._spoken = ((*key, arm.draft), audio, codes, row)
        return audio, codes, row

    def probability_rows(
        self, utterance: Utterance, arm: Arm, seed: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draft and target rows (positions, V) of every judged position of one decoding."""
        events, _, _ = self._events(utterance, arm, seed, keep_rows=True)
        return judged_rows(events)

    def _events(
        self, utterance: Utterance, arm: Arm, seed: int, keep_rows: bool = False
    ) -> tuple[list[Any], float, float]:
        """All events, with wall and CPU seconds spent on rounds (not on the codec)."""
        from pcg.sampling import Sampling
        from pcg.synthesis import Request, speak

        o = self.options
        request = Request(
            text=utterance.text,
            voice=self.voice(utterance),
            rule=arm.rule,
            params=dict(arm.params),
            lookahead=arm.lookahead,
            sampling=Sampling(temperature=o.temperature, top_k=o.top_k, top_p=o.top_p),
            seed=seed,
            max_seconds=o.max_seconds,
        )
        events: list[Any] = []
        wall = cpu = 0.0
        stream = iter(speak(self._model(arm), request, keep_rows=keep_rows, preview=False))
        while True:
            start, start_cpu = time.perf_counter(), time.process_time()
            event = next(stream, None)
            if event is None:
                return events, wall, cpu
            if hasattr(event, "round"):
                wall += time.perf_counter() - start
                cpu += time.process_time() - start_cpu
            events.append(event)

    def _model(self, arm: Arm) -> Any:
        """The voice model with the arm's groups and draft."""
        key = (arm.groups, arm.draft)
        if key not in self._models:
            from pcg.catalog import load

            model = load(self.options.model, draft=arm.draft) if arm.draft else self.model
            if arm.groups == "mel":
                if model.mel_groups is None:
                    raise PcgError("This model has no Mel groups: build them with `train groups`.")
                model = dataclasses.replace(model, groups=model.mel_groups)
            self._models[key] = model
        return self._models[key]

    def voice(self, utterance: Utterance) -> Any:
        """The prompt of an utterance; raises PcgError when it cannot be used."""
        if utterance.voice:
            if utterance.voice not in self.voices:
                raise PcgError(f"There is no bundled voice {utterance.voice!r}.")
            return self.voices[utterance.voice]
        if not utterance.transcript:
            raise PcgError(f"The prompt of {utterance.id} has no transcript: write what it says.")
        from pcg.voices import read_voice

        return read_voice(utterance.prompt, utterance.transcript)

    def _own_recording(self, utterance: Utterance) -> Audio:
        if not utterance.audio:
            raise PcgError(f"{utterance.id} has no recording of its own text.")
        return recording(utterance.audio, utterance.text)

    def _facts(
        self,
        audio: Audio,
        codes: list[int],
        summary: Row,
        events: list[Any],
        wall: float,
        cpu: float,
    ) -> Row:
        rounds = [event.round for event in events if hasattr(event, "round")]
        names: tuple[str, ...] = (
            "acceptance_rate",
            "tokens_per_round",
            "rounds",
            "tokens",
            "judged",
            "accepted",
        )
        names += ("group_only", "by_position", "trials_mean", "trials_max")
        return {
            "decode": {name: plain(summary[name]) for name in names if name in summary},
            "tokens": len(codes),
            "finished": next((turn.finished for turn in reversed(rounds) if turn.finished), None),
            "time": {
                "decode": round(wall, 4),
                "cpu": round(cpu, 4),
                "own_device": self.own_device,
                "load": round(os.getloadavg()[0], 2),
            },
            "codes_sha": hashlib.sha256(np.asarray(codes, np.int32).tobytes()).hexdigest()[:16],
            "audio_seconds": round(audio.size / 16_000, 3),
        }

    def _judged(self, utterance: Utterance, arm: Arm, audio: Audio, row: Row) -> Row:
        if not arm.judged:
            return {}
        has_prompt = bool(utterance.voice or utterance.prompt)
        prompt = self.voice(utterance).audio if has_prompt else None
        ended = row["finished"] == "end" if row else None
        return self.judge(utterance, audio, ended, prompt)

    @cached_property
    def facts(self) -> Row:
        """What the results must say about their origin."""
        return facts_of(self.model, self.options)


def judged_rows(events: Iterable[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draft and target rows (positions, V) of the judged positions of a decoding with rows kept.

    Positions after a rejection are left out: their prefix was thrown away.
    """
    drafts, targets = [], []
    for event in events:
        turn = getattr(event, "round", None)
        if turn is not None and len(turn.drafted):
            judged = len(turn.verdict.judgements)
            drafts.append(np.asarray(turn.rows[0][:judged], dtype=np.float32))
            targets.append(np.asarray(turn.rows[1][:judged], dtype=np.float32))
    if not drafts:
        raise PcgError("No token was drafted, so there are no rows to compare.")
    return np.concatenate(drafts), np.concatenate(targets)


def row_key(utterance: Utterance, arm: Arm) -> str:
    """Identifies a row: utterance and arm."""
    return f"{utterance.id}/{arm.name}"
