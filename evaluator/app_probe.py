"""Runs inside an application container: starts the application's own server, and finds where it answers.

With nothing but the standard library of the container's python3:

    python3 -I app_probe.py run --log /tmp/app.log --ended /tmp/app.ended -- npm run start
    python3 -I app_probe.py await --deadline 60 --port 3000 --path / --ended /tmp/app.ended
    python3 -I app_probe.py await --deadline 60 --port 8080 --path / --log /tmp/app.log --serve static_server.py …

`await` does not read the server's output, which may be coloured, silent or wrong: it looks at the sockets
that listen in this network namespace, where nothing else runs, and asks each for a page. It prints one
line of JSON, an `Outcome`. With `--serve` it first leaves that Python program running: one interpreter to
start instead of two.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

POLL_S = 0.03
SLOWEST_POLL_S = 0.5
ASK_S = 10.0
GRACE_S = 3.0
"""How long a server that answers with something else than a page is held back for one with a page."""
MAX_REDIRECTS = 5
HOST_NAMES = ("localhost", "127.0.0.1")
"""Names asked for, the second where a server refuses the first."""
REFUSED_HOST = re.compile(rb"Blocked request\. This host|Invalid Host(?: |/Origin )header", re.IGNORECASE)
"""What Vite's and webpack's servers answer to a name they do not know."""
SNIFFED_BYTES = 2048
LISTENING = "0A"


class Listener(NamedTuple):
    """A listening socket: `127.0.0.1` or `::1`, whichever reaches it, and its port."""

    host: str
    port: int


class Outcome(NamedTuple):
    """How waiting ended: `ready`, `exited` (the start command did) or `timeout`."""

    outcome: str
    host: str = ""
    port: int = 0
    listening: Sequence[int] = ()
    last: str = ""
    """What the last answer that was no page looked like."""
    waited_s: float = 0.0
    name: str = HOST_NAMES[0]
    """The host name it was asked for."""
    refused_host: bool = False
    """It refuses every name we may ask for."""


def listeners(tables: Sequence[Path] = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))) -> list[Listener]:
    """TCP sockets that listen here, from the kernel's tables (man 5 proc)."""
    found = []
    for table in tables:
        if not table.exists():
            continue
        for line in table.read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING:
                address, _, port = fields[1].partition(":")
                found.append(Listener(_reachable_at(address), int(port, 16)))
    return sorted(set(found))


def _reachable_at(address: str) -> str:
    """IPv4 reaches IPv4 sockets, mapped addresses and the wildcard of IPv6; only the rest needs ::1."""
    if len(address) == 8 or address[16:24] == "FFFF0000" or not address.strip("0"):
        return "127.0.0.1"
    return "::1"


class Answer(NamedTuple):
    """What came of asking one listener: 200 with something in it, whether that is a page, and it in words."""

    good: bool
    page: bool
    words: str
    name: str = HOST_NAMES[0]
    refused_host: bool = False


def ask(listener: Listener, path: str) -> Answer:
    """GETs `path`, following redirects, by the first host name that is not refused: development servers know
    only some."""
    answer = Answer(False, False, "")
    for name in HOST_NAMES:
        answer = _ask_as(name, listener, path)
        if not answer.refused_host:
            break
    return answer


def _ask_as(name: str, listener: Listener, path: str) -> Answer:
    for _ in range(MAX_REDIRECTS):
        connection = http.client.HTTPConnection(listener.host, listener.port, timeout=ASK_S)
        try:
            headers = {"Host": f"{name}:{listener.port}", "Accept": "text/html,*/*;q=0.8"}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            location = answer.headers.get("Location")
            if location and 300 <= answer.status < 400:
                told = urlsplit(urljoin(f"http://{name}:{listener.port}{path}", location))
                path = (told.path or "/") + (f"?{told.query}" if told.query else "")
                continue
            return _read(answer, name, listener.port)
        except (OSError, ValueError, http.client.HTTPException) as error:
            return Answer(False, False, f"port {listener.port}: {type(error).__name__}: {error}")
        finally:
            connection.close()
    return Answer(False, False, f"port {listener.port}: more than {MAX_REDIRECTS} redirects")


