"""Tools that providers run are taken out unless allowed, and every removal is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fakes.model_server import ModelServer
from gateway_calls import CHAT, GEMINI, MESSAGES, RESPONSES, Agent, body

from sandboxes.gateway.hosted import strip_hosted
from sandboxes.gateway.json_text import Document, NotEditable

Play = Callable[..., ModelServer]
OpenTrial = Callable[..., Agent]

OWN: dict[str, list[dict[str, Any]]] = {
    MESSAGES: [
        {"name": "Bash", "input_schema": {"type": "object"}}, {"type": "custom", "name": "x", "input_schema": {}},
        {"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728", "name": "edit"},
        {"type": "memory_20250818", "name": "memory"},
    ],
    CHAT: [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "c"}}],
    RESPONSES: [
        {"type": "function", "name": "f"}, {"type": "custom", "name": "apply_patch"}, {"type": "local_shell"},
        {"type": "shell", "environment": {"type": "local"}},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]},
    ],
    GEMINI: [{"functionDeclarations": [{"name": "f"}]}, {"function_declarations": [{"name": "g"}]}],
}  # fmt: skip
HOSTED: dict[str, list[tuple[dict[str, Any], str]]] = {
    MESSAGES: [
        ({"type": "web_search_20250305", "name": "web_search"}, "web_search_20250305"),
        ({"type": "web_fetch_20250910", "name": "web_fetch"}, "web_fetch_20250910"),
        ({"type": "code_execution_20250825", "name": "code_execution"}, "code_execution_20250825"),
        ({"type": "mcp_toolset", "mcp_server_name": "s"}, "mcp_toolset"),
        ({"type": "brand_new_20270101", "name": "n"}, "brand_new_20270101"),
    ],
    CHAT: [({"type": "web_search"}, "web_search"), ({"name": "no type, no function"}, "None")],
    RESPONSES: [
        ({"type": "web_search"}, "web_search"), ({"type": "web_search_preview_2025_03_11"}, "web_search_preview_2025_03_11"),
        ({"type": "mcp", "server_url": "https://x"}, "mcp"), ({"type": "file_search"}, "file_search"),
        ({"type": "code_interpreter", "container": {"type": "auto"}}, "code_interpreter"),
        ({"type": "image_generation"}, "image_generation"),
        ({"type": "shell", "environment": {"type": "container_auto"}}, "shell"),
        ({"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]}, "web_search"),
    ],
    GEMINI: [
        ({"googleSearch": {}}, "googleSearch"), ({"google_search": {}}, "google_search"), ({"urlContext": {}}, "urlContext"),
        ({"codeExecution": {}}, "codeExecution"), ({"google_search_retrieval": {}}, "google_search_retrieval"),
    ],
}  # fmt: skip
CASES = [(path, tool, name) for path, tools in HOSTED.items() for tool, name in tools]


@pytest.mark.parametrize(("path", "tool", "name"), CASES)
def test_a_hosted_tool_goes_and_the_agents_own_stay(
    play: Play, open_trial: OpenTrial, path: str, tool: dict[str, Any], name: str
) -> None:
    server = play()
    agent = open_trial()
    own = OWN[path]
    assert agent.ask(path, body(path, tools=[own[0], tool, *own[1:]])).status == 200
    assert json.loads(server.requests()[0]["body"])["tools"] == own
    assert {"edit": "strip_hosted_tool", "what": name} in agent.last().edits
    assert agent.close().hosted_tools_stripped == {name: 1}


@pytest.mark.parametrize(("path", "tool", "name"), CASES)
def test_where_they_are_allowed_the_request_is_not_touched(
    play: Play, open_trial: OpenTrial, path: str, tool: dict[str, Any], name: str
) -> None:
    server = play()
    agent = open_trial(hosted_tools=True)
    raw = json.dumps(body(path, tools=[tool, *OWN[path]]))
    assert agent.ask(path, raw.encode()).status == 200
    assert server.requests()[0]["body"] == raw
    assert agent.last().edits == []


@pytest.mark.parametrize("path", list(OWN))
def test_the_agents_own_tools_are_not_touched(play: Play, open_trial: OpenTrial, path: str) -> None:
    server = play()
    raw = json.dumps(body(path, tools=OWN[path], tool_choice={"type": "auto"}))
    assert open_trial().ask(path, raw.encode()).status == 200
    assert server.requests()[0]["body"] == raw


def test_nothing_but_hosted_tools_leaves_no_empty_list_and_no_choice(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    agent = open_trial()
    agent.ask(MESSAGES, body(MESSAGES, tools=tools, tool_choice={"type": "tool", "name": "web_search"}))
    sent = json.loads(server.requests()[0]["body"])
    assert "tools" not in sent and "tool_choice" not in sent
    assert [edit["edit"] for edit in agent.last().edits] == ["strip_hosted_tool", "drop_tool_choice"]


def test_a_choice_of_a_tool_that_went_goes_with_it(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    tools = [*OWN[MESSAGES], {"type": "web_search_20250305", "name": "web_search"}]
    open_trial().ask(MESSAGES, body(MESSAGES, tools=tools, tool_choice={"type": "tool", "name": "web_search"}))
    assert "tool_choice" not in json.loads(server.requests()[0]["body"])


@pytest.mark.parametrize(
    ("path", "member", "value"),
    [
        (MESSAGES, "mcp_servers", [{"type": "url", "url": "https://x"}]),
        (MESSAGES, "container", {"skills": []}),
        (CHAT, "web_search_options", {}),
        (CHAT, "plugins", [{"id": "web"}]),
        (CHAT, "enable_search", True),
        (RESPONSES, "prompt", {"id": "pmpt_1"}),
        (GEMINI, "cachedContent", "cachedContents/1"),
    ],
)
def test_members_that_switch_hosted_tools_on_go(
    play: Play, open_trial: OpenTrial, path: str, member: str, value: object
) -> None:
    server = play()
    agent = open_trial()
    assert agent.ask(path, body(path, **{member: value})).status == 200
    assert member not in json.loads(server.requests()[0]["body"])
    assert agent.close().hosted_tools_stripped == {member: 1}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (MESSAGES, [{"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}]),
        (MESSAGES, [{"type": "document", "source": {"type": "url", "url": "HTTP://x.example/a.pdf"}}]),
        (MESSAGES, [{"type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}]}]),
        (CHAT, [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]),
        (RESPONSES, [{"type": "input_image", "image_url": "https://x.example/a.png"}]),
        (RESPONSES, [{"type": "input_file", "file_url": "https://x.example/a.pdf"}]),
        (GEMINI, [{"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}}]),
        (GEMINI, [{"file_data": {"file_uri": "gs://bucket/a", "mime_type": "video/mp4"}}]),
    ],
)  # fmt: skip
def test_an_address_for_the_provider_to_fetch_is_refused(
    play: Play, open_trial: OpenTrial, path: str, content: list[Any]
) -> None:
    server = play()
    told = body(path)
    if path == GEMINI:
        told["contents"] = [{"role": "user", "parts": content}]
    else:
        told["input" if path == RESPONSES else "messages"] = [{"role": "user", "content": content}]
    assert open_trial().ask(path, told).status == 400
    assert server.requests() == []
    assert open_trial(hosted_tools=True).ask(path, told).status == 200


def test_an_address_that_a_tool_was_called_with_is_only_text(play: Play, open_trial: OpenTrial) -> None:
    play()
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "show",
        "input": {"type": "image", "source": {"url": "https://x.example"}},
    }
    told = body(MESSAGES) | {"messages": [{"role": "assistant", "content": [call]}]}
    assert open_trial().ask(MESSAGES, told).status == 200


@pytest.mark.parametrize("member", ["models", "fallbacks", "api_base", "api_key", "base_url", "custom_llm_provider"])
def test_side_doors_of_routing_proxies_are_shut_even_with_hosted_tools(
    play: Play, open_trial: OpenTrial, member: str
) -> None:
    server = play()
    agent = open_trial(hosted_tools=True)
    assert agent.ask(CHAT, body(CHAT, **{member: ["dearest-model"]})).status == 200
    assert member not in json.loads(server.requests()[0]["body"])
    assert {"edit": "strip_side_door", "what": member} in agent.last().edits


def test_price_classes_that_no_table_follows_are_dropped(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    agent.ask(RESPONSES, body(RESPONSES, service_tier="priority"))
    agent.ask(MESSAGES, body(MESSAGES, service_tier="auto", speed="fast"))
    sent = [json.loads(request["body"]) for request in server.requests()]
    assert "service_tier" not in sent[0] and "speed" not in sent[1] and sent[1]["service_tier"] == "auto"


@pytest.mark.parametrize(
    "text",
    [
        '{"tools":[{"type":"function","type":"web_search"}]}',
        '{"tools":[{"type":"function","Type":"web_search","name":"f"}]}',
    ],
)
def test_a_tool_that_can_be_read_two_ways_is_refused(text: str) -> None:
    with pytest.raises(NotEditable):
        strip_hosted(Document(text.encode()), "openai-responses")
