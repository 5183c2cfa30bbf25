"""Gives a container without network one local port: 127.0.0.1:PORT leads to a mounted unix socket.

Run inside the container by its own python3 with nothing but the standard library:

    python3 -I forward.py --port 4873 --socket /mirror/npm.sock

Bytes pass unchanged in both directions and an end of stream is passed on as one, so that HTTP with
`Connection: close`, streams and half-closed connections work. Prints {"ready": true, "port": N} once it
listens; while nothing listens behind the socket a connection is closed at once instead of left hanging.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

CHUNK_BYTES = 64 * 1024
CONNECT_S = 10.0


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copies until the end of `source`, then ends `sink`'s direction only."""
    while chunk := await source.read(CHUNK_BYTES):
        sink.write(chunk)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()


async def _relay(socket: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    ends = [writer]
    try:
        far_reader, far_writer = await asyncio.wait_for(asyncio.open_unix_connection(socket), CONNECT_S)
        ends.append(far_writer)
        async with asyncio.TaskGroup() as both:  # an error of one direction ends the other
            both.create_task(_pump(reader, far_writer))
            both.create_task(_pump(far_reader, writer))
    except* (OSError, TimeoutError):
        pass  # one end is gone; closing the other says so
    finally:
        for end in ends:
            end.close()
            with contextlib.suppress(OSError):
                await end.wait_closed()


async def listen(port: int, socket: Path) -> asyncio.Server:
    """A server on 127.0.0.1:`port` (0: a free one) that relays each connection to `socket`."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _relay(socket, reader, writer)

    return await asyncio.start_server(relay, "127.0.0.1", port, backlog=256)


async def _serve(port: int, socket: Path) -> None:
    server = await listen(port, socket)
    print(json.dumps({"ready": True, "port": server.sockets[0].getsockname()[1]}), flush=True)
    async with server:
        await server.serve_forever()


def main(argv: Sequence[str] | None = None) -> None:
    """Relay until killed."""
    parser = argparse.ArgumentParser(description="Relay 127.0.0.1:PORT to a unix socket.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    options = parser.parse_args(argv)
    asyncio.run(_serve(options.port, options.socket))


if __name__ == "__main__":
    main()
