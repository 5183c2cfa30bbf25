"""The patch is for reading: any tree gives one, and git takes nothing in it for configuration."""

from __future__ import annotations

import os
import stat
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from bench.tree import list_tree
from harness.patch import MAX_PATCH_BYTES, Patch, write_patch

GIT_TRAPS = {
    "config": "[core]\n\tfsmonitor = {trap}\n\thooksPath = hooks\n\tsshCommand = {trap}\n\tpager = {trap}\n\tworktree = /\n"
    "\tattributesFile = ../.gitattributes\n\tgitProxy = {trap}\n\taskPass = {trap}\n\teditor = {trap}\n"
    "[diff]\n\texternal = {trap}\n[diff \"x\"]\n\ttextconv = {trap}\n\tcommand = {trap}\n"
    "[filter \"x\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n\trequired = true\n"
    "[alias]\n\tdiff = !{trap}\n\tinit = !{trap}\n\tfast-import = !{trap}\n[include]\n\tpath = ../evil\n"
    "[credential]\n\thelper = !{trap}\n[gpg]\n\tprogram = {trap}\n[uploadpack]\n\tpackObjectsHook = {trap}\n",
    "info/attributes": "* filter=x diff=x\n",
}  # fmt: skip
HOOKS = ("reference-transaction", "pre-commit", "post-checkout", "post-index-change", "fsmonitor-watchman", "update")


def make(root: Path, files: dict[str | bytes, bytes]) -> Path:
    root.mkdir(exist_ok=True)
    for name, content in files.items():
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def patch(tmp_path: Path, start: dict[str | bytes, bytes], final: dict[str | bytes, bytes]) -> tuple[Patch, str, str]:
    one, two = make(tmp_path / "start", start), make(tmp_path / "final", final)
    return patch_of(tmp_path, one, two)


def patch_of(tmp_path: Path, one: Path, two: Path) -> tuple[Patch, str, str]:
    text, named = tmp_path / "changes.patch", tmp_path / "not-shown.txt"
    made = write_patch(one, list_tree(one), two, list_tree(two), text, named)
    return made, text.read_text(errors="replace"), named.read_text() if named.exists() else ""


def set_traps(root: Path, canary: Path) -> None:
    """A `.git` and everything beside it through which git has been made to run a command."""
    trap = root / "trap.sh"
    trap.parent.mkdir(parents=True, exist_ok=True)
    trap.write_text(f"#!/bin/sh\necho hit >> {canary}\ncat\n")
    trap.chmod(0o755)
    for folder in (root / ".git", root / "sub/.git"):
        for name, text in GIT_TRAPS.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text.replace("{trap}", str(trap)))
        (folder / "hooks").mkdir()
        for hook in HOOKS:
            (folder / "hooks" / hook).symlink_to(trap)
    (root / "evil").write_text(f"[core]\n\tfsmonitor = {trap}\n")
    (root / ".gitattributes").write_text("* filter=x diff=x\n*.txt text eol=crlf working-tree-encoding=UTF-16\n")
    (root / ".gitmodules").write_text(f'[submodule "s"]\n\tpath = sub\n\turl = ext::{trap}\n\tupdate = !{trap}\n')
    (root / "a.txt").write_text("text\n")


def test_text_is_shown_and_binary_changes_are_listed(tmp_path: Path) -> None:
    made, text, named = patch(
        tmp_path,
        {"a.txt": b"old\n", "p.png": b"\0" * 10, "gone": b"x\n"},
        {"a.txt": b"new\n", "p.png": b"\0" * 12, "n.mp3": b"\0"},
    )
    assert made == Patch(whole=True, named_only=2)
    assert "-old\n+new\n" in text and "deleted file" in text
    assert named == "added: n.mp3 (1 bytes)\nchanged: p.png (10 -> 12 bytes)\n"


def test_what_is_shown_applies(tmp_path: Path) -> None:
    start: dict[str | bytes, bytes] = {"a b.txt": b"one\ntwo\n", b"n\nl": b"x\n"}
    _, text, _ = patch(tmp_path, start, {"a b.txt": b"one\n2\n", b"n\nl": b"y", "é/中.txt": b"new\n"})
    subprocess.run(["git", "apply", "-"], cwd=tmp_path / "start", input=text, text=True, check=True)
    assert list_tree(tmp_path / "start") == list_tree(tmp_path / "final")


def test_c127_nothing_in_a_tree_makes_git_run_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = tmp_path / "canary"
    start = make(tmp_path / "start", {"a.txt": b"old\n"})
    final = tmp_path / "final"
    set_traps(final, canary)
    monkeypatch.chdir(final)
    made, text, _ = patch_of(tmp_path, start, final)
    assert made.whole and "+text" in text and ".gitmodules" in text
    assert not canary.exists()


