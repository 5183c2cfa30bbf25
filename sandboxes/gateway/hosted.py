"""Tools that the provider runs itself: named, and taken out of a request.

What is known to be run by the client stays; a tool of a kind that nobody here knows is taken out too, since new
hosted tools keep appearing and a benchmark without a web must not grow one overnight. Each removal is recorded.
"""

from __future__ import annotations

import json
from typing import Any

from sandboxes.gateway.json_text import Document, NotEditable, Span, joined, spans
from sandboxes.gateway.policy import Protocol

Edits = list[dict[str, str]]

_ANTHROPIC_CLIENT = ("bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_")
_OPENAI_CLIENT = frozenset({
    "function", "custom", "local_shell", "apply_patch", "shell", "computer", "computer_use_preview", "tool_search",
    "namespace",
})  # fmt: skip
_GEMINI_CLIENT = frozenset({"functiondeclarations", "computeruse"})
_HOSTED_MEMBERS: dict[Protocol, frozenset[str]] = {
    "anthropic": frozenset({"mcp_servers", "container"}),
    "openai-chat": frozenset(
        {"web_search_options", "plugins", "enable_search", "search_options", "search_parameters"}
    ),
    "openai-responses": frozenset({"prompt", "plugins", "search_parameters"}),
    "gemini": frozenset({"cachedContent", "cached_content"}),
}
_SIDE_DOORS = frozenset({
    "models", "fallbacks", "route", "api_base", "api_key", "base_url", "model_list", "user_config",
    "custom_llm_provider", "extra_headers", "mock_response",
})  # fmt: skip
"""Members by which routing proxies let a request choose another model, address or key. No provider's API has them."""


def strip_hosted(document: Document, protocol: Protocol) -> Edits:
    """Take hosted tools out of `document`; returns what was taken, one entry each."""
    edits: Edits = []
    for key in document.members:
        if _plain(key) in {_plain(name) for name in _HOSTED_MEMBERS[protocol]}:
            document.drop(key)
            edits.append({"edit": "strip_hosted_tool", "what": key})
    if "tools" in document.members and isinstance(document.get("tools"), list):
        _strip_tools(document, protocol, edits)
    return edits


def strip_side_doors(document: Document) -> Edits:
    """Take out what would let a routing upstream go past the trial's model list."""
    found = [key for key in document.members if key in _SIDE_DOORS]
    for key in found:
        document.drop(key)
    return [{"edit": "strip_side_door", "what": key} for key in found]


def _strip_tools(document: Document, protocol: Protocol, edits: Edits) -> None:
    text = document.text
    place = document.members["tools"]
    elements, _ = spans(text, place.value_start)
    kept: list[str] = []
    gone: list[str] = []
    for element in elements:
        piece, names = _tool(text, element, protocol)
        gone += names
        if piece is not None:
            kept.append(piece)
    if not gone:
        return
    edits += [{"edit": "strip_hosted_tool", "what": name} for name in gone]
    if kept:
        document.put("tools", "[" + ",".join(kept) + "]")
    else:
        document.drop("tools")
    _mend_choice(document, protocol, edits, nothing_left=not kept, gone=gone)


def _tool(text: str, element: Span, protocol: Protocol) -> tuple[str | None, list[str]]:
    """What stays of one tool (None: nothing) and the names of what goes."""
    whole = text[element.start : element.end]
    if not isinstance(element.value, dict):
        return None, [f"a {type(element.value).__name__}"]
    members, _ = spans(text, element.start)
    if len({_plain(member.key) for member in members}) != len(members):
        raise NotEditable("a key stands twice in a tool")
    if protocol == "gemini":
        return _gemini_tool(text, members, whole)
    kind = element.value.get("type")
    if kind is not None and not isinstance(kind, str):
        return None, [str(kind)[:80]]
    if protocol == "anthropic":
        hosted = kind is not None and kind != "custom" and not kind.startswith(_ANTHROPIC_CLIENT)
    elif protocol == "openai-chat" and kind is None:
        hosted = "function" not in element.value
    else:
        hosted = kind not in _OPENAI_CLIENT or _in_a_hosted_box(element.value)
    if hosted:
        return None, [str(kind)[:80]]
    if kind == "namespace" and (inner := next((m for m in members if m.key == "tools"), None)):
        return _namespace(text, element, inner, whole)
    return whole, []


def _namespace(text: str, element: Span, inner: Span, whole: str) -> tuple[str | None, list[str]]:
    """A group of tools of the Responses protocol: its members are tools themselves."""
    kept, gone = [], []
    for tool in spans(text, inner.value_start)[0]:
        piece, names = _tool(text, tool, "openai-responses")
        gone += names
        kept += [piece] if piece is not None else []
    if not gone:
        return whole, []
    if not kept:
        return None, gone
    return text[element.start : inner.value_start] + f"[{','.join(kept)}]" + text[inner.end : element.end], gone


def _in_a_hosted_box(tool: dict[str, Any]) -> bool:
    """A shell or interpreter whose environment is a container of the provider's."""
    environment = tool.get("environment")
    kind = environment.get("type") if isinstance(environment, dict) else None
    return "container" in tool or (kind is not None and kind != "local")


def _gemini_tool(text: str, members: list[Span], whole: str) -> tuple[str | None, list[str]]:
    kept = [member for member in members if _plain(member.key) in _GEMINI_CLIENT]
    gone = [member.key for member in members if member not in kept]
    if not gone:
        return whole, []
    return (joined(text, kept, "{}") if kept else None), gone


def _mend_choice(
    document: Document, protocol: Protocol, edits: Edits, *, nothing_left: bool, gone: list[str]
) -> None:
    """A choice of tool that names one that is gone would be an error at the provider."""
    if protocol == "gemini":
        return
    choice = document.get("tool_choice")
    named = json.dumps(choice) if isinstance(choice, dict) else ""
    names_gone = any(json.dumps(name) in named or f'"{name.partition("_20")[0]}"' in named for name in gone)
    if "tool_choice" in document.members and (nothing_left or names_gone):
        document.drop("tool_choice")
        edits.append({"edit": "drop_tool_choice", "what": str(choice)[:80]})


def _plain(key: str) -> str:
    """Protobuf's JSON takes `googleSearch` and `google_search`; some servers ignore case."""
    return key.replace("_", "").lower()
