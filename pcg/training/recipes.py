"""The draft recipes: the bundled draft from the token corpus, and a draft for any model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pcg.errors import PcgError
from pcg.training.draft import Batch, parse_layers, train_draft


def bundled_draft(
    work: Path,
    layers: str,
    out: Path,
    minutes: float,
    seed: int = 0,
    small: bool = False,
    stage: str = "both",
) -> dict[str, Any]:
    """Trains on the token corpus ("corpus"), then on the target's own samples ("samples").

    Each gets half of ``minutes``, or all of it when it is the only ``stage``. The first is taught
    by the target before it was deepened, where there is one: half the work, nearly the same
    probabilities, and it need not wait for the target. The second goes on from the draft in
    ``out``; a quarter of its time goes into speaking samples, and every second batch is corpus.
    """
    if stage == "both":
        bundled_draft(work, layers, out, minutes / 2, seed, small, "corpus")
        return bundled_draft(work, layers, out, minutes / 2, seed, small, "samples")
    from transformers import LlamaForCausalLM

    from pcg.codec.bundled import N_CODES
    from pcg.layout import SpeechLayout
    from pcg.phonemes import Layout
    from pcg.training.samples import alternately, endless
    from pcg.training.sequences import Sequences, split_shards
    from pcg.training.target import tokenizer
    from pcg.training.tokens import groups_of

    layout = Layout(N_CODES)
    first, shallow = stage == "corpus", work / "parts" / "shallow"
    folder = shallow if first and shallow.is_dir() else work / "parts" / "target"
    target = LlamaForCausalLM.from_pretrained(folder, dtype="float32")
    if folder == shallow:  # layer 2i of the deepened target was its layer i
        deep = parse_layers(layers, 2 * target.config.num_hidden_layers)
        layers = ",".join(map(str, sorted({number // 2 for number in deep})))
    speech = SpeechLayout.of(tokenizer(layout), layout.size)
    training, _held_out = split_shards(work / "tokens")
    source = Sequences(groups_of(training), layout, seed + 7)
    talking = (0.05 if first else 0.25) * minutes
    spoken = corpus_samples(folder, source, layout, 4 if small else 2000, talking, seed)
    check = spoken[: max(1, len(spoken) // 10)]
    rest = spoken[len(check) :] or spoken
    corpus = source.batches(1800)
    report = train_draft(
        target,
        speech,
        layers,
        corpus if first else None,
        None if first else alternately(endless(rest, seed), corpus),
        check,
        out,
        work / "checkpoints",
        (minutes, 0.0) if first else (0.0, minutes - talking),
        seed=seed,
        start=_earlier(out),
    )
    tokenizer(layout).save_pretrained(out)
    return report


def _earlier(out: Path) -> Any:
    """The draft in ``out`` to go on from; None where there is none."""
    from transformers import LlamaForCausalLM

    if not (out / "config.json").is_file():
        return None
    return LlamaForCausalLM.from_pretrained(out, dtype="float32")


def corpus_samples(
    folder: Path, source: Any, layout: Any, count: int, minutes: float, seed: int
) -> list[Batch]:
    """The target's own continuations of corpus prompts, several to a batch."""
    import random
    import time

    import numpy as np

    from pcg.acceptance import make_rule
    from pcg.decoding import Prompt, decode
    from pcg.matrices import packing_works
    from pcg.sampling import Sampling
    from pcg.speech_lm import load
    from pcg.training.sequences import collate

    quick = "float16-weights" if packing_works("float16-weights") else "float32"
    model, rng, rule = load(folder, "cpu", quick, True), random.Random(seed), make_rule("target")
    started = time.monotonic()
    items: list[Any] = []
    for number in range(count):
        if (time.monotonic() - started) / 60 > minutes and len(items) >= 12:
            break
        rows = source.groups[rng.choice(source.names)]
        before, row = rng.sample(rows, 2)
        starts = np.concatenate(
            [before.starts, [len(before.codes)], row.starts + len(before.codes)]
        )
        total = len(before.codes) + len(row.codes)
        ids, positions = layout.sequence(
            f"{before.phonemes} {row.phonemes}", starts, total, before.codes
        )
        prompt = Prompt(tuple(ids.tolist()), tuple(positions.tolist()), len(before.codes))
        tokens: list[int] = []
        for turn in decode(
            model,
            None,
            prompt,
            rule,
            sampling=Sampling(0.8),
            seed=seed + number,
            max_tokens=len(row.codes) + 20,
        ):
            tokens += turn.emitted
        said = [layout.speech_end if t == layout.n_codes else layout.speech + t for t in tokens]
        place = positions[-1] + 1 + np.arange(len(said))
        items.append((np.append(ids, said), np.append(positions, place)))
        if (number + 1) % 50 == 0:
            print(f"samples {number + 1}, {time.monotonic() - started:.0f} s", flush=True)
    return [collate(items[i : i + 6], layout) for i in range(0, len(items), 6)]


def draft_for_model(
    name: str,
    layers: str,
    data: Path | None,
    texts: Path | None,
    out: Path,
    work: Path,
    minutes: float,
    seed: int = 0,
) -> dict[str, Any]:
    """A draft for any catalogue model or folder (LLaSA included).

    ``data``: recordings with transcripts (LibriTTS or LibriHeavy layout); ``texts``: one text a
    line for self-distillation, spoken without a prompt and in the bundled voices.

    Raises:
        PcgError: when neither is given, or nothing usable is in them.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from pcg import catalog
    from pcg.training.samples import endless, own_samples, recorded
    from pcg.voices import bundled_voices

    if data is None and texts is None:
        raise PcgError("Give --data (recordings with transcripts), --texts (one a line), or both.")
    model = catalog.load(name, draft="none")
    source = recorded(model, data) if data else []
    lines = [line.strip() for line in texts.read_text("utf-8").splitlines()] if texts else []
    lines = [line for line in lines if line]
    spoken = own_samples(model, lines, [None, *bundled_voices()], seed) if lines else []
    check = (spoken or source)[: max(1, len(spoken or source) // 10)]
    folder = catalog.CATALOG[name].target if name in catalog.CATALOG else name
    path = Path(folder) / "target" if (Path(folder) / "target").is_dir() else folder
    target = AutoModelForCausalLM.from_pretrained(path, dtype="float32", use_safetensors=True)
    tokenizer = AutoTokenizer.from_pretrained(path)
    report = train_draft(
        target,
        model.target.layout,
        layers,
        endless(source, seed) if source else None,
        endless(spoken, seed) if spoken else None,
        check,
        out,
        work,
        (minutes / 2, minutes / 2),
        seed=seed,
    )
    tokenizer.save_pretrained(out)
    return report
