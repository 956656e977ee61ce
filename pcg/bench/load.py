"""`python -m pcg bench load`: many visitors at once against one page, on this machine only.

Each visitor is a thread with its own client that says, compares, sweeps, swaps, asks for groups,
cancels, reloads and uploads rubbish. Counted are results, clear refusals (one sentence) and
failures (anything else). Cross-talk is looked for by repetition: the same words and seed must give
the same tokens whoever else is speaking.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pcg.errors import PcgError

WORDS = ("The boat came home.", "A red door opened.", "Rain fell all night.", "She called again.")
ACTIONS = ("say", "say", "say", "compare", "theta_sweep", "swap", "group", "group")
RUDE = ("cancel", "reload", "bad file", "bad text", "bad rule", "bad path")
RUBBISH = ("Traceback", 'File "', "<class", "NoneType", "object at 0x")


@dataclass
class Tally:
    """What happened, by action; shared by the visitors."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    sentences: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    spoken: dict[tuple[str, int, str], list[int]] = field(default_factory=dict)
    crosstalk: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, action: str, outcome: str, took: float, words: str = "") -> None:
        """Count one request: ok, refused, cancelled, late (no answer in time) or failed."""
        with self.lock:
            self.outcomes[f"{action}: {outcome}"] += 1
            self.outcomes[outcome] += 1
            self.seconds[action].append(took)
            if outcome == "refused":
                self.sentences[words[:90]] += 1
            if outcome == "failed":
                self.failures.append(f"{action}: {words[:300]}")

    def compare_spoken(self, key: tuple[str, int, str], codes: list[int]) -> None:
        """The same request must always give the same codes."""
        with self.lock:
            if self.spoken.setdefault(key, codes) != codes:
                self.crosstalk += 1


def is_sentence(words: str) -> bool:
    """Whether an error is one clear sentence rather than a trace of the program's insides."""
    return 0 < len(words) < 400 and not any(sign in words for sign in RUBBISH)


def check_address(url: str) -> str:
    """Only this machine is ever loaded."""
    if urlsplit(url).hostname not in ("127.0.0.1", "localhost", "::1"):
        raise PcgError("Load is only put on a server of this machine: 127.0.0.1 or localhost.")
    return url.rstrip("/")


@dataclass(frozen=True)
class StartUp:
    """Seconds from the command to the first answered page: by the clock, and of computing.

    The second (None where the system does not tell) is what an idle core would take.
    """

    wall: float
    cpu: float | None


