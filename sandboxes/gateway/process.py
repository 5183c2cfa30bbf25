"""The gateway's own process: one control socket for the harness, one socket for each open trial.

The control socket takes one JSON object a connection and answers with one: `open`, `summary`, `close`. It lies
in a folder that only this user can enter and that no container ever sees.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import secrets
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from bench.errors import CdbError, InfraError, UsageError
from sandboxes.gateway.listing import listed_models
from sandboxes.gateway.policy import GatewayConfig, TrialPolicy
from sandboxes.gateway.prices import PriceTable
from sandboxes.gateway.records import Writer
from sandboxes.gateway.trial import Trial
from sandboxes.gateway.upstream import Route

MOST_CONNECTIONS = 256
LONGEST_MESSAGE_BYTES = 4 * 1024 * 1024
BACKLOG = 128


class _TrialServer(web.Server):
    """A trial's listener. Connections beyond the limit are dropped: one agent must not use up the descriptors."""

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()


@dataclass
class _Open:
    trial: Trial
    http: _TrialServer
    listener: asyncio.Server
    socket: Path


class GatewayProcess:
    """All trials of one gateway. Upstreams are shared between trials, so that a rate limit holds for all."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._prices = PriceTable(config.prices, config.prices_file)
        self._routes: dict[str, Route] = {}
        self._open: dict[str, _Open] = {}

    async def do(self, told: dict[str, Any]) -> dict[str, Any]:
        """Carry out one message. Raises CdbError, ValidationError, OSError."""
        match told.get("do"):
            case "open":
                policy = TrialPolicy.model_validate(told["policy"])
                return await self._open_trial(policy, Path(told["folder"]), Path(told["socket"]), told.get("port"))
            case "summary":
                return {"summary": self._find(told).trial.summary()}
            case "close":
                self._find(told)
                return {"summary": await self.close_trial(told["id"])}
            case "models":
                return {"models": await listed_models(self._route(told["upstream"]), told["protocol"])}
        raise UsageError(f"the gateway does not know {told.get('do')!r}; it knows open, summary, close, models")

    def _find(self, told: dict[str, Any]) -> _Open:
        found = self._open.get(str(told.get("id")))
        if found is None:
            raise UsageError(f"no trial {told.get('id')} is open at this gateway")
        return found

    async def _open_trial(self, policy: TrialPolicy, folder: Path, socket: Path, port: int | None) -> dict[str, Any]:
        routes = {rule.upstream: self._route(rule.upstream) for rule in policy.models}
        self._check_prices(policy, routes)
        token = "cdb-" + secrets.token_urlsafe(32)
        trial = Trial(policy, routes, self._prices, token, Writer(folder))
        http = _TrialServer(
            trial.handle, handler_cancellation=True, access_log=None, auto_decompress=False, lingering_time=2.0,
            keepalive_timeout=3600.0, max_line_size=16 * 1024, max_field_size=32 * 1024,
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        if port is not None:
            listener = await loop.create_server(http, "127.0.0.1", port, backlog=BACKLOG)
            port = listener.sockets[0].getsockname()[1]
        else:
            listener = await loop.create_unix_server(http, str(socket), backlog=BACKLOG)
            socket.chmod(0o666)  # the container's user connects; the folder keeps others out
        identity = secrets.token_hex(8)
        self._open[identity] = _Open(trial, http, listener, socket)
        return {"id": identity, "token": token, "port": port}

    def _route(self, name: str) -> Route:
        if name not in self._routes:
            if name not in self._config.upstreams:
                known = ", ".join(sorted(self._config.upstreams)) or "none"
                raise UsageError(f"a model rule names the upstream {name!r}; configured are: {known}")
            self._routes[name] = Route(name, self._config.upstreams[name])
        self._routes[name].key()
        return self._routes[name]

    def _check_prices(self, policy: TrialPolicy, routes: dict[str, Route]) -> None:
        """A USD cap that could not hold is refused before anything is spent. Reads the price table on the way:
        that takes a moment, which no call should wait for."""
        for rule in policy.models:
            name = rule.send or rule.asked
            known = rule.price or self._prices.find(name, routes[rule.upstream].told.provider)
            if set("*?[") & set(name) or policy.caps.usd is None or policy.caps.tokens is not None:
                continue
            if known is None:
                raise UsageError(
                    f"model {name!r} has no known price, so the cap of {policy.caps.usd:g} USD cannot hold: give its "
                    "price in the configuration, install the price table (the extra `models`), or set a token cap"
                )

    async def close_trial(self, identity: str) -> dict[str, object]:
        held = self._open.pop(identity)
        held.listener.close()
        held.socket.unlink(missing_ok=True)
        summary = await held.trial.close()
        held.http.pre_shutdown()
        await held.http.shutdown(timeout=1.0)
        return summary

    async def close(self) -> None:
        for identity in list(self._open):
            await self.close_trial(identity)
        for route in self._routes.values():
            await route.close()


async def _converse(gateway: GatewayProcess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One message and its answer. Errors go back as what they are; the process goes on."""
    try:
        told = json.loads(await reader.readline())
        try:
            answer = {"ok": True} | await gateway.do(told)
        except UsageError as error:
            answer = {"ok": False, "kind": "usage", "message": str(error)}
        except ValidationError as error:
            answer = {"ok": False, "kind": "usage", "message": f"no usable trial policy: {error}"}
        except (CdbError, OSError) as error:
            answer = {"ok": False, "kind": "infra", "message": f"{type(error).__name__}: {error}"}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
    except (OSError, ValueError) as error:
        print(f"gateway: a control message was lost: {error}", file=sys.stderr, flush=True)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _await_end_of_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(0, 1024):
        pass
    with contextlib.suppress(RuntimeError):  # the loop has ended by itself
        loop.call_soon_threadsafe(stop.set)


async def serve(config: GatewayConfig, control: Path, *, with_parent: bool) -> None:
    """Serve until SIGTERM or SIGINT, or with `with_parent` until standard input ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65536), hard))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if with_parent:
        threading.Thread(target=_await_end_of_stdin, args=(loop, stop), daemon=True).start()
    gateway = GatewayProcess(config)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _converse(gateway, reader, writer)

    server = await asyncio.start_unix_server(converse, str(control), limit=LONGEST_MESSAGE_BYTES)
    control.chmod(0o600)
    print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
    try:
        await stop.wait()
    finally:
        server.close()
        await gateway.close()


def run(config: GatewayConfig, control: Path, *, with_parent: bool) -> None:
    """The process's main function. Raises InfraError when it cannot listen."""
    try:
        asyncio.run(serve(config, control, with_parent=with_parent))
    except OSError as error:
        raise InfraError(f"the gateway cannot listen at {control}: {error}") from error
