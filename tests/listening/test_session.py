"""A session: no vote without hearing, no name before the end, nothing twice."""

from __future__ import annotations

import json

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from pcg.errors import PcgError
from pcg.listening.loudness import read_wav
from pcg.listening.routes import mount
from pcg.listening.store import Refused, Store, Unknown
from tests.listening.conftest import SECRET_NAMES, answer_for, listen

LISTENER = "ab" * 16


def walk(desk, clock, study, listener=LISTENER):
    """Take the whole test; returns every state seen."""
    states = [desk.join(study.id, listener, True)]
    while states[-1]["state"] == "question":
        question = states[-1]
        heard = listen(desk, clock, question)
        result = desk.vote(study.id, listener, question["trial"], answer_for(question), heard)
        states.append(result["next"])
    return states


@pytest.mark.parametrize("kind", ["ab", "abx", "mos", "mushra"])
def test_whole_session_of_every_kind(kind, make, desk, clock):
    study = make(kind, items=3, systems=3, practice=1)
    states = walk(desk, clock, study)
    assert states[-1]["state"] == "finished"
    assert len(states) - 1 == states[0]["total"] == desk.store.vote_count(study.id)
    assert states[0]["practice"] and not states[-2]["practice"]
    assert not any(name in json.dumps(states[:-1]) for name in SECRET_NAMES)
    named = {name for row in states[-1]["reveal"] for name in row["names"].values()}
    assert named >= set(study.systems) - {study.anchor}


def test_consent_is_needed(make, desk):
    study = make()
    with pytest.raises(Refused, match="consent"):
        desk.join(study.id, LISTENER, False)


@pytest.mark.parametrize("missing", ["fetch", "heard", "one clip", "time"])
def test_a_vote_before_listening_is_refused(missing, make, desk, clock):
    study = make()
    question = desk.join(study.id, LISTENER, True)
    heard = {slot["label"]: slot["seconds"] for slot in question["slots"]}
    if missing != "fetch":
        for slot in question["slots"]:
            desk.clip(slot["clip"])
    clock.now += 0.2 if missing == "time" else 10
    if missing == "heard":
        heard = {}
    if missing == "one clip":
        heard["B"] = 0.1
    with pytest.raises(Refused, match=r"[Ll]isten"):
        desk.vote(study.id, LISTENER, question["trial"], {"choice": "A"}, heard)
    assert desk.store.vote_count(study.id) == 0


def test_nan_is_not_hearing(make, desk, clock):
    study = make()
    question = desk.join(study.id, LISTENER, True)
    heard = dict.fromkeys(listen(desk, clock, question), float("nan"))
    with pytest.raises(Refused):
        desk.vote(study.id, LISTENER, 0, {"choice": "A"}, heard)


def test_a_later_question_cannot_be_answered_first(make, desk, clock):
    study = make()
    question = desk.join(study.id, LISTENER, True)
    heard = listen(desk, clock, question)
    with pytest.raises(Refused):
        desk.vote(study.id, LISTENER, 1, {"choice": "A"}, heard)
    with pytest.raises(Unknown):
        desk.vote(study.id, LISTENER, 99, {"choice": "A"}, heard)


def test_repeats_change_nothing_and_another_answer_is_refused(make, desk, clock):
    study = make()
    question = desk.join(study.id, LISTENER, True)
    heard = listen(desk, clock, question)
    first = desk.vote(study.id, LISTENER, 0, {"choice": "A"}, heard)
    again = desk.vote(study.id, LISTENER, 0, {"choice": "A"}, heard)
    assert (first["new"], again["new"]) == (True, False)
    assert first["next"] == again["next"]
    with pytest.raises(Refused, match="already answered"):
        desk.vote(study.id, LISTENER, 0, {"choice": "B"}, heard)
    assert desk.store.vote_count(study.id) == 1


def test_a_session_goes_on_after_a_restart(make, desk, clock, tmp_path):
    study = make()
    question = desk.join(study.id, LISTENER, True)
    following = desk.vote(study.id, LISTENER, 0, {"choice": "A"}, listen(desk, clock, question))[
        "next"
    ]
    from pcg.listening.desk import Desk

    other = Desk(tmp_path / "root", clock)
    assert other.state(study.id, LISTENER) == following
    assert other.join(study.id, LISTENER, True) == following
    other.close()


def test_numbers_are_dealt_once(make, desk):
    study = make()
    listeners = [f"{k:032x}" for k in range(20)]
    assert [desk.store.join(study.id, name) for name in listeners * 2] == list(range(20)) * 2


def test_nothing_personal_is_stored(make, desk, clock):
    walk(desk, clock, make())
    tables = ("listeners", "votes", "servings")
    queries = [f"SELECT name FROM pragma_table_info('{table}')" for table in tables]
    columns = [row["name"] for query in queries for row in desk.store.rows(query)]
    assert not {"ip", "address", "agent", "email", "name"} & set(columns)


