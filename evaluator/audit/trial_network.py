"""What a trial asked of the network: pages that a provider fetched for the model, and hosts of the dataset."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from bench.errors import DataError
from bench.strict_json import read_json
from evaluator.audit.leak_words import Sign
from evaluator.audit.trial_texts import Unread
from sandboxes.egress.policy import DATASET_HOSTS, is_blocked
from sandboxes.gateway.bodies import PACK, Bodies
from sandboxes.gateway.records import LOG, CallRecord, read_calls

_OFTEN_ASKED = ("github.com", "githubusercontent.com")
"""Hosts of the dataset that builds ask too; asking them is no sign by itself, a repository's name in a text is."""
_TELLING = tuple(host for host in DATASET_HOSTS if host not in _OFTEN_ASKED)
_HOSTED = re.compile(
    rb'"type"\s*:\s*"(server_tool_use|web_search_tool_result|web_fetch_tool_result|web_search_call|file_search_call'
    rb'|code_interpreter_call|code_execution_tool_result|mcp_call|mcp_tool_use|url_citation)"'
    rb'|"(groundingMetadata|grounding_metadata|urlContextMetadata|url_context_metadata)"\s*:\s*\{\s*"'
)
"""What a provider's answer holds where it ran a tool itself. Within a text of the model the quotes are escaped."""

Seen = tuple[str, Sign]
"""A place and what was seen there."""


def hosted_tools(folder: Path, place: str, *, required: bool) -> Iterator[Seen | Unread]:
    """Tools that the provider ran for the model in the trial in `folder`, by the gateway's records.

    `required`: the agent asks a model, so that a trial without records cannot be called clean.
    """
    if not (folder / LOG).is_file():
        if required:
            yield Unread(f"{place}/{LOG}", "there are no records of what the agent asked its model")
        return
    try:
        calls = [call for call in read_calls(folder) if call.kind == "model" and call.sent]
        bodies = Bodies(folder) if any(call.response_sha256 for call in calls) else None
    except DataError as error:
        yield Unread(f"{place}/{LOG}", f"it cannot be read: {str(error).partition(': ')[2][:120]}")
        return
    for call in calls:
        if (call.usage or {}).get("web_searches"):
            yield f"{place}/{LOG}, call {call.n}", Sign("hosted_tool", "web search, by its usage")
        if bodies and call.response_sha256:
            yield from _in_answer(call, bodies, place)


def _in_answer(call: CallRecord, bodies: Bodies, place: str) -> Iterator[Seen | Unread]:
    where = f"{place}/{PACK}, answer of call {call.n}"
    try:
        raw = bodies.read(call.response_sha256)
        match call.response_headers.get("content-encoding", ""):
            case "gzip":
                raw = gzip.decompress(raw)
            case "deflate":
                raw = zlib.decompress(raw)
    except (DataError, OSError, EOFError, zlib.error) as error:
        yield Unread(where, f"it cannot be read ({error.__class__.__name__})")
        return
    names = {(match.group(1) or match.group(2)).decode() for match in _HOSTED.finditer(raw)}
    for name in sorted(names):
        yield where, Sign("hosted_tool", name)


def dataset_hosts(folder: Path, place: str, *, required: bool) -> Iterator[Seen | Unread]:
    """Hosts of the dataset that the trial asked for, through its proxy or by looking their names up.

    `required`: the trial had a network, so that one without the proxy's records cannot be called clean.
    """
    names = folder / "names-asked.txt"
    if names.is_file():
        for host in sorted(set(names.read_text(encoding="utf-8", errors="replace").split())):
            if is_blocked(host, _TELLING):
                yield f"{place}/{names.name}", Sign("dataset_address", f"{_plain(host)}, looked up in vain")
    log = folder / "egress.json"
    if not log.is_file():
        if required:
            yield Unread(f"{place}/{log.name}", "there are no records of what the agent asked the network")
        return
    try:
        hosts = [(str(h["host"]), int(h["blocked"]), int(h["answered"])) for h in read_json(log)["hosts"]]
    except (DataError, KeyError, TypeError, ValueError) as error:
        yield Unread(f"{place}/{log.name}", f"it cannot be read ({error.__class__.__name__})")
        return
    for host, blocked, answered in hosts:
        if is_blocked(host, _TELLING):
            how = f"answered {answered} times" if answered else f"blocked {blocked} times"
            yield f"{place}/{log.name}", Sign("dataset_address", f"{_plain(host)}, {how}")


def _plain(host: str) -> str:
    return "".join(c for c in host if c.isprintable())[:80]
