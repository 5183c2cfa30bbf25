"""A model behind litellm: any provider, any OpenAI-compatible endpoint. The only module that imports litellm.

litellm never tries again by itself here (`num_retries`, `max_retries` 0): what is transport is tried again by
tenacity below, with the provider's own Retry-After; everything else is the caller's to decide.
"""

from __future__ import annotations

import difflib
import os
import threading
import time
from email.utils import parsedate_to_datetime
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_before_delay,
    wait_random_exponential,
)

from bench.errors import UsageError
from evaluator.judges.model.chat import ChatFailed, Message, Reply, ToolCall, TooLong, ToolSpec, count_pictures
from evaluator.judges.model.settings import ModelSettings, Price
from evaluator.records import Usage

LONGEST_PAUSE_S = 300.0
_MARKED_CACHE = ("anthropic", "bedrock", "vertex_ai")
_TRANSPORT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_TOO_LONG = ("context length", "context window", "prompt is too long", "too many tokens", "request too large")
_READY = ToolSpec("ready", "Say that you are ready.", {"type": "object", "properties": {}})


@cache
def _litellm() -> Any:
    """litellm, without its own look at the network at import. Raises UsageError when it is not installed."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm
    except ImportError as error:
        said = "judging with a model needs litellm; install it with `pip install codesign-bench[models]`"
        raise UsageError(said) from error
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


class Stopped(OSError):
    """The run was asked to stop while a call was under way."""


@cache
def _failures() -> tuple[type[Exception], ...]:
    """What a call may raise: litellm's errors are the openai package's, whatever the provider."""
    _litellm()
    from openai import OpenAIError

    return (OpenAIError, TimeoutError, OSError)


class LiteLlmChat:
    """`settings.model` over litellm. Calls run in threads of their own: Playwright's loop owns the case's thread."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._provider = _provider(settings.model)
        self._stopped = threading.Event()
        self._warm = threading.Lock()

    @property
    def vision(self) -> bool:
        return self._settings.vision

    @property
    def takes(self) -> frozenset[str]:
        """What the settings say; else by litellm's table, where only what is said to be taken is sent."""
        if not self.vision:
            return frozenset()
        if self._settings.native is not None:
            return frozenset(self._settings.native)
        told = self._listed()
        return frozenset(kind for kind in ("pdf", "audio", "video") if told.get(f"supports_{kind}_input"))

    def _listed(self) -> dict[str, Any]:
        """The model's entry in litellm's table; empty for one it does not have."""
        name = self._settings.model
        table = _litellm().model_cost
        found: dict[str, Any] = table.get(name) or table.get(name.partition("/")[2]) or {}
        return found

    @property
    def caches_by_mark(self) -> bool:
        return self._provider in _MARKED_CACHE

    def describe(self) -> dict[str, Any]:
        return {"kind": "litellm", **self._settings.describe()}

    def check(self) -> None:
        name = self._settings.model
        self._require_key()
        request: list[Message] = [{"role": "user", "content": "Call the tool `ready`."}]
        try:
            self._once(request, [_READY])
        except _failures() as error:
            said = f"the first call to {name} failed, nothing was judged: {_words(error)}{_hint(name, error)}"
            raise UsageError(said) from error

    def price(self) -> Price | None:
        """From the settings, else litellm's table."""
        if self._settings.price:
            return self._settings.price
        told = self._listed()
        listed = {
            "input": told.get("input_cost_per_token"),
            "output": told.get("output_cost_per_token"),
            "cache_read": told.get("cache_read_input_token_cost"),
        }
        if listed["input"] is None or listed["output"] is None:
            return None
        return Price(**{key: value * 1_000_000 for key, value in listed.items() if value is not None})

    def stop(self) -> None:
        self._stopped.set()

    def end(self, label: str) -> Usage:
        """Nothing is held between two requests."""
        return Usage()

    def close(self) -> None:
        """Nothing is held."""

    def reply(self, label: str, messages: list[Message], tools: list[ToolSpec]) -> Reply:
        waited: list[float] = []

        def pause(state: RetryCallState) -> None:
            waited.append(state.next_action.sleep if state.next_action else 0.0)

        retrying = Retrying(
            retry=retry_if_exception(_is_transport),
            wait=_wait,
            stop=stop_before_delay(self._settings.patience_s),
            before_sleep=pause,
            sleep=sleep_using_event(self._stopped),
            reraise=True,
        )
        try:
            answer: Any = retrying(self._once, messages, tools)
        except _failures() as error:
            if _is_too_long(error):
                raise TooLong(_words(error)) from error
            raise ChatFailed(f"{self._settings.model}: {_words(error)}") from error
        return self._read(answer, count_pictures(messages), sum(waited))

    def _once(self, messages: list[Message], tools: list[ToolSpec]) -> Any:
        """One call, one try, with an outer deadline that does not trust the client's own.

        In a daemon thread: a call that never comes back must not keep the process from ending."""
        done: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()

        def work() -> None:
            try:
                done.put((self._ask(messages, tools), None))
            except Exception as error:  # noqa: BLE001  (raised again in the thread that waits)
                done.put((None, error))

        threading.Thread(target=work, name="model", daemon=True).start()
        ends = time.monotonic() + self._settings.call_timeout_s + 5
        while time.monotonic() < ends:
            if self._stopped.is_set():
                raise Stopped("the run was stopped")
            try:
                answer, error = done.get(timeout=0.2)
            except Empty:
                continue
            if error is not None:
                raise error
            return answer
        raise TimeoutError(f"no answer within {self._settings.call_timeout_s:g} s")

    def _ask(self, messages: list[Message], tools: list[ToolSpec]) -> Any:
        settings = self._settings
        with self._warm:  # the first use of litellm imports more of it
            complete = _litellm().completion
        key = os.environ.get(settings.key_env) if settings.key_env else None
        return complete(
            **settings.extra,
            model=settings.model,
            messages=messages,
            tools=[tool.as_function() for tool in tools],
            api_base=settings.api_base,
            api_key=key,
            max_tokens=settings.max_output_tokens,
            timeout=settings.call_timeout_s,
            num_retries=0,
            max_retries=0,
        )

    def _read(self, answer: Any, pictures: int, waited_s: float) -> Reply:
        if not answer.choices:
            raise ChatFailed(f"{self._settings.model}: an answer without content")
        choice = answer.choices[0]
        calls = tuple(
            ToolCall(call.id or f"call_{number}", call.function.name or "", call.function.arguments or "{}")
            for number, call in enumerate(choice.message.tool_calls or [])
        )
        usage = _usage(answer, self._settings, pictures, waited_s)
        own = _own(choice.message, self._provider)
        return Reply(choice.message.content or "", calls, usage, cut=choice.finish_reason == "length", own=own)

    def _require_key(self) -> None:
        settings = self._settings
        if settings.key_env:
            if not os.environ.get(settings.key_env):
                raise UsageError(f"{settings.key_env} is not set; it is to hold the key for {settings.model}")
            return
        missing = [
            name for name in _litellm().validate_environment(settings.model)["missing_keys"] if name.endswith("_KEY")
        ]
        if missing:
            raise UsageError(
                f"no key for {settings.model}: set {' or '.join(missing)}, or name another variable in `key_env` "
                "of a judge's YAML file (docs/judges.md); a local endpoint takes any value"
            )


