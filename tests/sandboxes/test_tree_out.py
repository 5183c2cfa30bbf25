"""The policy for archives, against archives no engine would make."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import InfraError
from bench.tree_links import why_refused
from sandboxes.sandbox import TreePolicy
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
    report = copy_out([_archive((name, tarfile.REGTYPE, ""))], tmp_path / "out", TreePolicy())
    assert [(item.path, item.reason) for item in report.refused] == [(name, "path out of the tree")]
    assert _names(tmp_path) == ["out"] and _names(tmp_path / "out") == []


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, b"Z"])
def test_special_members_are_refused(tmp_path, kind):
    report = copy_out([_archive(("top/odd", kind, ""))], tmp_path / "out", TreePolicy())
    assert [item.path for item in report.refused] == ["odd"] and report.files == 0


def test_a_file_cannot_be_written_through_a_link_of_the_same_archive(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    members = (
        ("top/d", tarfile.SYMTYPE, "../victim"),
        ("top/d/x", tarfile.REGTYPE, ""),
        ("top/d", tarfile.REGTYPE, ""),
    )
    report = copy_out([_archive(*members)], tmp_path / "out", TreePolicy())
    assert _names(victim) == [] and _names(tmp_path / "out") == []
    assert "d/x" in {item.path for item in report.refused}


def test_a_hard_link_to_what_was_not_copied_is_refused(tmp_path):
    members = (("top/h", tarfile.LNKTYPE, "/etc/passwd"), ("top/g", tarfile.LNKTYPE, "top/../../x"))
    report = copy_out([_archive(*members)], tmp_path / "out", TreePolicy())
    assert {item.path for item in report.refused} == {"h", "g"} and _names(tmp_path / "out") == []


def test_a_torn_archive_is_our_failure_and_leaves_nothing(tmp_path):
    whole = _archive(("top/a", tarfile.REGTYPE, ""), content=b"x" * 5000)
    with pytest.raises(InfraError):
        copy_out([whole[:3000]], tmp_path / "out", TreePolicy())
    assert not (tmp_path / "out").exists()


def test_an_existing_target_is_never_written_into(tmp_path):
    with pytest.raises(FileExistsError):
        copy_out([_archive()], tmp_path, TreePolicy())


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


_NAMES = st.sampled_from(["a", "b", "c"])
_TARGETS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=5).map("/".join)


@settings(deadline=None, max_examples=60)
@given(links=st.dictionaries(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), _TARGETS, max_size=6))
def test_no_kept_link_leads_out_of_a_real_folder(links, tmp_path_factory):
    members = [(f"top/{path}", tarfile.SYMTYPE, target) for path, target in links.items()]
    root = tmp_path_factory.mktemp("tree").resolve() / "out"
    copy_out([_archive(*members)], root, TreePolicy())
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            end = os.path.realpath(os.path.join(folder, name))
            assert end == str(root) or end.startswith(f"{root}/")
