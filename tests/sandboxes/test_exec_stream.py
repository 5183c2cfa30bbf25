"""The engine's stream of a command's output, without an engine."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sandboxes.bounded_output import BoundedOutput
from sandboxes.exec_stream import _Stream


def test_output_that_trails_behind_the_end_of_its_command_is_kept(tmp_path: Path) -> None:
    """An engine under load may send the last words after it says that the command has ended."""
    ours, theirs = socket.socketpair()

    def late() -> None:
        time.sleep(0.15)
        theirs.sendall(struct.pack(">B3xL", 1, 7) + b"answer\n")
        theirs.close()

    ended = SimpleNamespace(exec_inspect=lambda _id: {"Running": False, "ExitCode": 0})
    hijacked = SimpleNamespace(
        _sock=ours, close=ours.close, _response=SimpleNamespace(raw=SimpleNamespace(_fp=SimpleNamespace(fp=object())))
    )
    out, err = BoundedOutput(tmp_path / "out"), BoundedOutput(tmp_path / "err")
    stream = _Stream(cast(Any, SimpleNamespace(api=ended)), "x", cast(Any, hijacked), (out, err), None)
    threading.Thread(target=late, daemon=True).start()
    assert stream.follow(time.monotonic() + 30, lambda: False).exit_code == 0
    stream.leave()
    out.close()
    assert (tmp_path / "out").read_bytes() == b"answer\n"
