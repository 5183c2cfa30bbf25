"""A unix socket in front of the real engine that loses, delays or refuses what a test names; the engine never notices."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Fault = Literal["drop", "refuse", "hold"]
"""drop: the request is carried out and its answer lost; refuse: the connection ends before the request is passed on;
hold: the request waits until the rule is released."""
_REQUEST = re.compile(rb"(GET|HEAD|POST|PUT|DELETE) (\S+) HTTP/1\.1\r\n")
_CHUNK_BYTES = 65_536


@dataclass
class Rule:
    """Strikes the first `times` requests whose "METHOD path" matches; once `after` has struck, if that is given."""

    pattern: str
    fault: Fault
    times: int = 1
    after: Rule | None = None
    hit: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


class EngineProxy:
    """Listens on `path` while it is open. `cut` is the engine gone: every connection ends and none is accepted;
    `mend` is the engine back."""

    def __init__(self, path: Path, engine: str = "/var/run/docker.sock") -> None:
        self.path = path
        self.rules: list[Rule] = []
        self.requests: list[str] = []
        self._engine = engine
        self._lock = threading.Lock()  # guards rules, requests, _live
        self._live: set[socket.socket] = set()
        self._listening: socket.socket | None = None

    def __enter__(self) -> EngineProxy:
        self.mend()
        return self

    def __exit__(self, *exc: object) -> None:
        self.cut()

    def mend(self) -> None:
        self.path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self.path))
        listening.listen(128)
        self._listening = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def cut(self) -> None:
        if self._listening:
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            self._listening = None
        for rule in self.rules:
            rule.released.set()
        with self._lock:
            live = list(self._live)
        for end in live:
            _end(end)

    def add(self, pattern: str, fault: Fault, times: int = 1, after: Rule | None = None) -> Rule:
        rule = Rule(pattern, fault, times, after)
        with self._lock:
            self.rules.append(rule)
        return rule

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._engine)
                with self._lock:
                    self._live |= {near, far}
                lost = threading.Event()
                threading.Thread(target=self._requests_pass, args=(near, far, lost), daemon=True).start()
                threading.Thread(target=self._answers_pass, args=(far, near, lost), daemon=True).start()

    def _struck(self, request: str) -> Rule | None:
        with self._lock:
            self.requests.append(request)
            for rule in self.rules:
                armed = rule.after is None or rule.after.hit.is_set()
                if rule.times and armed and re.search(rule.pattern, request):
                    rule.times -= 1
                    return rule
        return None

    def _requests_pass(self, near: socket.socket, far: socket.socket, lost: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(_CHUNK_BYTES):
                found = _REQUEST.match(data)
                rule = self._struck(b" ".join(found.groups()).decode()) if found else None
                if rule and rule.fault == "refuse":
                    rule.hit.set()
                    break
                if rule and rule.fault == "hold":
                    rule.hit.set()
                    rule.released.wait()
                if rule and rule.fault == "drop":
                    lost.set()
                far.sendall(data)
                if rule and rule.fault == "drop":
                    rule.hit.set()
            else:
                far.shutdown(socket.SHUT_WR)  # the caller sent its last byte and may still read
                return
        _end(near)
        _end(far)

    def _answers_pass(self, far: socket.socket, near: socket.socket, lost: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := far.recv(_CHUNK_BYTES):
                if lost.is_set():
                    break
                near.sendall(data)
        _end(near)
        _end(far)
        with self._lock:
            self._live -= {near, far}


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
