"""The engine against transformers, and its cache against itself."""

import random

import pytest
import torch

from pcg import testing
from pcg.errors import PcgError
from pcg.loading import load_speech_lm
from pcg.speech_lm import choose_layers

TOLERANCE = {"float32": 1e-4, "float16-weights": 1e-4, "int8": 0.05, "bfloat16": 0.25}


class Ids:
    """A prompt of ids."""

    def __init__(self, ids, positions=None):
        self.ids, self.positions = tuple(ids), positions


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return testing.tiny_llasa(tmp_path_factory.mktemp("llasa"), n_codes=6000)


@pytest.fixture(scope="module")
def reference(folder):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder).eval()


@pytest.fixture(scope="module", params=["float32", "float16-weights", "int8", "bfloat16"])
def model(folder, request):
    return load_speech_lm(folder, "cpu", request.param)


@pytest.fixture(scope="module")
def exact(folder):
    return load_speech_lm(folder, "cpu", "float32")


PROMPT = Ids([*range(3, 40), 300, 270])


@torch.inference_mode()
def test_greedy_tokens_equal_transformers_for_200_steps(exact, reference):
    first = exact.layout.first
    allowed = torch.tensor(exact.layout.head_rows(True))
    session, ids, mine, theirs = exact.open(), list(PROMPT.ids), [], []
    row = session.prefill(PROMPT)
    cache, logits = None, None
    from transformers import DynamicCache

    cache = DynamicCache(config=reference.config)
    logits = reference(torch.tensor([ids]), cache=cache).logits[0, -1, allowed]
    for _ in range(200):
        token, other = int(row[: exact.n_codes].argmax()), int(logits[: exact.n_codes].argmax())
        mine.append(token)
        theirs.append(other)
        row = session.step([token])[0]
        logits = reference(torch.tensor([[first + other]]), cache=cache).logits[0, -1, allowed]
    assert mine == theirs
    assert len(set(mine)) > 20


def test_verification_equals_single_steps(model):
    tolerance = TOLERANCE[model.dtype]
    session = model.open()
    session.prefill(PROMPT)
    tokens = [5, 5999, 17, model.end_id, 0]
    together = session.step(tokens)
    session.crop(len(PROMPT.ids))
    single = torch.cat([session.step([token]) for token in tokens])
    assert together.shape == (5, 6001)
    assert (together - single).abs().max() < tolerance * single.abs().max()


def test_500_random_crops_and_steps_leave_a_true_cache(model):
    rng = random.Random(0)
    session, held = model.open(), []
    session.prefill(PROMPT)
    base = len(PROMPT.ids)
    row = None
    for _ in range(500):
        if held and rng.random() < 0.45:
            keep = rng.randrange(len(held))
            session.crop(base + keep)
            del held[keep:]
        tokens = [rng.randrange(6001) for _ in range(rng.randint(1, 5))]
        row = session.step(tokens)[-1]
        held += tokens
        if len(held) > 300:
            session.crop(base)
            held = []
    held = held or [1]
    if session.length == base:
        row = session.step(held)[-1]
    fresh = model.open()
    fresh.prefill(PROMPT)
    again = torch.cat([fresh.step([token]) for token in held])[-1]
    assert session.length == base + len(held)
    tolerance = TOLERANCE[model.dtype]
    assert (row - again).abs().max() < tolerance * again.abs().max()


@torch.inference_mode()
def test_positions_that_restart_keep_plain_causal_attention(exact, reference):
    ids = list(range(3, 30))
    positions = (0, *range(12), 11, 0, *range(1, 13))
    assert len(positions) == len(ids)
    session = exact.open()
    row = session.prefill(Ids(ids, positions))
    more = session.step([9, 10])
    every = torch.tensor([ids + [exact.layout.first + 9, exact.layout.first + 10]])
    places = torch.tensor([[*positions, 13, 14]])
    n = every.shape[1]
    mask = torch.full((n, n), torch.finfo(torch.float32).min).triu(1)[None, None]
    full = reference(every, position_ids=places, attention_mask=mask).logits[0]
    wanted = full[:, exact.layout.head_rows(True)]
    got = torch.cat([row[None], more])
    assert (got - wanted[-3:]).abs().max() < 1e-3
    session.crop(20)
    assert session._next_position() == positions[19] + 1


def test_the_speech_head_scores_the_same_ids(folder, exact):
    whole = load_speech_lm(folder, "cpu", "float32", speech_head=False)
    rows = [model.open().prefill(PROMPT) for model in (exact, whole)]
    assert whole.vocab_size == whole.layout.size > exact.vocab_size == 6001
    assert torch.allclose(rows[0], rows[1][:6001], atol=1e-4)
    session = whole.open()
    session.prefill(PROMPT)
    assert session.step([whole.vocab_size - 1, 0]).shape == (2, whole.vocab_size)


