"""Trees into and out of real containers, pleasant and hostile ones."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from sandboxes.sandbox import MIB, TreePolicy, TreeTooLarge

pytestmark = pytest.mark.docker

ODD_NAMES = [b"plain", b"with space", b"new\nline", b"-rf", b"\xff\xfe", "日本語.txt".encode(), b"a" * 200, b"$(id)"]


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _digest(root: Path) -> dict[bytes, tuple[str, int, str]]:
    """Every member by its name as bytes, which Path could not hold apart from text."""
    found = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            key = os.path.relpath(path, os.fsencode(root))
            if Path(os.fsdecode(path)).is_symlink():
                found[key] = ("link", 0, os.fsdecode(os.readlink(path)))
            elif Path(os.fsdecode(path)).is_dir():
                found[key] = ("folder", 0, "")
            else:
                content = Path(os.fsdecode(path)).read_bytes()
                found[key] = (
                    "file",
                    Path(os.fsdecode(path)).stat().st_mode & 0o777,
                    hashlib.sha256(content).hexdigest(),
                )
    return found


def test_a_tree_comes_back_as_it_went_in(box, run, tmp_path):
    start = tmp_path / "start"
    start.mkdir()
    for number, name in enumerate(ODD_NAMES):
        folder = os.path.join(os.fsencode(start), b"d-" + name)
        Path(os.fsdecode(folder)).mkdir()
        Path(os.fsdecode(os.path.join(folder, name))).write_bytes(os.urandom(number * 700))
    (start / "empty").mkdir()
    (start / "run.sh").write_text("#!/bin/sh\n")
    (start / "run.sh").chmod(0o755)
    (start / ("deep/" * 20)).mkdir(parents=True)
    (start / "link").symlink_to("d-plain/plain")
    (start / "deep" / "up").symlink_to("../run.sh")
    box.put_tree(start)
    _, owners, _ = run(box, "sh", "-c", "find . -mindepth 1 ! -user 10001 | wc -l; ./run.sh; cat deep/up")
    assert owners == "0\n#!/bin/sh\n"
    report = box.get_tree("/workspace", tmp_path / "back", TreePolicy())
    assert _digest(tmp_path / "back") == _digest(start)
    assert report.files == len(ODD_NAMES) + 3 and not report.refused and not report.left_out


def test_a_hostile_tree_is_copied_without_what_is_hostile(box, run, tmp_path):
    script = """
        mkfifo pipe; ln -s /etc/passwd absolute; ln -s ../../etc/passwd climbing; mkdir -p sub/in
        ln -s .. sub/up; ln -s sub/up/../../etc trick; ln -s a b; ln -s b a; ln -s sub/in fine; ln -s none dangling
        echo content > file; ln file hard; chmod 4777 file; chmod 000 sub/in
        python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
    """
    run(box, "sh", "-c", script)
    report = box.get_tree("/workspace", tmp_path / "out", TreePolicy())
    refused = {item.path: item.reason for item in report.refused}
    assert refused.pop("pipe") == "FIFO"
    assert refused.keys() == {"absolute", "climbing", "trick", "a", "b"}
    out = tmp_path / "out"
    assert _names(out) == ["dangling", "file", "fine", "hard", "sub"]
    assert (out / "file").stat().st_nlink == (out / "hard").stat().st_nlink == 1
    assert (out / "hard").read_text() == "content\n"
    assert {(out / name).stat().st_mode & 0o7777 for name in ("file", "hard")} <= {0o755, 0o644}


@pytest.mark.parametrize("mounts_seen", [True, False])
def test_c56_sockets_are_named_also_in_a_frozen_container(box, run, tmp_path, monkeypatch, mounts_seen):
    if not mounts_seen:
        monkeypatch.setattr("sandboxes.tree_sockets._sockets_here", lambda mount: None)
    script = "import os, socket\nfor n in ('s', 'd/new\\nline', 'node_modules/x'):\n os.makedirs(os.path.dirname(n) or '.', exist_ok=True)\n socket.socket(socket.AF_UNIX).bind(n)"
    run(box, "python3", "-c", script)
    run(box, "sh", "-c", "mkdir shut && chmod 000 shut; echo x > f")
    box.freeze()
    policy = TreePolicy(leave_out=frozenset({"node_modules"}), list_sockets=True)
    report = box.get_tree("/workspace", tmp_path / "out", policy)
    assert [(item.path, item.reason) for item in report.refused] == [("d/new\nline", "socket"), ("s", "socket")]
    assert report.files == 1
    assert box.get_tree("/workspace", tmp_path / "again", TreePolicy()).refused == ()


def test_a_sparse_terabyte_is_refused_before_it_is_read(box, run, tmp_path):
    run(box, "truncate", "-s", "1T", "huge")
    with pytest.raises(TreeTooLarge, match="huge"):
        box.get_tree("/workspace", tmp_path / "out", TreePolicy())
    assert not (tmp_path / "out").exists()
    assert box.exec(["true"], deadline_s=10).ok


def test_left_out_folders_are_recorded_once_and_kept_where_the_start_had_them(box, run, tmp_path):
    run(
        box,
        "sh",
        "-c",
        "for d in node_modules vendor/node_modules a/.git; do mkdir -p $d; echo x > $d/f; done; echo y > a/f",
    )
    policy = TreePolicy(leave_out=frozenset({"node_modules", ".git"}), keep=frozenset({"vendor/node_modules"}))
    report = box.get_tree("/workspace", tmp_path / "out", policy)
    assert {item.path for item in report.left_out} == {"node_modules", "a/.git"}
    assert (tmp_path / "out/vendor/node_modules/f").exists() and (tmp_path / "out/a/f").exists()
    assert not (tmp_path / "out/node_modules").exists()


def test_caps_on_bytes_and_files_are_kept(box, run, tmp_path):
    run(box, "sh", "-c", "for i in $(seq 40); do head -c 1000 /dev/zero > f$i; done")
    for policy, cap in ((TreePolicy(max_bytes=30_000), "30000 bytes"), (TreePolicy(max_files=30), "30 files")):
        with pytest.raises(TreeTooLarge, match=cap):
            box.get_tree("/workspace", tmp_path / "out", policy)


def test_a_very_deep_tree_costs_only_its_depth(box, run, tmp_path):
    run(box, "python3", "-c", "import os\nfor i in range(800): os.mkdir('d'); os.chdir('d')")
    run(box, "sh", "-c", "echo x > kept")
    report = box.get_tree("/workspace", tmp_path / "out", TreePolicy())
    assert [item.reason for item in report.refused] == ["deeper than 64 levels"]
    assert (tmp_path / "out/kept").read_text() == "x\n"


def test_a_tree_that_is_missing_or_no_folder_is_told_apart(box, run, tmp_path):
    run(box, "sh", "-c", "echo > file; ln -s /etc away")
    with pytest.raises(FileNotFoundError):
        box.get_tree("/workspace/none", tmp_path / "a", TreePolicy())
    for name in ("file", "away"):
        with pytest.raises(NotADirectoryError):
            box.get_tree(f"/workspace/{name}", tmp_path / "b", TreePolicy())
        assert not (tmp_path / "b").exists()


def test_nothing_changes_under_the_copy_of_a_frozen_container(box, run, tmp_path):
    box.spawn(["sh", "-c", "while :; do mv a b 2>/dev/null || mv b a; date +%N > tick; done"])
    run(box, "sh", "-c", "echo x > a")
    box.freeze()
    box.get_tree("/workspace", tmp_path / "one", TreePolicy())
    box.get_tree("/workspace", tmp_path / "two", TreePolicy())
    assert _digest(tmp_path / "one") == _digest(tmp_path / "two")


def test_a_put_tree_with_a_link_to_the_host_does_not_carry_the_hosts_file(box, run, tmp_path):
    secret, start = tmp_path / "secret", tmp_path / "start"
    secret.write_text("rubric")
    start.mkdir()
    (start / "steal").symlink_to(secret)
    box.put_tree(start)
    ended, out, _ = run(box, "cat", "steal")
    assert ended.exit_code == 1 and out == ""


def test_memory_stays_flat_while_a_large_tree_passes(make_box, run, tmp_path):
    import tracemalloc

    from sandboxes.sandbox import Limits

    box = make_box(limits=Limits(memory_bytes=512 * MIB, workspace_bytes=128 * MIB))
    run(box, "sh", "-c", "head -c 90M /dev/zero > big")
    tracemalloc.start()
    box.get_tree("/workspace", tmp_path / "out", TreePolicy())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "out/big").stat().st_size == 90 * MIB
    assert peak < 16 * MIB
