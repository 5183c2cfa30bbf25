"""`claude -p` as a model behind the conversation's own seam.

The command line calls our tools by itself; here each of its calls becomes one reply, and the tool's result, which
the conversation gives with its next request, the answer to that call. So budgets, evidence, repair turns and the
record are the same as with any other model. What it sends to the model is its own affair, and the gateway's record.
"""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.errors import InfraError, UsageError
from evaluator.judges.model.chat import ChatFailed, Message, Reply, ToolCall, TooLong, ToolSpec
from evaluator.judges.model.claude_cli.blocks import as_mcp, retold, said
from evaluator.judges.model.claude_cli.session import Ended, Session
from evaluator.judges.model.claude_cli.tool_server import SERVER, ToolRequest
from evaluator.judges.model.settings import ModelSettings, Price
from evaluator.records import Usage
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import Caps, GatewayConfig, ModelRule, TrialPolicy, Upstream, default_upstreams
from sandboxes.gateway.policy import Price as GatewayPrice
from sandboxes.gateway.records import TrialSummary
from sandboxes.packs.store import need_pack

PACK = "claude-code"
UPSTREAM = "judge"
ALIASES = ("opus", "sonnet", "haiku", "fable")
"""Names the command line knows for the newest model of a kind; any full name is passed through as well."""
MOST_REQUESTS = 400
"""Of one conversation: far beyond what a conversation's own cap lets happen."""
LOGIN = "CLAUDE_CODE_OAUTH_TOKEN"
_TOO_LONG = ("prompt is too long", "context length", "context window", "input is too long", "too many tokens")
_NAMES = f"\n\nYour tools are served as `mcp__{SERVER}__NAME`: `mcp__{SERVER}__verdict` is `verdict`, and so on."