def test_long_requests_grow_their_cache_and_end_in_a_sentence(exact):
    session = exact.open()
    session.prefill(PROMPT)
    for _ in range(10):
        session.step([3] * 200)
    with pytest.raises(PcgError, match="2048 positions"):
        session.step([3] * 200)
    with pytest.raises(PcgError, match="shorten"):
        exact.open().prefill(Ids([3] * 2048))
    with pytest.raises(PcgError, match="nothing to say"):
        exact.open().prefill(Ids([]))


def test_layer_subsets(exact):
    draft = exact.layer_subset("first 2")
    assert len(draft.llama.layers) == 2
    assert draft.llama.embedding is exact.llama.embedding
    exact.check_draft(draft)
    assert choose_layers("spread 3", 10) == [0, 4, 9]
    assert choose_layers("0,4,9", 10) == [0, 4, 9]
    for bad in ("first 99", "first", "4,0", "", "-1"):
        with pytest.raises(PcgError):
            choose_layers(bad, 10)


def test_a_draft_of_another_vocabulary_is_refused(tmp_path, exact):
    other = load_speech_lm(testing.tiny_llasa(tmp_path, n_codes=100), "cpu", "float32")
    with pytest.raises(PcgError, match="speech codes"):
        exact.check_draft(other)


def test_unknown_architectures_run_on_transformers(tmp_path):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = testing.tiny_tokenizer(50)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
    )
    Qwen2ForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = load_speech_lm(tmp_path, "cpu", "float32")
    assert "transformers" in model.notes[0]
    session = model.open()
    session.prefill(Ids(range(3, 20)))
    together = session.step([1, 2, 3])
    session.crop(17)
    single = torch.cat([session.step([token]) for token in (1, 2, 3)])
    assert torch.allclose(together, single, atol=1e-4)
    assert model.step_seconds(1, repeats=3) > 0
    with pytest.raises(PcgError, match="name a draft"):
        model.layer_subset("first 1")


def test_auto_chooses_a_type_and_says_so(folder):
    model = load_speech_lm(folder, "cpu", "auto")
    assert model.dtype in ("float32", "float16-weights", "int8", "bfloat16")
    assert "chosen by timing" in model.notes[-1] or "float32" in model.notes[-1]


def test_auto_times_int8_where_it_serves_most_weights(folder, monkeypatch):
    from pcg import loading, matrices

    monkeypatch.setattr("pcg.llama.INT8_FROM", 1000)
    monkeypatch.setattr(matrices, "INT8_FROM", 1000)
    monkeypatch.setattr(loading, "has_fast_bf16", lambda: False)
    quick = {"float32": 1.0, "float16-weights": 0.9, "int8": 0.5}
    monkeypatch.setattr(
        loading.SpeechLM, "step_seconds", lambda self, *a, **k: quick[self.dtype]
    )
    assert load_speech_lm(folder, "cpu", "auto").dtype == "int8"
    quick["int8"] = 0.9
    assert load_speech_lm(folder, "cpu", "auto").dtype == "float32"


def test_a_folder_without_weights_is_one_sentence(tmp_path):
    with pytest.raises(PcgError, match="not a model folder"):
        load_speech_lm(tmp_path)
    with pytest.raises(PcgError, match="no type"):
        load_speech_lm(tmp_path, "cpu", "float8")


def test_the_fixed_size_forward_of_cuda_graphs_equals_the_plain_one(exact):
    import dataclasses

    from pcg.graphed_llama import GraphedLlama

    fixed = dataclasses.replace(exact, llama=GraphedLlama.of(exact.llama))
    sessions = [model.open() for model in (exact, fixed)]
    rows = [session.prefill(PROMPT) for session in sessions]
    assert torch.allclose(*rows, atol=1e-4)
    for step in ([5], [6, 7, 8, 9], [10]):
        rows = [session.step(step) for session in sessions]
        assert torch.allclose(*rows, atol=1e-3)
        for session in sessions:
            session.crop(session.length - len(step) // 2)
    cache = sessions[1]._cache
    sessions[1].close()
    again = fixed.open()
    again.prefill(PROMPT)
    assert again._cache is cache
    sessions[0].crop(len(PROMPT.ids))
    assert torch.allclose(again.step([5]), sessions[0].step([5]), atol=1e-3)
    assert isinstance(fixed.layer_subset("first 1").llama, GraphedLlama)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_graphs_replay_the_same_logits(folder, exact):
    graphed = load_speech_lm(folder, "cuda", "float32")
    assert "graphs" in graphed.notes[0]
    sessions = [exact.open(), graphed.open()]
    rows = [session.prefill(PROMPT).cpu() for session in sessions]
    assert torch.allclose(*rows, atol=1e-2)
    for step in ([5], [6, 7, 8, 9], [10], [11, 12, 13, 14]):
        rows = [session.step(step).cpu() for session in sessions]
        assert torch.allclose(*rows, atol=1e-2)
