"""user_queries.json: `[0].text` is the request; whatever else it holds is kept in order and dropped nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import DataError
from bench.queries import read_queries


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ([{"text": "a"}], ("a",)),
        ([{"text": "a", "turn": 1}, {"text": "b"}], ("a", "b")),
        (["a", "b"], ("a", "b")),
        ({"text": "a", "lang": "en"}, ("a",)),
        ({"user_queries": [{"text": "a"}, "b"], "track": "RE"}, ("a", "b")),
        ({"queries": ["a"]}, ("a",)),
        ({"turns": [{"text": "a"}]}, ("a",)),
        ([{"text": "a"}, {"image": "ü.png", "n": 1}], ("a", '{"image": "ü.png", "n": 1}')),
        ([{"text": "a"}, 3, None, ["b"]], ("a", "3", "null", '["b"]')),
        ([{"text": ""}], ("",)),
        ([{"text": "a\u0000b\r\n \t"}], ("a\u0000b\r\n \t",)),
    ],
)
def test_every_entry_is_kept_in_order(content: Any, found: tuple[str, ...]) -> None:
    assert read_queries(json.dumps(content).encode(), "q.json") == found


@given(st.lists(st.text(st.characters(blacklist_categories=("Cs",))), min_size=1), st.booleans())
def test_c13_any_text_is_verbatim_escaped_or_not(texts: list[str], escaped: bool) -> None:
    content = json.dumps([{"text": text} for text in texts], ensure_ascii=escaped).encode()
    assert read_queries(content, "q.json") == tuple(texts)
    assert read_queries(b"\xef\xbb\xbf" + content, "q.json") == tuple(texts), "C1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[]", "empty"),
        (b"{}", "found keys"),
        (b"7", "found int"),
        (b'[{"say": "x"}]', r"entry 0: no `text`; found \['say'\]"),
        (b'[{"text": ["a"]}]', "entry 0"),
        (b"[1]", "entry 0: no `text`; found int"),
        (b'{"queries": ["a"], "turns": ["b"]}', "found keys"),
        (b'[{"text": "a", "text": "b"}]', "given twice"),
        (b'[{"text": "a", "n": NaN}]', "NaN"),
        (b'[{"text": "a", "n": 1e999}]', "too large"),
        (b'[{"text": "\\ud83d"}]', "half a character"),
        (b'[{"text": "a"}, {"text": "\\udc00"}]', "entry 1.*half a character"),
        (b'["\xff"]', "not UTF-8"),
        ('["a"]'.encode("utf-16"), "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"", "strict JSON"),
    ],
)
def test_what_is_unusable_is_refused_naming_the_file(content: bytes, says: str) -> None:
    with pytest.raises(DataError, match=rf"q\.json.*{says}"):
        read_queries(content, "q.json")
