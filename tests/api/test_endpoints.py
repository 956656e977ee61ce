"""The named endpoints, as another program uses them."""

import base64
import io
import json
import urllib.request
from typing import Any

import pytest
import soundfile
from gradio_client import Client
from gradio_client.exceptions import AppError

from pcg.bench.load import StartUp

pytestmark = pytest.mark.server
START_UP_SECONDS = 12.0


@pytest.fixture(scope="module")
def client(page: tuple[str, StartUp]) -> Client:
    return Client(page[0], verbose=False, httpx_kwargs={"timeout": 180})


@pytest.fixture(scope="module")
def spoken(client: Client) -> dict[str, Any]:
    return client.predict(text="The boat came home.", rule="pcg", seed=7, api_name="/say")


def test_the_page_answers_within_its_start_up_time(page: tuple[str, StartUp]) -> None:
    start_up = page[1]
    print(f"start-up: {start_up.wall:.1f} s, {start_up.cpu} s of computing")
    if start_up.cpu is None:
        pytest.skip("this system does not tell a process's computing time")
    assert start_up.cpu < START_UP_SECONDS  # what an idle core takes; the clock depends on others


def test_healthz(page: tuple[str, StartUp]) -> None:
    with urllib.request.urlopen(page[0] + "/healthz", timeout=30) as reply:
        report = json.load(reply)
    assert report["status"] == "ok"
    assert report["active"] == 0


def test_only_the_five_names_are_offered(client: Client) -> None:
    names = set(client.view_api(return_format="dict")["named_endpoints"])
    assert names == {"/say", "/compare", "/theta_sweep", "/swap", "/group"}


def test_say_returns_sound_codes_and_figures(spoken: dict[str, Any]) -> None:
    audio, rate = soundfile.read(io.BytesIO(base64.b64decode(spoken["wav_base64"])))
    assert rate == spoken["sample_rate"]
    assert len(audio) / rate > 0.3
    assert abs(audio).max() > 0.01
    assert 0.0 <= spoken["summary"]["acceptance_rate"] <= 1.0
    assert len(spoken["codes"]) > 10


def test_the_same_seed_says_the_same(client: Client, spoken: dict[str, Any]) -> None:
    again = client.predict(text="The boat came home.", rule="pcg", seed=7, api_name="/say")
    assert again["codes"] == spoken["codes"]


def test_compare_and_sweep(client: Client) -> None:
    report = client.predict(text="No.", rules="target,pcg", seed=1, api_name="/compare")
    assert [run["rule"] for run in report["runs"]] == ["target", "pcg"]
    sweep = client.predict(text="No.", seed=1, api_name="/theta_sweep")
    assert len(sweep["thetas"]) == len(sweep["mean_sizes"])


def test_swap_and_group(client: Client, spoken: dict[str, Any]) -> None:
    codes = spoken["codes"]
    swapped = client.predict(codes=codes, theta=0.4, share=0.5, seed=1, api_name="/swap")
    assert len(swapped["codes"]) == len(codes)
    group = client.predict(token=codes[0], theta=0.4, api_name="/group")
    assert [codes[0], 1.0] in [[token, round(cosine, 3)] for token, cosine in group["members"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"text": ""}, "."),
        ({"text": "Hello.", "rule": "nobody"}, "nobody"),
        ({"text": "Hello.", "params": "{'theta'}"}, "JSON"),
        ({"text": "Hello.", "voice": "../../etc/passwd"}, "voice"),
        ({"text": "Hello.", "lookahead": 9999}, "from 1 to"),
        ({"text": "x" * 99999}, "characters"),
    ],
)
def test_refusals_are_sentences(client: Client, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(AppError, match=words):
        client.predict(**arguments, api_name="/say")
