"""The only name server a trial has: it knows no name and writes down which were asked for.

Run inside a container without network, by its own python3, as a user of its own, so that nothing else in there
can stop it or change what it wrote. Each new name is one JSON line on standard output (the container's log):

    {"name": "example.org", "type": 1, "at": 1790000000.0}

Every question is answered at once with "no such name", so callers fail fast. After MAX_NAMES different questions
the rest are answered and no longer written down. What is never asked for by name is not seen here: a connection
to a literal address just finds no route.
"""

from __future__ import annotations

import json
import socket
import struct
import time

MAX_NAMES = 1000
PORT = 53
_NO_SUCH_NAME = 3
_HEADER_BYTES = 12


def question(packet: bytes) -> tuple[str, int, int]:
    """Name, type and end of the one question in a DNS packet (RFC 1035, 4.1). Raises ValueError for anything else."""
    if len(packet) < _HEADER_BYTES or packet[2] & 0xF8 or struct.unpack_from(">H", packet, 4)[0] != 1:
        raise ValueError("no plain question")
    labels, at = [], _HEADER_BYTES
    while at < len(packet) and packet[at]:
        length = packet[at]
        if length > 63 or at + 1 + length >= len(packet):
            raise ValueError("a label runs out of the packet")
        labels.append(packet[at + 1 : at + 1 + length].decode("ascii", "backslashreplace"))
        at += 1 + length
    if at + 5 > len(packet):
        raise ValueError("the question is cut off")
    return ".".join(labels), struct.unpack_from(">H", packet, at + 1)[0], at + 5


def answer(packet: bytes, end: int) -> bytes:
    """The same question back as an authoritative "no such name"."""
    flags = 0x8580 | (struct.unpack_from(">H", packet, 2)[0] & 0x0100) | _NO_SUCH_NAME
    return packet[:2] + struct.pack(">HHHHH", flags, 1, 0, 0, 0) + packet[_HEADER_BYTES:end]


def names_in(log: bytes) -> tuple[str, ...]:
    """The names in the sink's output, each once; a line cut off by the log's cap is left out."""
    names: dict[str, None] = {}
    for line in log.splitlines():
        try:
            names.setdefault(str(json.loads(line)["name"]))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(names)


def serve(server: socket.socket) -> None:
    """Answer for ever."""
    seen: set[tuple[str, int]] = set()
    while True:
        try:
            packet, caller = server.recvfrom(4096)
            name, kind, end = question(packet)
            server.sendto(answer(packet, end), caller)
        except (ValueError, OSError):
            continue
        asked = (name.lower(), kind)
        if asked not in seen and len(seen) < MAX_NAMES:
            seen.add(asked)
            print(json.dumps({"name": asked[0], "type": kind, "at": round(time.time(), 3)}), flush=True)


if __name__ == "__main__":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", PORT))
        serve(listening)