def _provider(model: str) -> str:
    """The provider a name begins with. Raises UsageError for a name without one that litellm knows."""
    head, slash, rest = model.partition("/")
    known = {str(getattr(p, "value", p)) for p in _litellm().provider_list}
    if not slash or not rest or head not in known:
        near = difflib.get_close_matches(head, known, n=1)
        raise UsageError(
            f"{model!r} names no model: write PROVIDER/MODEL, for example openai/{model.rpartition('/')[2]} or "
            f"anthropic/{model.rpartition('/')[2]}" + (f"; did you mean {near[0]}/{rest}?" if near and slash else "")
        )
    return head


def _is_transport(error: BaseException) -> bool:
    if _is_too_long(error):
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status in _TRANSPORT_STATUS:
        return True
    litellm = _litellm()
    return isinstance(error, TimeoutError | litellm.Timeout | litellm.APIConnectionError)


def _is_too_long(error: BaseException) -> bool:
    if isinstance(error, _litellm().ContextWindowExceededError):
        return True
    status = getattr(error, "status_code", None)
    return status in (400, 413) and any(words in str(error).lower() for words in _TOO_LONG)


def _wait(state: RetryCallState) -> float:
    """What the provider asks for; without its word, longer from try to try with some chance in it."""
    error = state.outcome.exception() if state.outcome else None
    told = _retry_after(error)
    if told is not None:
        return min(told, LONGEST_PAUSE_S)
    return float(wait_random_exponential(multiplier=0.5, max=60)(state))