def _read(answer: http.client.HTTPResponse, name: str, port: int) -> Answer:
    kind = answer.headers.get("Content-Type", "")
    good = answer.status == 200
    some = answer.read(1 if good else SNIFFED_BYTES)
    words = f"port {port}: HTTP {answer.status} {kind or 'without a type'}" + ("" if some else ", empty")
    if not good and REFUSED_HOST.search(some):
        return Answer(False, False, f"{words}, it refuses the host name {name}", name, True)
    return Answer(good and bool(some), good and bool(some) and "html" in kind.lower(), words, name)


class Asking:
    """Asks listeners at the same time, each again and again: one that never answers holds up no other."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._busy: set[Listener] = set()
        self._lock = threading.Lock()  # guards _busy and answers, which every asking thread writes
        self.answers: dict[Listener, Answer] = {}

    def again(self, found: Sequence[Listener]) -> None:
        """Starts asking those of `found` that are not being asked."""
        for listener in found:
            with self._lock:
                if listener in self._busy:
                    continue
                self._busy.add(listener)
            threading.Thread(target=self._ask, args=(listener,), daemon=True).start()

    def _ask(self, listener: Listener) -> None:
        answer = ask(listener, self._path)
        with self._lock:
            self.answers[listener] = answer
            self._busy.discard(listener)

    def told(self) -> dict[Listener, Answer]:
        """The newest answers so far."""
        with self._lock:
            return dict(self.answers)


def wait(deadline_s: float, port: int, path: str, ended: Path | None) -> Outcome:
    """Until a page is served (the suggested port first), the start command has ended, or the deadline."""
    began = time.monotonic()
    asking, last, good_since, pause_s = Asking(path), "", None, POLL_S
    while (waited := time.monotonic() - began) < deadline_s:
        found = listeners()
        ports = sorted({listener.port for listener in found})
        asking.again(found)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.2, SLOWEST_POLL_S)
        told = sorted(asking.told().items(), key=lambda pair: (pair[0].port != port, pair[0]))
        last = told[0][1].words if told else last
        pages = [listener for listener, answer in told if answer.page]
        others = [listener for listener, answer in told if answer.good]
        if others and good_since is None:
            good_since = time.monotonic()
        if not pages and good_since and time.monotonic() - good_since > GRACE_S:
            pages = others
        if pages:
            chosen = dict(told)[pages[0]]
            return Outcome("ready", *pages[0], ports, chosen.words, time.monotonic() - began, chosen.name)
        if not found and ended and ended.exists():
            return Outcome("exited", last=ended.read_text(encoding="ascii"), waited_s=waited)
    refused = any(answer.refused_host for answer in asking.told().values())
    ports = sorted({each.port for each in listeners()})
    return Outcome("timeout", "", 0, ports, last, time.monotonic() - began, refused_host=refused)


def run(argv: Sequence[str], log: Path, ended: Path) -> int:
    """Runs the start command to its end, output to `log`, and leaves its exit status in `ended`."""
    with log.open("wb") as output:
        try:
            status = subprocess.call(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        except OSError as error:
            output.write(f"{argv[0]}: {error}\n".encode())
            status = 127
    part = ended.with_suffix(".part")
    part.write_text(f"exit status {status}", encoding="ascii")
    part.replace(ended)
    return status


def detached(log: Path) -> bool:
    """Forks. True in the child, which outlives us: a session of its own, nothing to read, output to `log`."""
    if os.fork():
        return False
    os.setsid()
    with Path(os.devnull).open("rb") as nothing, log.open("wb") as output:
        for ours, taken in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(ours.fileno(), taken)
    return True


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Start an application's server, or find where it answers.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    start = verbs.add_parser("run")
    start.add_argument("--log", type=Path, required=True)
    start.add_argument("--ended", type=Path, required=True)
    start.add_argument("command", nargs="+")
    await_ = verbs.add_parser("await")
    await_.add_argument("--deadline", type=float, required=True)
    await_.add_argument("--port", type=int, required=True)
    await_.add_argument("--path", default="/")
    await_.add_argument("--ended", type=Path)
    await_.add_argument("--log", type=Path)
    await_.add_argument("--serve", nargs=argparse.REMAINDER, default=[])
    options = parser.parse_args(argv)
    if options.verb == "run":
        return run(options.command, options.log, options.ended)
    if options.serve and detached(options.log):
        sys.argv = options.serve
        runpy.run_path(options.serve[0], run_name="__main__")
        return 0
    outcome = wait(options.deadline, options.port, options.path, options.ended)
    print(json.dumps(outcome._asdict()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
