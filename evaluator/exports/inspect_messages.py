"""An ATIF trajectory as Inspect's chat messages: text, tool calls, their results. Pictures are named, not copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def messages_of(trajectory: Json) -> list[Json]:
    """In the trajectory's order; a step of unknown kind becomes a user's message that says its source."""
    names: dict[str, str] = {}
    return [message for step in trajectory["steps"] if isinstance(step, dict) for message in _of_step(step, names)]


def _of_step(step: Json, names: dict[str, str]) -> Iterator[Json]:
    source, text = step.get("source"), _text(step.get("message"))
    if source == "agent":
        calls = [_call(call) for call in step.get("tool_calls") or [] if isinstance(call, dict)]
        names.update({call["id"]: call["function"] for call in calls})
        message: Json = {"role": "assistant", "content": _with_reasoning(step, text), "source": "generate"}
        if step.get("model_name"):
            message["model"] = str(step["model_name"])
        yield message | ({"tool_calls": calls} if calls else {})
    elif source in ("system", "user"):
        yield {"role": source, "content": text}
    else:
        yield {"role": "user", "content": f"[{source}] {text}"}
    for result in (step.get("observation") or {}).get("results") or []:
        call = str(result.get("source_call_id") or "")
        yield {
            "role": "tool",
            "content": _text(result.get("content")),
            "tool_call_id": call,
            "function": names.get(call, "unknown"),
        }


def _call(call: Json) -> Json:
    return {
        "id": str(call.get("tool_call_id") or ""),
        "function": str(call.get("function_name") or "unknown"),
        "arguments": call.get("arguments") if isinstance(call.get("arguments"), dict) else {},
        "type": "function",
    }


def _with_reasoning(step: Json, text: str) -> str | list[Json]:
    reasoning = step.get("reasoning_content")
    if not reasoning:
        return text
    return [{"type": "reasoning", "reasoning": str(reasoning)}, {"type": "text", "text": text}]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _part(part: Json) -> str:
    if part.get("type") == "text":
        return str(part.get("text") or "")
    return f"[{part.get('type')}: {(part.get('source') or {}).get('path')}]"