@pytest.mark.parametrize("kind", ["abx", "mushra"])
def test_copies_cannot_be_told_by_size_length_or_bytes(kind, make, desk):
    study = make(kind, systems=2)
    question = desk.join(study.id, LISTENER, True)
    clips = [desk.clip(slot["clip"]) for slot in question["slots"]]
    assert len({len(clip) for clip in clips}) == 1
    assert len(set(clips)) == len(clips)
    assert len({(slot["seconds"], slot["required"]) for slot in question["slots"]}) == 1
    assert desk.clip(question["slots"][0]["clip"]) == clips[0]
    assert abs(read_wav(clips[0])[0].astype(int)).max() > 100


@pytest.mark.parametrize(
    ("kind", "bad"),
    [("ab", {"choice": "C"}), ("ab", {"choice": "tie"}), ("ab", {}), ("abx", {"choice": "X"}),
     ("mos", {"score": 3.3}), ("mos", {"score": 6}), ("mos", {"score": True}),
     ("mos", {"score": "4"}),
     ("mos", {"score": float("nan")}), ("mushra", {"scores": {"A": 50}}),
     ("mushra", {"scores": {"A": 50, "B": 50, "C": 101}})],
)  # fmt: skip
def test_unfit_answers_are_refused_with_a_sentence(kind, bad, make, desk, clock):
    study = make(kind)
    question = desk.join(study.id, LISTENER, True)
    heard = listen(desk, clock, question)
    with pytest.raises(PcgError, match=r"answer|score"):
        desk.vote(study.id, LISTENER, 0, bad, heard)


def test_http_traffic_never_names_a_system(make, desk, clock):
    study = make("ab", items=3, systems=3, practice=1)
    app = FastAPI()

    @app.get("/{anything:path}")
    def catch_all(anything: str) -> str:
        return "the host page"

    mount(app, desk)
    client, seen = TestClient(app), []

    def call(method, url, **kw):
        answer = client.request(method, url, **kw)
        seen.append(url + str(dict(answer.headers)) + answer.content.decode("latin1"))
        return answer

    base = f"/listening/studies/{study.id}"
    call("GET", f"/listening/take/{study.id}")
    call("GET", base)
    state = call("POST", base + "/join", json={"listener": LISTENER, "consent": True}).json()
    call(
        "POST",
        base + "/check",
        json={"listener": LISTENER, "device": "headphones", "correct": 3, "of": 3},
    )
    total = state["total"]
    for _ in range(total):
        vote = {
            "listener": LISTENER,
            "trial": state["trial"],
            "answer": {"choice": "A"},
            "heard": {"A": 9, "B": 9},
        }
        assert call("POST", base + "/votes", json=vote).status_code == 409
        for slot in state["slots"]:
            clip = call("GET", "/listening/clips/" + slot["clip"])
            assert (
                clip.headers["content-type"] == "audio/wav"
                and clip.headers["cache-control"] == "no-store, no-transform"
            )
        clock.now += 10
        answer = call("POST", base + "/votes", json=vote)
        assert answer.status_code == 200
        state = answer.json()["next"]
    assert state["state"] == "finished"
    before_end = "".join(seen[:-1])
    assert len(seen) > 20 and not any(name in before_end for name in SECRET_NAMES)
    assert SECRET_NAMES[0] in seen[-1]


@pytest.mark.parametrize(
    "path", ["/listening/studies/nope", "/listening/clips/nope", "/listening/take/nope"]
)
def test_unknown_things_are_404(path, desk):
    app = FastAPI()
    mount(app, desk)
    assert TestClient(app).get(path).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"listener": "x", "consent": True},
        {"listener": LISTENER, "consent": True, "name": "Eve"},
    ],
)
def test_ill_formed_requests_are_422(body, make, desk):
    app = FastAPI()
    mount(app, desk)
    assert (
        TestClient(app).post(f"/listening/studies/{make().id}/join", json=body).status_code == 422
    )


def test_reveal_each_and_never(make, desk, clock):
    study = make(items=2, reveal="each")
    question = desk.join(study.id, LISTENER, True)
    result = desk.vote(study.id, LISTENER, 0, {"choice": "A"}, listen(desk, clock, question))
    assert set(result["names"].values()) == set(SECRET_NAMES[:2])
    study = make(items=1, reveal="never")
    assert walk(desk, clock, study)[-1]["reveal"] is None


def test_closed_tests_take_no_one_and_owner_keys_are_checked(make, desk, tmp_path):
    study = make()
    desk.store.set_open(study.id, False)
    with pytest.raises(Refused, match="closed"):
        desk.join(study.id, LISTENER, True)
    assert not desk.is_owner(study.id, "guess")


def test_two_stores_on_one_file_share_it(tmp_path):
    first, second = Store(tmp_path), Store(tmp_path)
    first.add_study("abcd", {"x": 1}, "owner")
    second.add_study("abcd", {"x": 1}, "owner")
    assert second.join("abcd", "a") == 0 and first.join("abcd", "b") == 1
    with pytest.raises(Refused):
        second.add_study("abcd", {"x": 2}, "owner")
    first.close()
    second.close()