def test_c127_the_traps_do_spring_in_a_careless_git(tmp_path: Path) -> None:
    """What the test above proves nothing without."""
    canary = tmp_path / "canary"
    tree = make(tmp_path / "tree", {})
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    config = (tree / ".git/config").read_text()
    subprocess.run(["rm", "-rf", tree / ".git"], check=True)
    set_traps(tree, canary)
    (tree / ".git/config").write_text(
        config + GIT_TRAPS["config"].replace("{trap}", str(tree / "trap.sh")).replace("worktree = /", "")
    )
    for folder in ("objects", "refs"):
        (tree / ".git" / folder).mkdir()
    (tree / ".git/HEAD").write_text("ref: refs/heads/main\n")
    subprocess.run(["git", "add", "-A"], cwd=tree, capture_output=True, check=False)
    assert canary.exists()


def test_c127_the_users_own_git_settings_do_not_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary, trap = tmp_path / "canary", tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho hit >> {canary}\n")
    trap.chmod(0o755)
    hooks = tmp_path / "template/hooks"
    hooks.mkdir(parents=True)
    (hooks / "reference-transaction").symlink_to(trap)
    (tmp_path / ".gitconfig").write_text(
        f"[init]\n\ttemplateDir = {hooks.parent}\n[diff]\n\texternal = {trap}\n\tnoprefix = true\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(hooks.parent))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "elsewhere"))
    for name in ("GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_DIR", "GIT_ALTERNATE_OBJECT_DIRECTORIES"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hooks))
    _, text, _ = patch(tmp_path, {"a": b"1\n"}, {"a": b"2\n"})
    assert "a/a" in text and not canary.exists() and not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "name",
    [b"-rf", b"--output=x", b"a\nb", b"\xff\xfe", b"tab\there", b'quo"te', b"back\\slash", b"GIT~1", b".GIT", b" ", b"\x1b[31m",
     "日本語".encode(), "é".encode(), "e\u0301".encode(), b"CON", b"aux.", b"a" * 255, b"d/" * 60 + b"f", b".gitattributes", b"HEAD"],
)  # fmt: skip
def test_any_name_gives_a_patch(tmp_path: Path, name: bytes) -> None:
    made, text, named = patch(
        tmp_path, {}, {name: b"content\n", name + b".bin": b"\0"} if len(name) < 250 else {name: b"content\n"}
    )
    assert made.whole and "+content" in text
    assert all(char.isprintable() or char == "\n" for char in named)


def test_files_become_links_and_folders_and_back(tmp_path: Path) -> None:
    one = make(tmp_path / "start", {"a": b"file\n", "b/c": b"in a folder\n", "x": b"1\n"})
    two = make(tmp_path / "final", {"a/b": b"now a folder\n", "x": b"1\n"})
    (two / "b").symlink_to("a/b")
    (two / "x").chmod(0o755)
    made, text, _ = patch_of(tmp_path, one, two)
    assert made.whole and "120000" in text and "new mode 100755" in text


def test_a_large_file_is_never_read_whole_nor_shown(tmp_path: Path) -> None:
    start, final = make(tmp_path / "start", {}), make(tmp_path / "final", {"small.txt": b"shown\n"})
    with (final / "huge.txt").open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    tracemalloc.start()
    made, text, named = patch_of(tmp_path, start, final)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made == Patch(whole=True, named_only=1) and "+shown" in text
    assert named == f"added: huge.txt ({200 * 1024 * 1024} bytes)\n" and peak < 16 * 1024 * 1024


def test_a_long_patch_is_cut_and_says_so(tmp_path: Path) -> None:
    files: dict[str | bytes, bytes] = {f"f{n}.txt": b"line of text\n" * 70_000 for n in range(6)}
    made, text, _ = patch(tmp_path, {}, files)
    assert not made.whole and text.endswith("[cut here: the patch is longer]\n")
    assert MAX_PATCH_BYTES < len(text) < MAX_PATCH_BYTES + 100


def test_text_beyond_the_cap_is_named_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.patch.MAX_TEXT_BYTES", 100)
    made, text, named = patch(tmp_path, {}, {"a": b"a" * 90, "b": b"b" * 90})
    assert made.named_only == 1 and "aaa" in text and "bbb" not in text
    assert named == "added: b (90 bytes)\n"
    assert stat.S_ISREG((tmp_path / "changes.patch").stat().st_mode)
