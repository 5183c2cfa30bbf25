"""Whatever a workspace holds: nothing outside is touched or copied, and every part is there as it was, or listed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import hostile_workspaces
import pytest
from hostile_workspaces import Node, dumped, make, stream, workspaces
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bench.tree import digest, list_tree, path_bytes, target_bytes
from sandboxes.sandbox import MIB, Limits, TreePolicy, TreeReport
from sandboxes.snapshot import snapshot, snapshot_policy
from sandboxes.tree_in import tar_stream
from sandboxes.tree_out import copy_out

CALM = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def check(nodes: list[Node], report: TreeReport, out: Path, *, sockets: bool) -> None:
    """The promise of a snapshot, stated on the result alone."""
    assert list(report.entries) == list_tree(out), "the hashes taken on the way are those of the disk"
    entries = {path_bytes(entry): entry for entry in report.entries}
    by_path = {node.path: node for node in nodes}
    refused = {_raw(node.path) for node in report.refused}
    altered = {_raw(node.path): node.reason for node in report.altered}
    left_out = [_raw(part.path) for part in report.left_out]
    assert entries.keys() <= by_path.keys(), "nothing is there that was not"
    for node in nodes:
        listed = any(node.path == part or node.path.startswith(part + b"/") for part in [*refused, *left_out])
        entry = entries.get(node.path)
        assert not (entry and node.path in refused)
        if node.kind == "folder":
            continue
        if entry is None:
            assert listed or (node.kind == "socket" and not sockets), node
        elif node.kind in ("file", "hard"):
            real = by_path[node.to] if node.kind == "hard" else node
            assert Path(os.fsdecode(os.fsencode(out) + b"/" + node.path)).read_bytes() == real.content
            assert entry["mode"] == ("755" if real.mode & 0o100 else "644")
            assert bool(real.mode & 0o6000) == (node.path in altered)
        else:
            assert node.kind == "link"
            assert target_bytes(entry) == node.to or "made relative" in altered[node.path]
    root = os.path.realpath(out)
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            end = os.path.realpath(os.path.join(folder, name))
            assert end == root or end.startswith(f"{root}/"), f"{name!r} leads to {end!r}"
            assert os.lstat(os.path.join(folder, name)).st_mode & 0o6000 == 0


@CALM
@given(nodes=workspaces())
def test_everything_is_kept_as_it_was_or_listed(nodes: list[Node]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        archive = stream(nodes)
        report = snapshot(
            lambda target, policy: copy_out(lambda: [archive], target, policy, root="/workspace"), out, []
        )
        check(nodes, report, out, sockets=False)
        assert [p.name for p in Path(scratch).iterdir()] == ["out"]


@CALM
@given(nodes=workspaces(), seed=st.integers(0, 5), chunk=st.sampled_from([1000, 4096, 10_000_000]))
def test_format_order_and_chunks_of_the_stream_do_not_count(nodes: list[Node], seed: int, chunk: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        reports = []
        for number, archive in enumerate((stream(nodes), stream(nodes, pax=True, seed=seed))):
            size = chunk if number else len(archive)
            pieces = [archive[at : at + size] for at in range(0, len(archive), size)]
            target = Path(scratch) / str(number)
            reports.append(copy_out(lambda pieces=pieces: pieces, target, snapshot_policy([]), root="/workspace"))
        assert reports[0].entries == reports[1].entries
        assert reports[0].left_out == reports[1].left_out or any(n.kind == "hard" for n in nodes)
        assert {n.path for n in reports[0].refused} == {n.path for n in reports[1].refused}


@CALM
@given(nodes=workspaces())
def test_a_tree_goes_in_and_comes_back_the_same(nodes: list[Node]) -> None:
    """Sockets have their own mark on this way, so that trees made elsewhere have theirs listed."""
    with tempfile.TemporaryDirectory() as scratch:
        start, out = Path(scratch) / "workspace", Path(scratch) / "out"
        start.mkdir()
        make([node for node in nodes if node.mode or os.geteuid() == 0], start)
        report = copy_out(
            lambda: tar_stream(start, 0, top="x", special=True), out, snapshot_policy([]), root="/workspace"
        )
        check(nodes, report, out, sockets=True)
        again = copy_out(lambda: tar_stream(out, 0, top="y"), Path(scratch) / "again", TreePolicy())
        assert digest(again.entries) == digest(report.entries) and not again.refused


@CALM
@given(nodes=workspaces(), cut=st.floats(0, 1, exclude_max=True))
def test_a_torn_stream_is_never_taken_for_a_whole_one(nodes: list[Node], cut: float) -> None:
    from bench.errors import InfraError

    archive = stream(nodes).rstrip(b"\0")
    with tempfile.TemporaryDirectory() as scratch:
        torn = archive[: int(len(archive) * cut)]
        with pytest.raises((InfraError, NotADirectoryError)):
            copy_out(lambda: [torn], Path(scratch) / "out", TreePolicy())
        assert not any(Path(scratch).iterdir())


@pytest.mark.docker
def test_a_real_container_keeps_the_same_promise(make_box, tmp_path: Path) -> None:
    script = tmp_path / "home"
    script.mkdir()
    shutil.copyfile(hostile_workspaces.__file__, script / "make.py")
    box = make_box(limits=Limits(memory_bytes=512 * MIB, workspace_bytes=64 * MIB))
    box.put_tree(script, "/home/agent")
    rounds = iter(range(1000))

    @settings(CALM, max_examples=4, phases=[Phase.generate])  # shrinking would take an engine minutes
    @given(nodes=workspaces(40))
    def hold(nodes: list[Node]) -> None:
        number = next(rounds)
        spec = tmp_path / f"{number}.json"
        spec.write_text(dumped(nodes))
        where, out = f"/workspace/{number}", tmp_path / f"out{number}"
        assert box.exec(["mkdir", where], deadline_s=20).ok
        made = box.exec(["python3", "/home/agent/make.py", where], deadline_s=20, stdin=spec, stderr=tmp_path / "err")
        assert made.ok, (tmp_path / "err").read_text()
        report = snapshot(lambda target, policy: box.get_tree(where, target, policy), out, [])
        check(nodes, report, out, sockets=True)
        again = snapshot(lambda target, policy: box.get_tree(where, target, policy), tmp_path / f"again{number}", [])
        assert digest(again.entries) == digest(report.entries)

    hold()
