"""From text to sound with tiny models saved to disk and loaded as the real ones are."""

import argparse
import json
import shutil

import numpy as np
import pytest
import soundfile
import torch

from pcg import catalog, testing
from pcg.acceptance import REGISTRY
from pcg.commands import compare, say
from pcg.errors import PcgError
from pcg.groups import NestedGroups, table_hash
from pcg.loading import load_speech_lm
from pcg.prompts import LlasaPrompts
from pcg.sampling import Sampling
from pcg.settings import load_settings
from pcg.synthesis import Finished, Preview, Request, RoundEvent, Started, speak
from pcg.trace import Trace
from pcg.voices import VoicePrompt, bundled_voices

TEXT = "Hello there, my friend. This is a test of three things."


def settings(**more):
    return load_settings(environ={}, **({"device": "cpu", "dtype": "float32"} | more))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return testing.tiny_bundled(tmp_path_factory.mktemp("bundled"))


@pytest.fixture(scope="module")
def model(folder):
    return catalog.load(folder, settings())


@pytest.fixture(scope="module")
def voice(folder):
    return bundled_voices(folder / "voices")[0]


@pytest.fixture(scope="module")
def llasa(tmp_path_factory):
    """LLaSA's whole layout, 65,536 speech ids in order, with a tiny X-Codec2 beside it."""
    folder = testing.tiny_llasa(tmp_path_factory.mktemp("llasa"), n_codes=65_536)
    testing.tiny_xcodec2(folder / "codec")
    table = load_speech_lm(folder, "cpu", "float32").embeddings
    one, other = torch.tensor([1, 5]), torch.tensor([2, 65_535])
    NestedGroups(
        one, other, torch.tensor([0.5, 0.6]), theta_min=0.3, n_codes=65_536, vocab_size=65_537,
        table=table_hash(table),
    ).save(folder / "groups")  # making them for this many codes takes a minute
    return folder


def spoken(model, voice, **more):
    return list(speak(model, Request(TEXT, voice, **({"max_seconds": 2.0} | more))))


@pytest.mark.parametrize("rule", list(REGISTRY))
def test_every_rule_speaks_the_same_way_each_time(model, voice, rule):
    events = spoken(model, voice, rule=rule, seed=3)
    again = spoken(model, voice, rule=rule, seed=3)
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    done = events[-1]
    assert done.codes == again[-1].codes
    assert len(done.audio) == len(done.codes) * model.codec.hop
    assert np.isfinite(done.audio).all()
    assert sum(len(e.audio) for e in events if isinstance(e, Preview)) == len(done.audio)
    emitted = [t for e in events if isinstance(e, RoundEvent) for t in e.round.emitted]
    assert [t for t in emitted if t < model.codec.n_codes] == done.codes
    assert done.trace.codes == done.codes
    assert len(emitted) <= events[0].budget


def test_other_seeds_give_other_speech(model, voice):
    assert spoken(model, voice, seed=1)[-1].codes != spoken(model, voice, seed=2)[-1].codes


@pytest.mark.parametrize("dtype", ["float32", "float16-weights", "int8", "bfloat16"])
def test_a_draft_equal_to_its_target_is_always_right(folder, voice, dtype):
    same = catalog.load(folder, settings(dtype=dtype), draft=str(folder / "target"))
    for rule in set(REGISTRY) - {"target", "tolerance", "top_k"}:
        summary = spoken(same, voice, rule=rule)[-1].summary
        assert summary["acceptance_rate"] > (0.999 if dtype != "bfloat16" else 0.97), rule
    greedy = Sampling(temperature=0.0)
    for rule in ("tolerance", "top_k"):
        summary = spoken(same, voice, rule=rule, sampling=greedy)[-1].summary
        assert summary["acceptance_rate"] > 0.97


def test_greedy_speculation_equals_greedy_decoding(model, voice):
    greedy = Sampling(temperature=0.0)
    alone = spoken(model, voice, rule="target", sampling=greedy)[-1].codes
    assert spoken(model, voice, rule="sd", sampling=greedy)[-1].codes == alone


def test_stopping_keeps_what_was_said(model, voice):
    turns = []
    events = []
    for event in speak(model, Request(TEXT, voice), should_stop=lambda: len(turns) >= 5):
        events.append(event)
        if isinstance(event, RoundEvent):
            turns.append(event)
    assert events[-1].summary["finished"] == "cancelled"
    assert 0 < len(events[-1].codes) < 30


