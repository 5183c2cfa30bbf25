"""Gives a container without network one local port: 127.0.0.1:PORT leads to a mounted unix socket.

In a relay (sandboxes/relay.py) a port on all addresses leads to one TCP address: --listen 0.0.0.0 --to HOST:PORT.

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


Target = Path | tuple[str, int]
"""A unix socket, or host and port."""


async def _reach(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(target, Path):
        return await asyncio.open_unix_connection(target)
    return await asyncio.open_connection(*target)


async def _relay(target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    ends = [writer]
    try:
        far_reader, far_writer = await asyncio.wait_for(_reach(target), CONNECT_S)
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


async def listen(port: int, target: Target, address: str = "127.0.0.1") -> asyncio.Server:
    """A server on `address`:`port` (0: a free one) that relays each connection to `target`."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _relay(target, reader, writer)

    return await asyncio.start_server(relay, address, port, backlog=256)


async def _serve(port: int, target: Target, address: str) -> None:
    server = await listen(port, target, address)
    print(json.dumps({"ready": True, "port": server.sockets[0].getsockname()[1]}), flush=True)
    async with server:
        await server.serve_forever()


def main(argv: Sequence[str] | None = None) -> None:
    """Relay until killed."""
    parser = argparse.ArgumentParser(description="Relay 127.0.0.1:PORT to a unix socket.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--listen", default="127.0.0.1")
    far = parser.add_mutually_exclusive_group(required=True)
    far.add_argument("--socket", type=Path)
    far.add_argument("--to", type=_host_and_port)
    options = parser.parse_args(argv)
    asyncio.run(_serve(options.port, options.socket or options.to, options.listen))


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    main()