def _retry_after(error: BaseException | None) -> float | None:
    for headers in (
        getattr(error, "litellm_response_headers", None),
        getattr(getattr(error, "response", None), "headers", None),
    ):
        value = headers.get("retry-after") if headers else None
        if value is None:
            continue
        try:
            return max(0.0, float(value))
        except ValueError:
            try:
                return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
            except ValueError:
                return None
    return None


def _own(message: Any, provider: str) -> Message:
    """What the provider must get back: Anthropic its thinking blocks, Gemini the signatures of its calls.

    Others get the plain message: some refuse fields they do not know."""
    own: Message = {}
    if provider in _MARKED_CACHE and (blocks := getattr(message, "thinking_blocks", None)):
        own["thinking_blocks"] = blocks
    if provider in ("gemini", "vertex_ai") and message.tool_calls:
        own["tool_calls"] = [call.model_dump(exclude_none=True) for call in message.tool_calls]
    return own


def _usage(answer: Any, settings: ModelSettings, pictures: int, waited_s: float) -> Usage:
    told = getattr(answer, "usage", None)
    prompt = getattr(told, "prompt_tokens", 0) or 0
    details = getattr(told, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", 0) or 0
    written = getattr(details, "cache_creation_tokens", 0) or 0
    output = getattr(told, "completion_tokens", 0) or 0
    return Usage(
        calls=1,
        input_tokens=prompt,
        cached_tokens=cached,
        cache_write_tokens=written,
        output_tokens=output,
        pictures=pictures,
        cost_usd=_cost(answer, settings, prompt, cached, written, output) if prompt or output else None,
        waited_s=round(waited_s, 3),
        models=[answer.model] if getattr(answer, "model", None) else [],
    )


def _cost(answer: Any, settings: ModelSettings, prompt: int, cached: int, written: int, output: int) -> float | None:
    """USD for one call; None when nobody knows the model's price: unknown is never 0."""
    if settings.price:
        return priced(settings.price, prompt, cached, written, output)
    try:
        cost = float(_litellm().completion_cost(completion_response=answer, model=settings.model))
    except Exception:  # noqa: BLE001  (litellm raises bare Exception for a model that its table does not have)
        return None
    return round(cost, 6) or None


def priced(price: Price, prompt: int, cached: int, written: int, output: int) -> float:
    """USD by a price list of our own; `prompt` counts cached and written tokens too."""
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    total = (prompt - cached - written) * price.input + cached * read + written * write + output * price.output
    return round(total / 1_000_000, 6)


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:600] or type(error).__name__


def _hint(model: str, error: Exception) -> str:
    """What to try after a failed first call: near names of the provider's models, or the key."""
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return "; check the key, and that the address belongs to the same provider"
    if status != 404:
        return ""
    head, _, name = model.partition("/")
    known = sorted(_litellm().models_by_provider.get(head, ()))
    near = difflib.get_close_matches(name, [one.removeprefix(f"{head}/") for one in known], n=4, cutoff=0.4)
    return f"; near names: {', '.join(near)}" if near else ""
