"""`python tests/fakes/model_server --port 8099 --scenario play.json --record seen/`: serve until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from aiohttp import web

from fakes.model_server.server import ModelApp


async def _serve(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if options.with_parent:

        def wait() -> None:
            while os.read(0, 1024):
                pass
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)

        threading.Thread(target=wait, daemon=True).start()
    told = json.loads(options.scenario.read_text(encoding="utf-8")) if options.scenario else {}
    app = ModelApp(told, options.record, key=options.key)
    runner = web.AppRunner(app.application(), access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, options.host, options.port)
    await site.start()
    server = site._server
    assert isinstance(server, asyncio.Server)
    print(json.dumps({"ready": True, "port": server.sockets[0].getsockname()[1]}), flush=True)
    await stop.wait()
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description="A model server that plays a script over the real protocols.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--scenario", type=Path, help="JSON; see docs/gateway.md; without it: one text")
    parser.add_argument("--record", type=Path, help="folder for what arrives")
    parser.add_argument("--key", default="", help="refuse requests without this key (401)")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input does")
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
