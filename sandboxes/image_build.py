"""One image build through the engine: progress as it goes, and the useful end of the log when it fails."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import requests
from docker.errors import APIError

from bench.errors import InfraError
from sandboxes.engine import connect
from sandboxes.owner import IMAGE, OWNER, host

_SILENCE_S = 1200.0
"""Longest time a build step may print nothing."""
_HEARTBEAT_S = 5.0
_KEPT_LINES = 25


def build(name: str, tag: str, context: Path, arguments: dict[str, str]) -> None:
    """Builds folder `context` as `tag`, with the host's network so that local proxies and mirrors are reached.

    Raises InfraError with the end of the log and the file that holds all of it.
    """
    began = time.monotonic()
    _say(f"building {tag}")
    client = connect(timeout_s=_SILENCE_S)
    log = Path(tempfile.mkstemp(prefix=f"cdb-build-{name}-", suffix=".log")[1])
    try:
        events = client.api.build(
            path=str(context),
            tag=tag,
            buildargs=arguments,
            labels={IMAGE: name, OWNER: host()},
            rm=True,
            forcerm=True,
            network_mode="host",
            decode=True,
        )
        failure, last = _follow(name, events, log)
    except (APIError, requests.RequestException) as error:
        failure, last = str(error), deque()
    finally:
        client.close()
    if failure:
        end = "\n".join(last)
        raise InfraError(f"image {tag} could not be built: {failure}\n{end}\nThe whole log: {log}")
    log.unlink()
    _say(f"built {tag} in {time.monotonic() - began:.0f} s")


def _follow(name: str, events: Iterator[dict[str, object]], log: Path) -> tuple[str, deque[str]]:
    """Writes the build's output to `log` and shows its steps. Returns the error (or empty) and the last lines."""
    last: deque[str] = deque(maxlen=_KEPT_LINES)
    shown_at = time.monotonic()
    with log.open("w", encoding="utf-8") as out:
        for event in events:
            if "error" in event:
                return str(event["error"]), last
            text = str(event.get("stream", "")) or json.dumps(event.get("status", ""))
            out.write(text)
            for line in filter(None, map(str.strip, text.splitlines())):
                last.append(line)
                if line.startswith("Step ") or time.monotonic() - shown_at > _HEARTBEAT_S:
                    _say(f"  {name}: {line[:110]}")
                    shown_at = time.monotonic()
    return "", last


def _say(text: str) -> None:
    print(f"images: {text}", file=sys.stderr, flush=True)
