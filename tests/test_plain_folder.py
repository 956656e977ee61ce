"""The reader without transformers: the same numbers, and what it leaves to transformers."""

import json
import shutil
import subprocess
import sys

import pytest
import torch

from pcg import loading, testing
from pcg.errors import PcgError
from pcg.layout import SpeechLayout
from pcg.plain_folder import plain_folder


class Ids:
    """A prompt of ids."""

    ids, positions = (*range(3, 40), 300, 270), None


@pytest.fixture(params=[False, True], ids=["own head", "tied head"])
def folder(request, tmp_path):
    return testing.tiny_llasa(tmp_path / "llasa", n_codes=600, tied=request.param)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16-weights", "int8"])
@pytest.mark.parametrize("speech_head", [True, False])
def test_both_ways_of_reading_give_the_same_logits(folder, dtype, speech_head):
    assert plain_folder(folder) is not None
    ours = loading.load_speech_lm(folder, "cpu", dtype, speech_head)
    tokenizer, model = loading.read_model(folder, loading.TYPES[dtype])
    theirs = loading.assemble(
        model, tokenizer, "x", torch.device("cpu"), dtype, speech_head, ours.max_positions
    )
    assert ours.layout == theirs.layout
    one, other = ours.open(), theirs.open()
    assert torch.equal(one.prefill(Ids()), other.prefill(Ids()))
    assert torch.equal(one.step([3, 599, 600]), other.step([3, 599, 600]))


def test_loading_imports_no_transformers(folder):
    code = (
        "import sys; from pcg.loading import load_speech_lm as load; "
        f"load({str(folder)!r}, 'cpu', 'float32'); print('transformers' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_the_tokenizer_is_whole_when_it_is_asked(folder):
    lazy = loading.load_speech_lm(folder, "cpu", "float32").tokenizer
    whole = loading.read_model(folder, torch.float32)[0]
    assert lazy.get_vocab() == whole.get_vocab()
    assert lazy.chat_template == whole.chat_template
    assert lazy("hello").input_ids == whole("hello").input_ids
    assert len(lazy) == len(whole)
    assert SpeechLayout.of(lazy, len(whole)) == SpeechLayout.of(whole, len(whole))


@pytest.mark.parametrize(
    "change",
    [
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0}},
        {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": None},
        {"attention_bias": True},
        {"hidden_act": "gelu"},
        {"model_type": "qwen2"},
        {"quantization_config": {}},
        {"num_hidden_layers": "three"},
    ],
)
def test_anything_else_is_left_to_transformers(folder, change):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert plain_folder(folder) is None


def test_damaged_folders_are_one_sentence(folder, tmp_path):
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PcgError, match="incomplete or damaged"):
        loading.load_speech_lm(folder, "cpu", "float32")
    weights.write_bytes(whole)
    deeper = tmp_path / "deeper"
    shutil.copytree(folder, deeper)
    config = json.loads((deeper / "config.json").read_text())
    config["num_hidden_layers"] += 1
    (deeper / "config.json").write_text(json.dumps(config))
    with pytest.raises(PcgError, match="incomplete or damaged"):
        loading.load_speech_lm(deeper, "cpu", "float32")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(PcgError, match="not a tokenizer"):
        loading.load_speech_lm(folder, "cpu", "float32")
    (folder / "config.json").write_text("[]")
    assert plain_folder(folder) is None