def test_sentences_share_the_budget(model, voice):
    events = list(speak(model, Request("One sentence here. " * 8, voice, max_seconds=3.0)))
    assert events[0].budget <= 150
    assert len(events[-1].codes) <= 150


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(""), "nothing to say"),
        (Request("hi", rule="magic"), "no rule"),
        (Request("hi", params={"theta": 9}), "theta"),
        (Request("hi", params={"beta": 1}), "parameter"),
        (Request("hi", lookahead=99), "lookahead"),
        (Request("hi", max_seconds=0), "duration"),
    ],
)
def test_bad_requests_are_one_sentence(model, request_, words):
    with pytest.raises(PcgError, match=words):
        list(speak(model, request_))


def test_prompt_ids_equal_the_published_format(llasa):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(llasa)
    voice = VoicePrompt("a", testing.speech_like(1.0), "first words")
    built = LlasaPrompts(tokenizer).build("and more", voice, [7, 65_535])
    written = (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
        "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nConvert the text to speech:"
        "<|TEXT_UNDERSTANDING_START|>first words and more<|TEXT_UNDERSTANDING_END|><|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n<|SPEECH_GENERATION_START|>"
        "<|s_7|><|s_65535|>"
    )
    assert list(built.ids) == tokenizer(written, add_special_tokens=False)["input_ids"]
    assert built.prompt_codes == 2
    assert built.ids[-1] == len(tokenizer) - 1
    plain = LlasaPrompts(tokenizer).build("<|s_1|> <|eot_id|>", None, ())
    assert tokenizer.convert_tokens_to_ids("<|s_1|>") not in plain.ids


def test_llasa_with_xcodec2_speaks_by_name_of_its_folder(llasa, voice):
    model = catalog.load(llasa, settings(), draft="first 2")
    assert (model.codec.n_codes, model.codec.hop) == (65_536, 320)
    for rule in ("target", "pcg"):
        done = spoken(model, voice, rule=rule, max_seconds=0.6)[-1]
        assert len(done.audio) == 320 * len(done.codes) > 0
    assert catalog.load(llasa, settings(), draft="none").draft is None


def test_the_commands_write_sound_traces_and_json(folder, tmp_path, capsys):
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    say.add_parser(commands)
    compare.add_parser(commands)
    shared = ["--model", str(folder), "--dtype", "float32", "--max-seconds", "1", "--json"]
    out, trace = tmp_path / "a.wav", tmp_path / "a.jsonl"
    args = parser.parse_args(["say", TEXT, *shared, "-o", str(out), "--trace", str(trace)])
    assert args.run(args) == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert soundfile.info(out).samplerate == 16_000
    assert Trace.load(trace).summary()["tokens"] == facts["summary"]["tokens"]
    rules = "sd pcg:theta=0.3 ssd:beta=0.4"
    args = parser.parse_args(
        ["compare", TEXT, *shared, "--rules", rules, "--voice", "low", "-o", str(tmp_path / "c")]
    )
    assert args.run(args) == 0
    output = capsys.readouterr().out
    facts = json.loads(output.splitlines()[-1])
    assert [row["rule"] for row in facts["rules"]] == ["target", *rules.split()]
    assert facts["rules"][0]["speedup"] == 1.0
    assert len(list((tmp_path / "c").glob("*.wav"))) == 4
    assert "speed-up" in output


def test_missing_models_are_one_sentence(tmp_path, folder):
    with pytest.raises(PcgError, match="no voice model"):
        catalog.load("nothing", settings())
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    shutil.rmtree(broken / "target")
    with pytest.raises(PcgError, match="restore"):
        catalog.load(broken, settings())
    (broken / "pcg.json").write_text("{")
    with pytest.raises(PcgError, match="restore"):
        catalog.load(broken, settings())


def test_gated_and_offline_weights_say_what_to_do():
    from pcg.loading import explain

    assert "accept its licence" in explain("HKUSTAudio/Llasa-1B", OSError("gated repo 401"))
    assert "hub" in explain("HKUSTAudio/Llasa-1B", OSError("We couldn't connect to the hub"))
