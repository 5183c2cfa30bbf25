"""The reference agent's loop: ask the model, do its tool calls, until it makes none. Runs in the container.

    /opt/agents/reference/bin/python loop.py --model anthropic/NAME --address URL --request FILE [--image FILE …]

The key comes from REFERENCE_KEY. Prints one JSON event a line: `step` for each reply, at the end `end`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

WINDOW_TOKENS = 128_000
"""What a model is taken to hold that litellm does not know."""
FULL = 0.75
"""Share of the window from which old results are dropped, down to half of it."""
KEPT_TURNS = 6
TRIES = 5
PAUSES_S = (2, 5, 15, 30)
MAX_STEPS = 400
DROPPED = "[left out to stay within the window; look again if you need it]"
SYSTEM = (
    "You change a web application in the current folder as the user asks. Look before you change: list and read the "
    "files, look at pictures with view_image, turn other attachments into text or pictures with `run` (ffmpeg, "
    "pdftotext, chromium are there). There is no network. Try your result, then end with a short summary and no "
    "tool call."
)


def say(kind: str, **told: Any) -> None:
    print(json.dumps({"type": kind, **told}), flush=True)


def first_message(request: str, images: list[str]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": request}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in images]
    return {"role": "user", "content": parts}


def results(calls: list[Any], do: Any) -> list[dict[str, Any]]:
    """A tool message for each call, and one of the user with the pictures: tools can only give text."""
    messages: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    for made in calls:
        try:
            arguments = json.loads(made.function.arguments or "{}")
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            outcome = do(made.function.name, arguments)
            text, image = outcome.text, outcome.image
        else:
            text, image = "error: the arguments are no JSON object", ""
        messages.append({"role": "tool", "tool_call_id": made.id, "content": text})
        if image:
            images += [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": image}}]
    return [*messages, {"role": "user", "content": images}] if images else messages


def drop_old(messages: list[dict[str, Any]], share: float) -> int:
    """Empty the oldest tool results and pictures, about `share` of what can be; gives how many. The request, the
    latest turns and every call itself stay."""
    spared = len(messages) - 2 * KEPT_TURNS
    able = [m for m in messages[2:spared] if m["role"] in ("tool", "user") and m["content"] != DROPPED]
    chosen = able[: max(1, int(len(able) * share))] if able else []
    for message in chosen:
        message["content"] = DROPPED
    return len(chosen)


def ask(litellm: Any, messages: list[dict[str, Any]], settings: dict[str, Any]) -> Any:
    """One reply. Waits and asks again when the provider is busy or away; a full window is made room in."""
    for attempt in range(TRIES):
        try:
            return litellm.completion(messages=messages, num_retries=0, max_retries=0, **settings)
        except litellm.exceptions.ContextWindowExceededError:
            if not drop_old(messages, 0.5):
                raise
        except (
            litellm.exceptions.RateLimitError,
            litellm.exceptions.InternalServerError,
            litellm.exceptions.ServiceUnavailableError,
            litellm.exceptions.APIConnectionError,
            litellm.exceptions.Timeout,
        ) as error:
            if attempt == TRIES - 1:
                raise
            say("wait", error=type(error).__name__)
            time.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
    raise RuntimeError("the window stays too small")


def window(litellm: Any, model: str) -> int:
    try:
        return int(litellm.get_model_info(model).get("max_input_tokens") or WINDOW_TOKENS)
    except Exception:  # noqa: BLE001  (it raises a bare Exception for a model it does not know)
        return WINDOW_TOKENS


def loop(litellm: Any, tools: Any, model: str, address: str, request: str, images: list[str]) -> str:
    """Works until the model makes no call any more; gives its last words."""
    messages = [{"role": "system", "content": SYSTEM}, first_message(request, images)]
    settings = {"model": model, "api_base": address, "api_key": os.environ["REFERENCE_KEY"], "tools": tools.schemas()}
    room = window(litellm, model)
    for _ in range(MAX_STEPS):
        reply = ask(litellm, messages, settings)
        message = reply.choices[0].message
        calls = list(message.tool_calls or [])
        used = reply.usage.prompt_tokens if getattr(reply, "usage", None) else 0
        say("step", text=message.content or "", calls=[made.function.name for made in calls], prompt_tokens=used)
        messages.append(message.model_dump(exclude_none=True))
        if not calls:
            return str(message.content or "")
        messages += results(calls, tools.call)
        if used > FULL * room:
            say("dropped", messages=drop_old(messages, 0.5))
    raise RuntimeError(f"no end after {MAX_STEPS} steps")


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("model", "address", "request"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--image", action="append", default=[])
    options = parser.parse_args()
    import litellm
    import tools  # type: ignore[import-not-found]  # lies beside this file in the container

    litellm.suppress_debug_info = True
    litellm.drop_params = True
    request = Path(options.request).read_text(encoding="utf-8", errors="surrogatepass")
    images = [outcome.image for path in options.image if (outcome := tools.view_image(path)).image]
    try:
        last = loop(litellm, tools, options.model, options.address, request, images)
    except Exception as error:  # noqa: BLE001  (the process's outermost edge: told, then ended with a code)
        say("end", ok=False, reason=f"{type(error).__name__}: {error}"[:500])
        return 1
    say("end", ok=True, text=last)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