class _Talk:
    """A session and how far the conversation has been told to it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seen = 0
        self.counted = TrialSummary(trial="")
        self.waiting = ""
        """The id of the call that is to be answered next; empty when the process has ended."""


class ClaudeCliChat:
    """`settings.model` by the installed command line. A label is used by one thread at a time.

    Owns its gateway, and one container a label until `end`; `close` ends all of them.
    """

    caches_by_mark = False

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._talks: dict[str, _Talk] = {}
        self._left: dict[str, Usage] = {}
        """Usage of sessions that were ended before their conversation, by label."""
        self._stopped = threading.Event()
        self._lock = threading.Lock()  # protects what follows and the two dicts' keys: cases have their own threads
        self._gateway: Gateway | None = None
        self._folder: Path | None = None
        self._sessions = 0

    @property
    def vision(self) -> bool:
        return self._settings.vision

    @property
    def takes(self) -> frozenset[str]:
        wanted = {"pdf"} if self._settings.native is None else self._settings.native
        return frozenset(wanted) & {"pdf"} if self.vision else frozenset()

    def describe(self) -> dict[str, Any]:
        told = {
            key: value for key, value in self._settings.describe().items() if key in ("model", "vision", "native")
        }
        return {"kind": "claude-cli", **told, "pack": need_pack(PACK).describe()}

    def check(self) -> None:
        if self._settings.extra:
            raise UsageError(f"`extra` cannot be passed on to the command line: {', '.join(self._settings.extra)}")
        need_pack(PACK).check()
        asked = [{"role": "system", "content": "You answer in one word."}, {"role": "user", "content": "Say: ready"}]
        try:
            self.reply("check", asked, [])
        except (ChatFailed, TooLong) as error:
            near = difflib.get_close_matches(self._settings.model, ALIASES, n=1)
            hint = f"; did you mean {near[0]}?" if near and near[0] != self._settings.model else ""
            raise UsageError(
                f"the first call to {self._settings.model} (claude-cli) failed, nothing was judged: {error}{hint}"
            ) from error
        finally:
            self.end("check")

    def price(self) -> Price | None:
        """Of the settings only: which model an alias stands for is the command line's to decide."""
        return self._settings.price

    def stop(self) -> None:
        self._stopped.set()

    def reply(self, label: str, messages: list[Message], tools: list[ToolSpec]) -> Reply:
        talk = self._talks.get(label)
        if talk is None:
            talk = self._begun(label, messages, tools)
        else:
            self._tell(talk, messages[talk.seen :])
        talk.seen = len(messages) + 1  # with the reply, which the command line knows
        patience_s = self._settings.call_timeout_s + self._settings.patience_s
        event = talk.session.next(patience_s, self._stopped.is_set)
        if event is None:
            why = "the run was stopped" if self._stopped.is_set() else f"no answer within {patience_s:g} s"
            raise ChatFailed(f"{self._settings.model}: {why}")
        usage = self._spent(talk, talk.session.usage())
        if isinstance(event, ToolRequest):
            talk.waiting = event.id
            return Reply("", (ToolCall(event.id, event.name, event.arguments),), usage)
        talk.waiting = ""
        return self._ended(label, event, usage)

    def end(self, label: str) -> Usage:
        """End a conversation; gives what it cost and no reply has told."""
        with self._lock:
            talk = self._talks.pop(label, None)
            left = self._left.pop(label, Usage())
        if talk is None:
            return left
        talk.session.usage()  # lets the call whose tool ended the conversation come to its end
        return left + self._spent(talk, talk.session.close())

    def close(self) -> None:
        for label in list(self._talks):
            self.end(label)
        with self._lock:
            gateway, self._gateway = self._gateway, None
            folder, self._folder = self._folder, None
        if gateway:
            gateway.__exit__(None, None, None)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)

    # ---- the command line's side ---------------------------------------------------------------------------

    def _begun(self, label: str, messages: list[Message], tools: list[ToolSpec]) -> _Talk:
        gateway, records = self._place(label)
        bare = self._settings.model.partition("[")[0]
        rules = tuple(
            ModelRule(asked=asked, upstream=UPSTREAM, price=_gateway_price(self._settings.price))
            for asked in (bare, f"*{bare}*")  # `opus` is asked for as the newest model of that name
        )
        policy = TrialPolicy(
            trial=label, models=rules, caps=Caps(requests=MOST_REQUESTS), idle_timeout_s=self._settings.call_timeout_s
        )
        env = {
            "API_TIMEOUT_MS": str(int(self._settings.call_timeout_s * 1000)),
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(self._settings.max_output_tokens),
        }
        talk = _Talk(Session(gateway, policy, need_pack(PACK), self._settings.model, records, env))
        with self._lock:
            self._talks[label] = talk
        system = str(messages[0]["content"]) + (_NAMES if tools else "")
        talk.session.begin(system, retold(messages[1:]), tools)
        return talk

    def _tell(self, talk: _Talk, new: list[Message]) -> None:
        """What was said since: the answer to the waiting call with its pictures, or a further message."""
        content = [block for message in new for block in said(message)]
        if not talk.waiting:
            talk.session.go_on(content)
            return
        failed = any(str(message.get("content", "")).startswith("error: ") for message in new)
        talk.session.answer(talk.waiting, [as_mcp(block) for block in content], error=failed)

    def _ended(self, label: str, ended: Ended, usage: Usage) -> Reply:
        """The words the process ended with. Raises InfraError, TooLong or ChatFailed."""
        model, event = self._settings.model, ended.event
        if ended.exec.broken or ended.exec.oom_killed:
            raise InfraError("the command line's container died" + (", out of memory" * ended.exec.oom_killed))
        if event is None:
            raise self._failed(label, usage, f"{model}: claude ended without a result: {ended.errors.strip()[-500:]}")
        text = str(event.get("result") or "")
        if event.get("is_error"):
            why = f"{model}: {event.get('api_error_status') or event.get('subtype') or ''} {text}".strip()
            failed = self._failed(label, usage, why[:600])
            if any(words in why.lower() for words in _TOO_LONG):
                self._put_by(label)
                raise TooLong(why[:600])
            raise failed
        return Reply(text, (), usage, cut=event.get("stop_reason") == "max_tokens")

    def _failed(self, label: str, usage: Usage, why: str) -> ChatFailed:
        """A reply that failed has cost all the same: `end` tells it."""
        with self._lock:
            self._left[label] = self._left.get(label, Usage()) + usage
        return ChatFailed(why)

    def _put_by(self, label: str) -> None:
        """End the session but not the conversation: the next request begins another with less in it."""
        with self._lock:
            talk = self._talks.pop(label)
        left = self._spent(talk, talk.session.close())
        with self._lock:
            self._left[label] = self._left.get(label, Usage()) + left

    def _place(self, label: str) -> tuple[Gateway, Path]:
        """The gateway, started when it is first needed, and a folder for one session's records."""
        with self._lock:
            if self._gateway is None:
                self._gateway = Gateway(GatewayConfig(upstreams={UPSTREAM: upstream(self._settings)}))
                self._folder = Path(tempfile.mkdtemp(prefix="cdb-claude-"))
            assert self._folder is not None
            self._sessions += 1
            records = self._folder / f"{self._sessions:04d}"
        records.mkdir()
        return self._gateway, records

    @staticmethod
    def _spent(talk: _Talk, told: TrialSummary) -> Usage:
        """What was spent since the last look."""
        before, talk.counted = talk.counted, told
        tokens = {key: value - before.tokens.get(key, 0) for key, value in told.tokens.items()}
        calls = told.calls - before.calls
        unknown = told.unpriced_calls > before.unpriced_calls or (calls > 0 and told.cost_usd is None)
        cached, written = tokens.get("cache_read", 0), tokens.get("cache_write", 0)
        return Usage(
            calls=calls,
            input_tokens=tokens.get("input", 0) + cached + written,
            cached_tokens=cached,
            cache_write_tokens=written,
            output_tokens=tokens.get("output", 0),
            pictures=told.media.get("image", 0) - before.media.get("image", 0),
            cost_usd=None if unknown else round(told.cost_known_usd - before.cost_known_usd, 6),
            waited_s=round(told.waited_s - before.waited_s, 3),
            models=sorted(told.models_answered),
        )


def upstream(settings: ModelSettings, environ: Mapping[str, str] = os.environ) -> Upstream:
    """Where the calls go: Anthropic by the user's own variables, or what the settings name."""
    given = {settings.key_env: environ.get(settings.key_env, "")} if settings.key_env == LOGIN else dict(environ)
    found = default_upstreams(given)["anthropic"]
    if settings.key_env and settings.key_env != LOGIN:
        found = found.model_copy(update={"key_env": settings.key_env, "auth": "x-api-key", "headers": {}})
    if settings.api_base:
        found = found.model_copy(update={"base_url": settings.api_base.rstrip("/"), "base_url_env": ""})
    return found


def _gateway_price(price: Price | None) -> GatewayPrice | None:
    return GatewayPrice(**price.model_dump()) if price else None
