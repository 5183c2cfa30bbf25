"""What judges are shown of the source: bounded, marked where cut, never outside the trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from judge_desk import START, SUBMISSION, write_tree

from evaluator.judges.model.sources import CUT, MAX_READ_CHARS, SourceError, Sources


def sources(tmp_path: Path, **files: str) -> Sources:
    more = {name.replace("__", "/"): text for name, text in files.items()}
    return Sources(write_tree(tmp_path / "a", SUBMISSION | more), write_tree(tmp_path / "b", START))


def test_the_tree_says_what_changed(tmp_path: Path) -> None:
    shop = write_tree(tmp_path / "a", SUBMISSION | {"new.css": "x"})
    (shop / "_attachments/notes.txt").unlink()
    tree = Sources(shop, write_tree(tmp_path / "b", START)).tree()
    assert "new.css  1 bytes  added" in tree
    assert f"app.js  {len(SUBMISSION['app.js'])} bytes  changed" in tree
    assert "_attachments/notes.txt  removed" in tree


def test_c98_three_megabytes_on_one_line_are_read_piece_by_piece(tmp_path: Path) -> None:
    bundle = "var a=1;" * 370_000 + "NEEDLE()"
    found = Sources(write_tree(tmp_path / "a", {"bundle.js": bundle}), write_tree(tmp_path / "b", START))
    shown = found.read("bundle.js")
    assert len(shown) < 1_200
    assert f"{CUT}: 2959008 more characters, read on from column 1001" in shown
    assert "NEEDLE" in found.read("bundle.js", column=len(bundle) - 20)
    assert len(found.search("needle")) < 400
    assert "NEEDLE()" in found.search("needle")
    assert "bundle.js  2960008 bytes  added" in found.tree()


def test_c98_a_long_file_says_where_to_read_on(tmp_path: Path) -> None:
    found = sources(tmp_path, long="line of text\n" * 5_000)
    shown = found.read("long")
    assert len(shown) < MAX_READ_CHARS + 100
    last = int(shown.rpartition("read on from line ")[2].split()[0])
    assert found.read("long", first=last).startswith(f"{last}: line of text")


@pytest.mark.parametrize("path", ["../b/app.js", "/etc/passwd", "a/../../b/app.js", "link", "folder/app.js"])
def test_nothing_outside_the_trees_is_read(tmp_path: Path, path: str) -> None:
    shop = write_tree(tmp_path / "a", SUBMISSION)
    (shop / "link").symlink_to("/etc/passwd")
    (shop / "folder").symlink_to("/etc")
    found = Sources(shop, write_tree(tmp_path / "b", START))
    with pytest.raises(SourceError):
        found.read(path)
    assert "occurs nowhere" in found.search("daemon:")


def test_a_picture_is_not_text(tmp_path: Path) -> None:
    shop = write_tree(tmp_path / "a", SUBMISSION)
    (shop / "a.png").write_bytes(b"\x89PNG\0\0")
    with pytest.raises(SourceError, match="is not text"):
        Sources(shop, tmp_path / "a").read("a.png")


def test_a_quotation_is_found_with_its_line_whatever_the_white_space(tmp_path: Path) -> None:
    found = sources(tmp_path)
    assert found.find_quote("app.js", "return   items.reduce((sum, item)\n => sum + item.price") == 2
    for path, quote in [("app.js", "return items.reduce()"), ("app.js", "}"), ("none.js", "return items.reduce")]:
        with pytest.raises(SourceError):
            found.find_quote(path, quote)


def test_the_difference_names_both_sides(tmp_path: Path) -> None:
    shown = sources(tmp_path).difference("app.js")
    assert "-  return items.length;" in shown
    assert "+  return items.reduce(" in shown
    with pytest.raises(SourceError, match="not among the files that changed"):
        sources(tmp_path).difference("_attachments/notes.txt")


def test_what_agents_leave_behind_is_hidden_unless_the_start_has_it(tmp_path: Path) -> None:
    left = {"CLAUDE.md": "x", ".aider.input.history": "x", ".claude/a.json": "x", "docs/AGENTS.md": "x"}
    shop = write_tree(tmp_path / "a", SUBMISSION | left | {"GEMINI.md": "x", "claude.md.txt": "x"})
    found = Sources(shop, write_tree(tmp_path / "b", START | {"GEMINI.md": "x"}))
    assert sorted(found.hidden) == sorted(left)
    assert "GEMINI.md" in found.tree()
    with pytest.raises(SourceError, match="no file"):
        found.read("CLAUDE.md")


def test_a_large_tree_is_summed_up_and_still_names_what_changed(tmp_path: Path) -> None:
    many = {f"lib/part{n}.js": "x" for n in range(900)}
    found = Sources(write_tree(tmp_path / "a", SUBMISSION | many), write_tree(tmp_path / "b", START | many))
    tree = found.tree()
    assert "lib/  900 files, 900 bytes" in tree
    assert "app.js  changed" in tree