def cpu_seconds(pid: int) -> float | None:
    """Seconds of computing that a process has used so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def served(
    environ: dict[str, str] | None = None, wait: float = 400.0
) -> Iterator[tuple[str, StartUp]]:
    """Start `app.py` on a free port; yields (address, what that took), then ends it."""
    from pcg.settings import ROOT

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = os.environ | {"PCG_SERVER_PORT": str(port), "PCG_SERVER_HOST": "127.0.0.1"}
    env |= {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"} | (environ or {})
    with tempfile.TemporaryFile() as log:
        began = time.monotonic()
        server = subprocess.Popen(
            [sys.executable, "app.py"], cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            url = f"http://127.0.0.1:{port}"
            while not _answers(url):
                if server.poll() is not None or time.monotonic() - began > wait:
                    log.seek(0)
                    tail = log.read().decode(errors="replace")[-2000:]
                    raise PcgError(f"The page did not start within {wait:.0f} s: {tail}")
                time.sleep(0.1)
            yield url, StartUp(time.monotonic() - began, cpu_seconds(server.pid))
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url + "/", timeout=30) as reply:
            return reply.status == 200 and b"gradio_config" in reply.read()
    except OSError:
        return False


def health(url: str) -> dict[str, Any]:
    """The report of `/healthz`."""
    with urllib.request.urlopen(url + "/healthz", timeout=10) as reply:
        return dict(json.load(reply))


class VisitorLoop:
    """One visitor: a client and a random habit, reproducible by its number."""

    def __init__(self, url: str, number: int, tally: Tally) -> None:
        self.url, self.number, self.tally = url, number, tally
        self.random = random.Random(number)
        self.client: Any = None
        self.codes: list[int] = []

    def run(self, until: float) -> None:
        """Act until the clock says stop."""
        while time.monotonic() < until:
            rude = self.random.random() < 0.3
            action = self.random.choice(RUDE if rude else ACTIONS)
            began = time.monotonic()
            try:
                outcome, words = self.act(action), ""
            except Exception as error:
                words = str(error)
                outcome = "refused" if is_sentence(words) else "failed"
                outcome = "late" if words == "timed out" else outcome
                words = f"{type(error).__name__}: {words}" if outcome == "failed" else words
            self.tally.add(action, outcome, time.monotonic() - began, words)
            time.sleep(self.random.uniform(0.1, 1.5))

    def act(self, action: str) -> str:
        """Do one thing; returns ok or cancelled, raises what the server says."""
        from gradio_client import Client

        if self.client is None or action == "reload":
            self.client = Client(self.url, verbose=False, httpx_kwargs={"timeout": 300})
        text, seed = self.random.choice(WORDS), self.random.randrange(3)
        if action == "say":
            rule = self.random.choice(("sd", "pcg"))
            reply = self.client.predict(text=text, rule=rule, seed=seed, api_name="/say")
            self.codes = reply["codes"]
            self.tally.compare_spoken((text, seed, rule), self.codes)
        elif action == "compare":
            self.client.predict(text=text, rules="sd,pcg", seed=seed, api_name="/compare")
        elif action == "theta_sweep":
            self.client.predict(text=text, seed=seed, api_name="/theta_sweep")
        elif action == "swap":
            self.client.predict(codes=self.codes or [1, 2, 3], api_name="/swap")
        elif action == "group":
            self.client.predict(token=self.random.randrange(4000), api_name="/group")
        elif action == "cancel":
            job = self.client.submit(text=text * 4, rule="target", seed=seed, api_name="/say")
            time.sleep(self.random.uniform(0.1, 1.0))
            job.cancel()
            return "cancelled"
        elif action == "bad text":
            self.client.predict(text="x" * 100_000, api_name="/say")
        elif action == "bad rule":
            self.client.predict(text=text, rule="../../etc/passwd", api_name="/say")
        elif action == "bad path":
            return _refused(f"{self.url}/gradio_api/file=/etc/passwd")
        elif action == "bad file":
            return self._bad_file()
        return "ok"

    def _bad_file(self) -> str:
        edge = b"----pcg"
        body = b"--" + edge + b'\r\nContent-Disposition: form-data; name="files"; '
        body += b'filename="../../x.wav"\r\n\r\n' + self.random.randbytes(2000)
        body += b"\r\n--" + edge + b"--\r\n"
        kind = {"Content-Type": f"multipart/form-data; boundary={edge.decode()}"}
        request = urllib.request.Request(f"{self.url}/gradio_api/upload", body, kind)
        with urllib.request.urlopen(request, timeout=30) as reply:
            stored = json.load(reply)[0]
        if ".." in stored or Path(stored).parent.parent.name == "":
            raise RuntimeError("Traceback: an upload left its folder")
        return "ok"


def _refused(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=30):
            raise RuntimeError("Traceback: a file outside was served")
    except urllib.error.HTTPError as error:
        if error.code >= 500:
            raise RuntimeError(f"Traceback: status {error.code}") from error
        return "ok"


def load(url: str, visitors: int, seconds: float) -> dict[str, Any]:
    """Put the load on `url`; returns counts, latencies, memory and cross-talk as plain values."""
    url, tally = check_address(url), Tally()
    _warm(url)
    memory = [health(url)["resident_mb"]]
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=VisitorLoop(url, n, tally).run, args=(until,), daemon=True)
        for n in range(visitors)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(2.0)
        with contextlib.suppress(OSError):
            memory.append(health(url)["resident_mb"])
    return _report(tally, memory, visitors, seconds, health(url))


def _warm(url: str) -> None:
    """One of each kind of request: models that are loaded lazily do not count as growth."""
    visitor = VisitorLoop(url, 0, Tally())
    for action in dict.fromkeys(ACTIONS):
        visitor.act(action)


def _report(
    tally: Tally, memory: list[float], visitors: int, seconds: float, last: dict[str, Any]
) -> dict[str, Any]:
    def quantile(values: list[float], share: float) -> float:
        return round(sorted(values)[min(len(values) - 1, int(share * len(values)))], 2)

    third = max(1, len(memory) // 3)
    return {
        "visitors": visitors,
        "seconds": seconds,
        "requests": sum(len(values) for values in tally.seconds.values()),
        "outcomes": dict(sorted(tally.outcomes.items())),
        "latency": {
            action: {"n": len(v), "p50": quantile(v, 0.5), "p95": quantile(v, 0.95)}
            for action, v in sorted(tally.seconds.items())
        },
        "sentences": dict(tally.sentences.most_common(12)),
        "failures": tally.failures[:20],
        "repeated": len(tally.spoken),
        "crosstalk": tally.crosstalk,
        "memory_mb": {
            "start": memory[0],
            "first_third": round(sum(memory[:third]) / third, 1),
            "last_third": round(sum(memory[-third:]) / third, 1),
            "peak": max(memory),
            "end": last["resident_mb"],
        },
        "active_at_end": last["active"],
        "cores": os.cpu_count(),
        "load_average": [round(value, 1) for value in os.getloadavg()],
    }


def add_parser(subparsers: Any) -> None:
    """Add `load` to `bench`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "load", help="many visitors against one page", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--url", help="a page on this machine (default: start one)")
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--out", type=Path, help="store the figures here")
    parser.add_argument("--json", action="store_true", help="print one last line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the sub-command; 1 when anything failed or was mixed up."""
    if not 1 <= args.visitors <= 200 or not 1 <= args.seconds <= 3600:
        raise PcgError("Load takes 1 to 200 visitors and 1 to 3600 seconds.")
    if args.url:
        report = load(args.url, args.visitors, args.seconds)
    else:
        with served() as (url, start_up):
            report = load(url, args.visitors, args.seconds)
        report["start_up_seconds"] = {"wall": start_up.wall, "cpu": start_up.cpu}
    print(f"{report['requests']} requests by {args.visitors} visitors: {report['outcomes']}")
    print(f"memory {report['memory_mb']}, cross-talk {report['crosstalk']}")
    text = json.dumps(report, ensure_ascii=False)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if args.json:
        print(text)
    return int(bool(report["failures"] or report["crosstalk"]))
