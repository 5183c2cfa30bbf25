"""The tree digest depends on what a tree is and on nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bench.errors import DataError
from bench.tree import differences, digest, list_tree, shown


def tree(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.js").write_text("let a = 1;\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("src/a.js")
    return root


def test_the_digest_is_the_published_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hi\n")
    assert list_tree(tmp_path) == [
        {
            "path": "a", "mode": "644", "size": 3,
            "sha256": "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4",
        }
    ]  # fmt: skip
    assert digest(list_tree(tmp_path)) == "sha256:fb9497f6be0a1c9be801d8cf5f5e4f63e486993ac24879de5e861bfb05e95b28"


def test_times_owners_and_empty_folders_do_not_count(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    (two / "empty").mkdir()
    os.utime(two / "run.sh", (1, 1))
    (two / "src" / "a.js").chmod(0o600)
    assert digest(list_tree(one)) == digest(list_tree(two))


@pytest.mark.parametrize("change", ["content", "mode", "target", "name", "removed"])
def test_every_real_change_counts_and_is_named(tmp_path: Path, change: str) -> None:
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    match change:
        case "content":
            (two / "src/a.js").write_text("let a = 2;\n")
        case "mode":
            (two / "run.sh").chmod(0o644)
        case "target":
            (two / "link").unlink()
            (two / "link").symlink_to("run.sh")
        case "name":
            (two / "run.sh").rename(two / "go.sh")
        case "removed":
            (two / "link").unlink()
    lines = differences(list_tree(one), list_tree(two))
    assert digest(list_tree(one)) != digest(list_tree(two))
    assert lines and all(line.split(": ")[0] in ("added", "removed", "changed") for line in lines)


def test_names_of_any_bytes_are_kept_and_shown_harmlessly(tmp_path: Path) -> None:
    for name in (b"new\nline", b"\xff\xfe", b"-rf", "😀 中文".encode(), b"\x1b[31mred"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(name)
    entries = list_tree(tmp_path)
    assert len(entries) == 5
    assert [e for e in entries if "path_b64" in e] == [e for e in entries if e.get("path_b64")]
    assert all(shown(entry).isprintable() for entry in entries)


def test_links_are_read_and_never_followed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "out").symlink_to("/etc/passwd")
    assert [entry["target"] for entry in list_tree(tmp_path)] == ["loop", "/etc/passwd"]


def test_a_fifo_is_named_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe"):
        list_tree(tmp_path)


def test_a_thousand_nested_folders_are_no_trouble(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_DIRECTORY)
    for _ in range(1000):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_DIRECTORY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    try:
        assert list_tree(tmp_path) == []
    finally:  # Python's own removal, which pytest uses later, would exhaust the stack
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)
