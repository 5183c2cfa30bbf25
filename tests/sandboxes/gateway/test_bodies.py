"""Bodies come back byte for byte, and a growing conversation takes little room."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import DataError
from sandboxes.gateway.bodies import SMALL_BYTES, BodyStore, _common, read_body


def conversation(turns: int, seed: int = 0) -> list[bytes]:
    """Requests as agents send them: each one holds all before, and the tools stand behind."""
    dice = random.Random(seed)
    messages: list[dict[str, str]] = []
    bodies = []
    for _ in range(turns):
        messages.append({"role": "user", "content": "".join(dice.choices("abcdef 世界", k=3000))})
        told = {"model": "m", "messages": messages, "system": "s" * 5000, "tools": ["t" * 20_000]}
        bodies.append(json.dumps(told).encode())
    return bodies


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_growing_conversation_is_kept_in_little_room_and_comes_back(tmp_path: Path) -> None:
    store = BodyStore(tmp_path)
    bodies = [body for pair in zip(conversation(60), conversation(60, seed=1), strict=True) for body in pair]
    digests = [store.keep(body) for body in bodies]
    assert [read_body(tmp_path, digest) for digest in digests] == bodies
    assert size(tmp_path) < sum(map(len, bodies)) / 10


def test_the_same_body_is_kept_once(tmp_path: Path) -> None:
    (body,) = conversation(1)
    store = BodyStore(tmp_path)
    assert store.keep(body) == store.keep(body)
    assert size(tmp_path) < len(body) + 200
    assert store.keep(b"") == ""


def test_a_torn_last_entry_is_left_out_and_all_others_are_there(tmp_path: Path) -> None:
    store = BodyStore(tmp_path)
    first, second = (store.keep(body) for body in conversation(2))
    pack = tmp_path / "bodies.pack"
    whole = pack.read_bytes()
    for cut in (len(whole) - 1, whole.rindex(b'{"sha256"') + 5):
        pack.write_bytes(whole[:cut])
        assert read_body(tmp_path, first) == conversation(1)[0]
        with pytest.raises(DataError, match=f"no body {second}"):
            read_body(tmp_path, second)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.binary(max_size=40)), max_size=12))
def test_any_sequence_of_edits_comes_back(edits: list[tuple[int, int, bytes]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = BodyStore(folder)
        body, bodies = random.Random(1).randbytes(SMALL_BYTES + 300), []
        for at, length, new in edits:
            body = body[:at] + new + body[at + length :]
            body += b"x" * max(0, SMALL_BYTES - len(body))
            bodies.append((store.keep(body), body))
        for digest, kept in bodies:
            assert read_body(folder, digest) == kept


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_what_two_bodies_share_never_overlaps(head: bytes, one: bytes, other: bytes, tail: bytes) -> None:
    a, b = head + one + tail, head + other + tail
    begin, end = _common(a, b)
    assert begin >= len(head) and begin + end <= min(len(a), len(b))
    assert a[:begin] == b[:begin] and a[len(a) - end :] == b[len(b) - end :]


def test_a_missing_or_damaged_body_is_named(tmp_path: Path) -> None:
    store = BodyStore(tmp_path)
    first, second = (store.keep(body) for body in conversation(2))
    pack = tmp_path / "bodies.pack"
    whole = pack.read_bytes()
    at = whole.index(b"system")
    pack.write_bytes(whole[:at] + b"S" + whole[at + 1 :])
    for digest in (first, second):
        with pytest.raises(DataError, match=f"{digest} is damaged"):
            read_body(tmp_path, digest)
    pack.write_bytes(b"no pack")
    with pytest.raises(DataError, match="no body"):
        read_body(tmp_path, second)
    pack.write_bytes(b"no pack\n")
    with pytest.raises(DataError, match="cannot be read"):
        read_body(tmp_path, second)
