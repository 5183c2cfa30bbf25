"""Secrets leave transcripts, journals and reports; ordinary words stay (C130)."""

from __future__ import annotations

import base64
import itertools
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.redact import HELD_CHARS, MARK, Redactor

KEY = "sk-test-4f9Qz/81+bcD==Zk77aXw"

FOUND = {
    "anthropic": "sk-ant-api03-" + "Ab3dEf9hIj" * 9,
    "anthropic short": "sk-ant-abc123def456",
    "openai project": "sk-proj-" + "aB3_dE-9hI" * 8,
    "openai old": "sk-" + "Ab3dEf9hIjKl" * 4,
    "google": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"[:35],
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws session": "ASIAY34FZKBOKMUTVV7A",
    "github": "ghp_" + "a1B2c3D4e5" * 4,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.SflKxwRJSMeKKF2QT4fwpM",
    "trial token": "cdb-" + "aB3_dE-9hIk" * 3 + "aB3_dE-9hI",
}
KEPT = [
    "ASIAPACIFIC and ASIAPACIFICREGIONAL, EMEA, LATAM",
    "sk-learn, task-proj-2024-report-final, desk-ant-hill",
    "a page called sk-proj-management-tool-overview and sk-ant-colony-simulator",
    "sk-proj-2024-annual-report-final",
    "--sk-color: #ff0044; .risk-assessment-panel-container-wrapper {}",
    'fetch(url, {headers: {"x-api-key": process.env.API_KEY, Authorization: `Bearer ${token}`}})',
    "export OPENAI_API_KEY=$KEY; ANTHROPIC_API_KEY=<your key>; API_KEY: string",
    "the Authorization header, x-api-key: or not",
    "https://localhost:5173/path?key=value and http://[::1]:80/",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "AKIA, AIza and sk- are prefixes",
    "data:image/png;base64," + base64.b64encode(bytes(range(256))).decode(),
]


@pytest.mark.parametrize("name", FOUND)
def test_c130_keys_of_known_form_are_redacted_wherever_they_stand(name: str) -> None:
    secret = FOUND[name]
    for text in (secret, f"key is {secret}.", json.dumps({"t": f"a {secret}\n"}), f"'{secret}'", f"X={secret};"):
        clean = Redactor().text(text)
        assert secret not in clean and MARK in clean, text


@pytest.mark.parametrize("text", KEPT)
def test_c130_ordinary_words_and_slugs_stay(text: str) -> None:
    assert Redactor([KEY]).text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "x-api-key: hunter2secret",
        "X-Api-Key: abcdef",
        '{"x-api-key": "hunter2secret"}',
        r"{\"x-goog-api-key\": \"hunter2secret\"}",
        "curl -H 'Authorization: Bearer hunter2secret' example.org",
        "Proxy-Authorization: Basic hunter2secret",
        "ANTHROPIC_API_KEY=hunter2secret",
        "export DB_PASSWORD='hunter2secret'",
        "AWS_SECRET_ACCESS_KEY: hunter2secret",
        "http://user:hunter2secret@proxy.example:3128/",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2secret\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_c130_what_stands_where_a_credential_stands_is_redacted(text: str) -> None:
    clean = Redactor().text(text)
    assert "hunter2secret" not in clean and "abcdef" not in clean
    assert MARK in clean


def test_c130_a_named_secret_is_found_in_every_usual_encoding() -> None:
    redactor = Redactor([KEY])
    forms = [KEY, quote(KEY, safe=""), quote(KEY, safe="").lower(), KEY.encode().hex(), KEY.encode().hex().upper()]
    forms += [KEY.replace("/", "\\/")]
    for text in forms[:1] + forms[1:2] + forms[3:]:
        assert redactor.text(f"before {text} after") == f"before {MARK} after"
    for before in (b"", b"a", b"ab", b"user:"):
        for after in (b"", b"x", b"\n"):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                encoded = encode(before + KEY.encode() + after).decode()
                clean = redactor.text(f"Basic-like <{encoded}>")
                assert MARK in clean
                left = clean.replace(MARK, "").split("<")[1].rstrip(">")
                assert len(left) <= 12 + len(before) * 2, (before, after, clean)


@given(st.integers(4, len(KEY) - 3), st.integers(0, 200))
def test_c130_a_named_secret_split_over_two_events_is_redacted(cut: int, padding: int) -> None:
    event = '{"type":"delta","index":0,"text":"%s"}\n'
    text = event % ("x" * padding + KEY[:cut]) + event % (KEY[cut:] + " end")
    clean = Redactor([KEY]).text(text)
    assert KEY[cut:] not in clean and KEY[:cut] not in clean
    for line in clean.splitlines():
        json.loads(line)
    assert clean.endswith(' end"}\n')


def test_c130_a_named_secret_split_over_many_events_is_redacted() -> None:
    text = "\n".join(json.dumps({"delta": KEY[at : at + 5]}) for at in range(0, len(KEY), 5))
    clean = Redactor([KEY]).text(text)
    assert clean.count(MARK) == -(-len(KEY) // 5)


@given(st.lists(st.integers(0, 400), max_size=8), st.sampled_from([KEY, FOUND["anthropic"], FOUND["aws"]]))
def test_c130_a_stream_is_redacted_wherever_its_pieces_are_cut(cuts: list[int], secret: str) -> None:
    text = "words " * 20 + secret + " more words" * 20
    stream = Redactor([KEY]).stream()
    places = sorted({0, *cuts, len(text)})
    clean = "".join(stream.feed(text[a:b]) for a, b in itertools.pairwise(places)) + stream.end()
    assert clean == text.replace(secret, MARK)


def test_c130_a_long_stream_is_redacted_with_bounded_memory() -> None:
    stream = Redactor([KEY]).stream()
    text = ("word " * 997 + KEY + "\n") * 200
    out, longest = [], 0
    for at in range(0, len(text), 1000):
        out.append(stream.feed(text[at : at + 1000]))
        longest = max(longest, len(stream._held))
    out.append(stream.end())
    assert "".join(out) == text.replace(KEY, MARK)
    assert longest <= 4 * HELD_CHARS + 1000


def test_c130_json_values_are_redacted_under_a_credentials_name_and_anywhere_else() -> None:
    record = {"headers": {"x-api-key": "hunter2secret", "n": 3}, "list": [f"say {KEY}", None, 1.5], "API_KEY": "$KEY"}
    assert Redactor([KEY]).value(record) == {
        "headers": {"x-api-key": MARK, "n": 3},
        "list": [f"say {MARK}", None, 1.5],
        "API_KEY": "$KEY",
    }


@given(st.binary(max_size=300))
def test_bytes_that_hold_no_secret_pass_unchanged_and_redacting_is_idempotent(data: bytes) -> None:
    redactor = Redactor([KEY])
    once = redactor.bytes(data)
    assert redactor.bytes(once) == once
    if MARK.encode() not in once:
        assert once == data


@pytest.mark.parametrize(
    "unit", ["-----BEGIN PRIVATE KEY-----", "sk-ant-", "https://a:", "API_KEY:", KEY[:6] + '"}', "eyJ."]
)
def test_c130_hostile_output_does_not_make_it_slow(unit: str) -> None:
    text = unit * (500_000 // len(unit))
    began = time.process_time()
    Redactor([KEY]).text(text)
    assert time.process_time() - began < 5


def test_c130_a_short_configured_value_does_not_blank_ordinary_words() -> None:
    assert Redactor(["key", "", "x"]).text("the key is a word") == "the key is a word"
