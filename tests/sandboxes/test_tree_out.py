"""The policy for archives, against archives no engine would make."""

from __future__ import annotations

import io
import os
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import InfraError
from bench.tree_links import inside, why_refused
from sandboxes.sandbox import TreePolicy, TreeTooLarge
from sandboxes.tree_out import copy_out


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _archive(*members: tuple[str, bytes, str], content: bytes = b"x") -> bytes:
    """A tar of (name, type, link target) below the directory `top`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind, link in (("top", tarfile.DIRTYPE, ""), *members):
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode = kind, link, 0o6777
            member.size = len(content) if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "top/../../x", "other/x", "top/a/../../x"])
def test_a_path_out_of_the_tree_is_refused_and_nothing_is_written(tmp_path, name):
    report = copy_out(lambda: [_archive((name, tarfile.REGTYPE, ""))], tmp_path / "out", TreePolicy())
    assert [(item.path, item.reason) for item in report.refused] == [(name, "path out of the tree")]
    assert _names(tmp_path) == ["out"] and _names(tmp_path / "out") == []


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, b"Z"])
def test_special_members_are_refused(tmp_path, kind):
    report = copy_out(lambda: [_archive(("top/odd", kind, ""))], tmp_path / "out", TreePolicy())
    assert [item.path for item in report.refused] == ["odd"] and report.files == 0


def test_a_file_cannot_be_written_through_a_link_of_the_same_archive(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    members = (
        ("top/d", tarfile.SYMTYPE, "../victim"),
        ("top/d/x", tarfile.REGTYPE, ""),
        ("top/d", tarfile.REGTYPE, ""),
    )
    report = copy_out(lambda: [_archive(*members)], tmp_path / "out", TreePolicy())
    assert _names(victim) == [] and _names(tmp_path / "out") == []
    assert "d/x" in {item.path for item in report.refused}


def test_a_hard_link_to_what_was_not_copied_is_refused(tmp_path):
    members = (("top/h", tarfile.LNKTYPE, "/etc/passwd"), ("top/g", tarfile.LNKTYPE, "top/../../x"))
    report = copy_out(lambda: [_archive(*members)], tmp_path / "out", TreePolicy())
    assert {item.path for item in report.refused} == {"h", "g"} and _names(tmp_path / "out") == []


def test_a_torn_archive_is_our_failure_and_leaves_nothing(tmp_path):
    whole = _archive(("top/a", tarfile.REGTYPE, ""), content=b"x" * 5000)
    with pytest.raises(InfraError):
        copy_out(lambda: [whole[:3000]], tmp_path / "out", TreePolicy())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["", "a/" * 3000, "b" * 5000])
def test_a_link_target_no_file_system_has_is_refused_by_name(tmp_path, target):
    report = copy_out(lambda: [_archive(("top/l", tarfile.SYMTYPE, target))], tmp_path / "out", TreePolicy())
    assert [item.path for item in report.refused] == ["l"] and report.files == 0


def test_an_existing_target_is_never_written_into(tmp_path):
    with pytest.raises(FileExistsError):
        copy_out(lambda: [_archive()], tmp_path, TreePolicy())


@pytest.mark.parametrize(
    ("link", "links", "refused"),
    [
        ("a", {"a": "b"}, False),
        ("d/a", {"d/a": "../b"}, False),
        ("d/a", {"d/a": "../../b"}, True),
        ("a", {"a": "/b"}, True),
        ("b", {"s/a": "..", "b": "s/a/../x"}, True),
        ("b", {"s/a": "deep/er", "b": "s/a/../x"}, False),
        ("a", {"a": "a"}, True),
    ],
)
def test_links_are_followed_as_the_kernel_would(link, links, refused):
    assert (why_refused(link, links) is not None) is refused


@pytest.mark.parametrize(
    ("link", "target", "made"),
    [
        ("a", "/workspace/b", "b"),
        ("d/e/a", "/workspace/b/c", "../../b/c"),
        ("a", "/workspace", "."),
        ("d/a", "/workspace//b/", "../b"),
        ("a", "/workspaces/b", "/workspaces/b"),
        ("a", "b/../c", "b/../c"),
    ],
)
def test_an_absolute_link_below_the_root_is_made_relative(link, target, made):
    assert inside(link, target, "/workspace") == made
    assert inside(link, target, "") == target


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE])
def test_a_name_this_file_system_takes_for_another_is_refused_by_name(tmp_path, kind):
    """As `readme` beside `README` is where letter case does not count: there it exists before it is made."""
    large = _archive(("top/large", tarfile.REGTYPE, ""), content=b"x" * 300_000).rstrip(b"\0")
    large += b"\0" * (-len(large) % 512)
    rest = _archive(("top/readme", kind, "large"), ("top/z", tarfile.REGTYPE, ""))[512:]

    def stream():
        yield large
        (tmp_path / "out/readme").write_text("README")
        yield rest

    report = copy_out(stream, tmp_path / "out", TreePolicy())
    assert [(item.path, item.reason) for item in report.refused] == [
        ("readme", "this machine's file system takes its name for another one's")
    ]
    assert {entry["path"] for entry in report.entries} == {"large", "z"}
    assert (tmp_path / "out/readme").read_text() == "README"


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (TreePolicy(max_file_bytes=99), "'b' has 100 bytes, over 99 bytes for one file"),
        (TreePolicy(max_bytes=250), "over 250 bytes in all, at 'd'"),
        (TreePolicy(max_files=2), "over 2 files, at 'd'"),
        (TreePolicy(max_bytes=60, max_file_bytes=1000), "left-out parts too, is over 240 bytes, at 'top/c'"),
        (TreePolicy(max_files=0, max_bytes=1 << 20), "over 0 members, at 'top/b'"),
    ],
)
def test_every_cap_is_named_with_the_member_and_nothing_stays(tmp_path, policy, said):
    members = [(f"top/{name}", tarfile.REGTYPE, "") for name in "bcd"]
    if "left-out" in said:
        members = [("top/skip", tarfile.DIRTYPE, ""), *[(f"top/skip/{n}", tarfile.REGTYPE, "") for n in "bcd"]]
        policy, said = replace(policy, leave_out=frozenset({"skip"})), said.replace("top/c", "top/skip/d")
    with pytest.raises(TreeTooLarge, match=re.escape(said)):
        copy_out(lambda: [_archive(*members, content=b"x" * 100)], tmp_path / "out", policy)
    assert _names(tmp_path) == []


def test_a_path_over_a_cap_is_refused_alone(tmp_path):
    members = [("top/" + "d/" * depth + "f", tarfile.REGTYPE, "") for depth in (1, 2, 3)] + [
        ("top/long", tarfile.REGTYPE, "")
    ]
    report = copy_out(lambda: [_archive(*members)], tmp_path / "out", TreePolicy(max_depth=3, max_path_bytes=5))
    assert [(n.path, n.reason) for n in report.refused] == [("d/d/d/f", "path longer than 5 bytes")]
    report = copy_out(lambda: [_archive(*members)], tmp_path / "two", TreePolicy(max_depth=3))
    assert [(n.path, n.reason) for n in report.refused] == [("d/d/d/f", "deeper than 3 levels")]


def test_a_hard_link_to_a_file_that_is_left_out_keeps_its_content(tmp_path):
    members = (
        ("top/node_modules", tarfile.DIRTYPE, ""), ("top/node_modules/a", tarfile.REGTYPE, ""),
        ("top/src", tarfile.DIRTYPE, ""), ("top/src/b", tarfile.LNKTYPE, "top/node_modules/a"),
        ("top/src/c", tarfile.LNKTYPE, "top/node_modules/a"),
    )  # fmt: skip
    policy = TreePolicy(leave_out=frozenset({"node_modules"}))
    report = copy_out(lambda: [_archive(*members, content=b"work")], tmp_path / "out", policy)
    assert (tmp_path / "out/src/b").read_bytes() == (tmp_path / "out/src/c").read_bytes() == b"work"
    assert [(part.path, part.files, part.bytes) for part in report.left_out] == [("node_modules", 1, 4)]
    assert report.refused == () and report.files == 2


_NAMES = st.sampled_from(["a", "b", "c"])
_TARGETS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=5).map("/".join)


@settings(deadline=None, max_examples=60)
@given(links=st.dictionaries(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), _TARGETS, max_size=6))
def test_no_kept_link_leads_out_of_a_real_folder(links, tmp_path_factory):
    members = [(f"top/{path}", tarfile.SYMTYPE, target) for path, target in links.items()]
    root = tmp_path_factory.mktemp("tree").resolve() / "out"
    copy_out(lambda: [_archive(*members)], root, TreePolicy())
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            end = os.path.realpath(os.path.join(folder, name))
            assert end == str(root) or end.startswith(f"{root}/")
