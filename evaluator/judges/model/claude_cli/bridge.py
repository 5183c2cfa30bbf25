"""Runs inside the container as the command line's MCP server: passes lines on to the host's socket and back.

    python3 -I bridge.py /judge/tools.sock

Nothing but the standard library. Ends when either side does.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

CHUNK_BYTES = 64 * 1024


def main(address: str) -> None:
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)

    def out() -> None:
        while chunk := line.recv(CHUNK_BYTES):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        os._exit(0)  # the reader below would wait for the command line's next word for ever

    threading.Thread(target=out, daemon=True).start()
    while chunk := os.read(0, CHUNK_BYTES):
        line.sendall(chunk)


if __name__ == "__main__":
    main(sys.argv[1])
