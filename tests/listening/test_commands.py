"""`python -m pcg listening ...` and tests made from a stored evaluation."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from pcg.__main__ import main
from pcg.errors import PcgError
from pcg.listening.desk import Desk
from pcg.listening.plan import plan
from pcg.listening.runs import is_run, recordings_of_run
from pcg.listening.sources import demo_recordings
from pcg.listening.study import load_study
from tests.listening.conftest import Clock
from tests.listening.test_report import gather


def write_recordings(folder: Path, systems: tuple[str, ...] = ("clean", "hiss", "worse")) -> None:
    folder.mkdir()
    for sound in demo_recordings(3, 0.5, systems=systems):
        soundfile.write(folder / f"{sound.item}__{sound.system}.wav", sound.audio, sound.rate)


def last_json(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_create_analyse_export(tmp_path, capsys):
    write_recordings(tmp_path / "wavs")
    made, root = tmp_path / "made", tmp_path / "root"
    where = ["--root", str(root)]
    create = [
        "listening",
        "create",
        str(tmp_path / "wavs"),
        str(made),
        "--kind",
        "ab",
        "--seed",
        "5",
    ]
    assert main([*create, "--json"]) == 0
    summary = last_json(capsys)
    assert summary["items"] == 2 and summary["questions"] == 7 and summary["seed"] == 5
    clock = Clock()
    desk = Desk(root, clock)
    study, _ = desk.add(made)
    gather(desk, clock, study, listeners=3, careless=False)
    desk.close()
    page = tmp_path / "report.html"
    assert main(["listening", "analyse", str(made), "--html", str(page), "--json", *where]) == 0
    report = last_json(capsys)
    assert report["votes"] == 18 and "<svg" in page.read_text()
    for kind in ("csv", "json"):
        out = tmp_path / f"votes.{kind}"
        options = ["--format", kind, "--out", str(out), "--practice", *where]
        assert main(["listening", "export", study.id, *options]) == 0
        assert study.systems[0] in out.read_text()
    capsys.readouterr()
    assert main(["listening", "remove", study.id, *where]) == 2
    assert main(["listening", "remove", study.id, "--yes", *where]) == 0
    assert main(["listening", "analyse", study.id, *where]) == 2
    assert not (root / "studies" / study.id).exists()


def test_mistakes_are_sentences(tmp_path, capsys):
    where = ["--root", str(tmp_path / "root")]
    assert main(["listening", "analyse", "nope", *where]) == 2
    assert main(["listening", "serve", *where]) == 2
    assert (
        main(["listening", "create", str(tmp_path / "no"), str(tmp_path / "x"), "--kind", "ab"])
        == 2
    )
    said = capsys.readouterr().err
    assert "Traceback" not in said and said.count("pcg: ") == 3


class Speaker:
    """Speaks tones; the arm decides the pitch and the seed the hash."""

    def __init__(self, options: object) -> None:
        self.changed = False

    def spoken(self, utterance, arm, seed):
        pitch = 200 + 10 * len(arm.name) + (3 if self.changed else 0)
        audio = 0.2 * np.sin(2 * np.pi * pitch * np.arange(8000) / 16000).astype(np.float32)
        sha = hashlib.sha256(f"{utterance.id}/{arm.name}/{seed}/{pitch}".encode()).hexdigest()[:16]
        return audio, [], {"codes_sha": sha}


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    pytest.importorskip("pcg.evaluation.runner")
    from pcg.evaluation.arms import Arm, Options, utterance_seed
    from pcg.evaluation.manifest import Utterance
    from pcg.evaluation.runner import Plan

    arms = (
        Arm("sd", "SD", rule="sd"),
        Arm("pcg", "PCG", rule="pcg"),
        Arm("swap", "s", kind="swap"),
    )
    texts = tuple(Utterance(f"u{k}", f"Text {k}.", voice="v") for k in range(4))
    stored = Plan("table1", Options(), arms, texts, {}, {})
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(stored.to_dict()))
    speaker, rows = Speaker(None), []
    for text in texts:
        for arm in arms[:2]:
            _, _, row = speaker.spoken(text, arm, utterance_seed(0, text.id))
            status = "failed" if (text.id, arm.name) == ("u1", "pcg") else "ok"
            rows.append({"key": f"{text.id}/{arm.name}", "status": status, **row})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_run_is_spoken_again_and_checked(run_folder):
    assert is_run(run_folder)
    found = recordings_of_run(run_folder, 3, make=Speaker)
    assert [(sound.item, sound.system) for sound in found] == [
        (item, system) for item in ("u0", "u2", "u3") for system in ("sd", "pcg")
    ]
    assert found[0].text == "Text 0."
    with pytest.raises(PcgError, match="ask for fewer"):
        recordings_of_run(run_folder, 4, make=Speaker)
    with pytest.raises(PcgError, match="it has sd, pcg"):
        recordings_of_run(run_folder, 1, arms=["ssd"], make=Speaker)


def test_another_take_is_refused(run_folder):
    def changed(options):
        speaker = Speaker(options)
        speaker.changed = True
        return speaker

    with pytest.raises(PcgError, match="not what the run spoke"):
        recordings_of_run(run_folder, 1, make=changed)


class TestPage:
    """The tab's own functions; the view is driven in `test_browser`."""

    @pytest.fixture(autouse=True)
    def _own_root(self, tmp_path, monkeypatch):
        pytest.importorskip("gradio")
        from pcg.ui import listen

        monkeypatch.setenv("PCG_LISTENING_DIR", str(tmp_path / "root"))
        listen.desk.cache_clear()
        self.listen = listen
        yield
        listen.desk().close()
        listen.desk.cache_clear()

    def runs(self, systems=("exact", "grouped")):
        from pcg.ui.visitor import Run

        return [
            Run(
                f"r{k}",
                s.system,
                "sd",
                {},
                np.float32(s.audio),
                s.rate,
                None,
                {},
                [],
                {"text": s.text},
            )
            for k, s in enumerate(demo_recordings(2, 0.5, systems=systems))
        ]

    def make(self, runs, source="Outputs of Compare", files=None, kind=None, reference=""):
        kind = kind or next(iter(self.listen.KINDS))
        visitor = SimpleNamespace(runs=runs)
        rules = ("My <test>", reference, "at the end", False, 0, 1, 3)
        return self.listen.make_test(visitor, source, files, kind, *rules, None)

    def test_compare_becomes_a_test_and_results_need_the_key(self, tmp_path):
        view, status, _, study_id, key, packed = self.make(self.runs())
        assert view == {"study": study_id} and f"listening/take/{study_id}" in status
        study = self.listen.desk().study(study_id)
        assert study.systems == ("exact", "grouped") and len(study.items) == 2
        assert "No test has" in self.listen.results(study_id, "guess", None)[0]
        assert "No test has" in self.listen.results("nothere", key, None)[0]
        assert "no votes yet" in self.listen.results(study_id, key, None)[0]
        clock = Clock()
        desk = Desk(self.listen.root(), clock)
        gather(desk, clock, study, listeners=3)
        desk.close()
        page, *files = self.listen.results(study_id, key, None)
        assert "<svg" in page and "My &lt;test&gt;" in page and "<test>" not in page
        assert [Path(file["value"]).suffix for file in files] == [".csv", ".json", ".json"]

        again = self.make([], "A packed test", [packed["value"]])
        assert again[3] != study_id and again[4] != key
        assert "No test has" in self.listen.results(study_id, again[4], None)[0]
        assert "no votes yet" in self.listen.results(again[3], again[4], None)[0]

    @pytest.mark.parametrize("runs", [0, 1])
    def test_too_few_outputs_are_a_sentence(self, runs):
        status = self.make(self.runs()[:runs])[1]
        assert "Let at least two rules" in status and "bad" in status

    def test_mushra_asks_for_its_reference(self):
        kind = "How close to a reference (MUSHRA)"
        assert "Name the reference" in self.make(self.runs(), kind=kind)[1]
        study = self.make(self.runs(), kind=kind, reference="exact")[3]
        assert self.listen.desk().study(study).anchor

    def test_uploads(self, tmp_path):
        write_recordings(tmp_path / "up", ("one", "two"))
        files = [str(path) for path in (tmp_path / "up").iterdir()]
        study = self.make([], "Recordings", files)[3]
        trials = plan(self.listen.desk().study(study), 0)
        assert len(trials) == 3 and load_study(self.listen.desk().folder(study))
