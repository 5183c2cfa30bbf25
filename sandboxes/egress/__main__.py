"""The proxy of one trial as a process: `python -m sandboxes.egress --policy FILE --socket FILE --folder DIR`.

Ends with standard input or at SIGTERM, and then writes the sums.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.errors import CdbError
from sandboxes.egress.policy import EgressPolicy
from sandboxes.egress.records import EgressLog
from sandboxes.egress.server import EgressServer

_NICE = 5
"""An agent that floods its proxy takes processor time from the harness last."""


def _await_end_of_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(0, 1024):
        pass
    with contextlib.suppress(RuntimeError):  # the loop has ended by itself
        loop.call_soon_threadsafe(stop.set)


def _tell_a_few(most: int = 20) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Tells of the first troubles that no connection's line tells of: an agent must not fill the disk with them."""
    left = most

    def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            loop.default_exception_handler(context)

    return tell


async def _serve(policy: EgressPolicy, socket: Path, folder: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_tell_a_few())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    threading.Thread(target=_await_end_of_stdin, args=(loop, stop), daemon=True).start()
    log = EgressLog(folder, policy.mode, policy.lines)
    try:
        server = EgressServer(policy, log)
        await server.start(socket)
        print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
        await stop.wait()
        await server.close()
    finally:
        log.close()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sandboxes.egress", description="One trial's way out.")
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args(argv)
    os.nice(_NICE)
    try:
        policy = EgressPolicy.model_validate_json(options.policy.read_bytes())
        asyncio.run(_serve(policy, options.socket, options.folder))
    except (CdbError, OSError) as error:
        print(f"egress: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # A name that is being looked up in a thread must not hold the process back: what matters is written.
    code = main()
    sys.stdout.flush()
    os._exit(code)
