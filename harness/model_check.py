"""One cheap call that finds a misspelt model or a wrong key before any trial is paid for (C137).

The call goes through a gateway of its own trial, as an agent's would: same upstream, same rules. It is charged to no
trial; what it cost is in the journal (`model_check`, docs/records.md).
"""

from __future__ import annotations

import difflib
import http.client
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.errors import InfraError, UsageError
from harness.agents.agent import Agent, WireProtocol
from harness.line import ModelSettings
from harness.models import Conditions, ModelWish, model_settings
from sandboxes.gateway.client import Gateway, TrialGateway
from sandboxes.gateway.policy import Caps, ModelRule, TrialPolicy
from sandboxes.gateway.records import read_calls
from sandboxes.unix_http import UnixConnection

ANSWER_S = 90.0
SKIP = "`cdb solve --no-model-check` leaves this call out, in a run's file `preflight: false`"
_WORDS = "Reply with OK."
_MOST_OUTPUT_TOKENS = 16
_MOST_NAMES = 12


@dataclass(frozen=True)
class ModelCheck:
    """What the call came to. `note`: why it settled nothing, where it did not."""

    model: str
    upstream: str
    status: int
    model_answered: str = ""
    cost_usd: float | None = None
    note: str = ""

    def record(self) -> dict[str, Any]:
        return {"type": "model_check", **asdict(self)}


def check_model(agent: Agent, settings: ModelSettings) -> ModelCheck:
    """Ask the agent's model for one word.

    Raises UsageError for a model or a key that the provider refuses, InfraError for a provider that is not there.
    A provider that answers and is merely busy, broken, or unhappy with this call settles nothing: `note` says so.
    """
    assert agent.protocol is not None and agent.model is not None
    rule = settings.rules[0]
    policy = TrialPolicy(
        trial="model check", models=(rule,), caps=Caps(usd=None, tokens=None, requests=1),
        idle_timeout_s=ANSWER_S, whole_timeout_s=ANSWER_S,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="cdb-model-check-") as scratch:
        with settings.gateway.open(policy, Path(scratch)) as trial:
            status, own, said = _ask(trial, agent.protocol, agent.model)
        calls = [call for call in read_calls(Path(scratch)) if call.kind == "model"]
    found = ModelCheck(
        agent.model,
        rule.upstream,
        status,
        calls[0].model_answered if calls else "",
        calls[0].cost_usd if calls else None,
    )
    return _judged(found, rule, own, said, settings.gateway, agent.protocol)


def check_wish(agent: Agent, wish: ModelWish) -> ModelCheck:
    """The same with a gateway of its own, for whoever has none open. Raises UsageError, InfraError."""
    with model_settings(agent, wish, Conditions()) as settings:
        if settings is None:
            raise UsageError(f"agent {agent.name} has no model that could be asked")
        return check_model(agent, settings)


def _judged(
    found: ModelCheck, rule: ModelRule, own: str, said: str, gateway: Gateway, protocol: WireProtocol
) -> ModelCheck:
    status, model = found.status, rule.send or rule.asked
    told = f"upstream {found.upstream} answered {status}: {said}"
    if status < 300:
        return found
    if own == "upstream":
        raise InfraError(f"the model's provider cannot be reached ({told}); {SKIP}")
    if status in (401, 403):
        raise UsageError(f"the provider refused the key ({told}); check the key of upstream {found.upstream}")
    if status == 429 or status >= 500:
        return _with_note(found, f"not settled: {told}")
    known = gateway.listed_models(found.upstream, protocol)
    if model in known:
        return _with_note(found, f"the model is listed, though the test call failed: {told}")
    if known or status == 404 or model in said:
        raise UsageError(f"no model {model!r} ({told}); {_alternatives(model, known)}; {SKIP}")
    return _with_note(found, f"not settled: {told}")


def _with_note(found: ModelCheck, note: str) -> ModelCheck:
    return ModelCheck(**{**asdict(found), "note": note})


def _alternatives(model: str, known: list[str]) -> str:
    if not known:
        return "the provider gives no list of its models"
    near = difflib.get_close_matches(model, known, n=3, cutoff=0.5)
    listed = ", ".join(known[:_MOST_NAMES]) + (" …" if len(known) > _MOST_NAMES else "")
    return (f"did you mean {' or '.join(near)}? " if near else "") + f"known: {listed}"


def _ask(trial: TrialGateway, protocol: WireProtocol, model: str) -> tuple[int, str, str]:
    """Status, the gateway's own mark where the answer is its own, and the answer's message."""
    path, body = _request(protocol, model)
    connection = UnixConnection(trial.socket, timeout_s=ANSWER_S + 10)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {trial.token}"}
    if protocol == "anthropic":
        headers["anthropic-version"] = "2023-06-01"
    try:
        connection.request("POST", path, json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("x-cdb-gateway", ""), _message(answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise InfraError(f"the gateway broke off the model's test call ({type(error).__name__}: {error})") from error
    finally:
        connection.close()


def _request(protocol: WireProtocol, model: str) -> tuple[str, dict[str, Any]]:
    message = {"role": "user", "content": _WORDS}
    match protocol:
        case "anthropic":
            return "/v1/messages", {"model": model, "max_tokens": _MOST_OUTPUT_TOKENS, "messages": [message]}
        case "openai-chat":
            told: dict[str, Any] = {"model": model, "max_completion_tokens": _MOST_OUTPUT_TOKENS}
            return "/v1/chat/completions", {**told, "messages": [message]}
        case "openai-responses":
            told = {"model": model, "max_output_tokens": _MOST_OUTPUT_TOKENS, "store": False}
            return "/v1/responses", {**told, "input": [message]}
        case "gemini":
            told = {"contents": [{"role": "user", "parts": [{"text": _WORDS}]}]}
            limit = {"generationConfig": {"maxOutputTokens": _MOST_OUTPUT_TOKENS}}
            return f"/v1beta/models/{model}:generateContent", told | limit


def _message(body: bytes) -> str:
    """What an error says, in whichever protocol's shape; the beginning of anything else."""
    try:
        told = json.loads(body)
        told = told[0] if isinstance(told, list) else told
        error = told["error"]
        said = error["message"] if isinstance(error, dict) else error
    except (ValueError, KeyError, TypeError, IndexError):
        said = body.decode("utf-8", "replace")
    return " ".join(str(said).split())[:300]
