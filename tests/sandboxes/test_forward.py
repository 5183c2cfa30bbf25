"""The forwarder gives a port inside a container that leads to a mounted socket."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

from sandboxes import forward


def test_bytes_pass_both_ways_and_an_end_is_passed_on(tmp_path: Path) -> None:
    async def reverse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read())[::-1])  # answers only after the caller's end of stream
        writer.write_eof()
        writer.close()

    async def run() -> bytes:
        far = await asyncio.start_unix_server(reverse, tmp_path / "s")
        near = await forward.listen(0, tmp_path / "s")
        reader, writer = await asyncio.open_connection(*near.sockets[0].getsockname())
        writer.write(b"x" * 3_000_000 + b"y")
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        near.close()
        far.close()
        return answer

    assert asyncio.run(run()) == b"y" + b"x" * 3_000_000


def test_it_runs_alone_and_closes_at_once_when_nothing_is_behind_it(tmp_path: Path) -> None:
    argv = [sys.executable, "-I", forward.__file__, "--port", "0", "--socket", str(tmp_path / "none")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = json.loads(process.stdout.readline())["port"]
            with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
                assert raw.recv(1) == b""
        finally:
            process.terminate()
