"""The report's page as text: what it says, what it tolerates, and that it is the same every time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_report_results import make_results

from bench.errors import UsageError
from evaluator.report import write_report
from evaluator.report.pictures import Shelf, measure
from evaluator.report.visible import visible

AGENTS = ("gold", "partial", "stub")


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [make_results(tmp_path / agent, agent) for agent in AGENTS]


def page_of(folders: list[Path], **options: Any) -> str:
    return write_report(folders, folders[0].parent / "report", **options).read_text(encoding="utf-8")


def edit(path: Path, change: dict[str, Any]) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def text_of(page: str) -> str:
    """The page's words without its marks, script and style."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", bare))


def test_the_same_folders_give_the_same_bytes(folders: list[Path]) -> None:
    first = write_report(folders, folders[0].parent / "one").read_bytes()
    assert write_report(folders, folders[0].parent / "two.html").read_bytes() == first


def test_every_entry_has_a_cell_for_every_criterion_that_leads_to_its_evidence(folders: list[Path]) -> None:
    page = page_of(folders)
    targets = re.findall(r'class="heat-link" href="#([^"]+)"', page)
    assert len(targets) == len(set(targets)) == 3 * 25
    identifiers = re.findall(r'\sid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert set(targets) <= set(identifiers)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(identifiers)


def test_entries_are_ranked_by_strict_with_their_numbers_and_interval(folders: list[Path]) -> None:
    board = page_of(list(reversed(folders))).split('aria-label="Ranking, column witnessed"')[1].split("</ol>")[0]
    assert re.findall(r'<p class="name">(\w+)</p>', board) == ["gold", "partial", "stub"]
    words = text_of(board)
    assert "Strict 72.0 interval 58.0–86.0" in words
    assert "18 pass 4 partial 3 fail" in words
    assert "25 of 25 criteria scored, 5 of 5 tasks" in words


def test_a_lowered_verdict_shows_its_trail_with_the_rule_in_words(folders: list[Path]) -> None:
    words = text_of(page_of(folders))
    assert "PASS → FAIL the judge&#39;s own attempt failed" in words
    assert "no element matches .toast within 2.0 s" in words
    assert "On the start application, where it must fail: failed at step 4" in words
    assert "With other inputs on the submission (name = Bo Li): held" in words


def test_each_picture_is_embedded_once_and_nothing_is_loaded_from_elsewhere(folders: list[Path]) -> None:
    page = page_of(folders)
    blocks = re.findall(r'<script type="application/json" id="picture-([0-9a-f]+)">"data:image/jpeg;base64,', page)
    assert len(blocks) == len(set(blocks)) == 5 * (1 + 5 + 2 + 3 * (5 + 2))
    assert set(re.findall(r'data-picture="([^"]+)"', page)) == set(blocks)
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)


def test_the_policy_allows_only_the_pages_own_script_and_style(folders: list[Path]) -> None:
    page = page_of(folders)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy.startswith("default-src &#39;none&#39;; img-src data:; style-src &#39;sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"<[^>]+\s(?:style|on\w+)=", re.sub(r"<script\b.*?</script>", "", page, flags=re.S))


def test_missing_files_are_said_and_not_fatal(folders: list[Path]) -> None:
    stub = folders[2]
    (stub / "evidence/booking/1/submission.jpg").unlink()
    (stub / "evidence/booking/2/submission.jpg").write_text("<svg onload=alert(1)>")
    (stub / "evidence/booking/3/witness.json").unlink()
    (stub / "scores.json").unlink()
    (folders[0] / "evidence/booking/annotation.jpg").unlink()
    words = text_of(page_of(folders))
    assert "Picture missing: evidence/booking/1/submission.jpg" in words
    assert "Not shown: evidence/booking/2/submission.jpg is no PNG, JPEG, GIF or WebP picture" in words
    assert "evidence/booking/3/witness.json is missing from the results folder" in words
    assert "stub: scores.json is missing" in words
    assert "Picture missing: annotation.jpg" in words


@pytest.mark.parametrize("name", ["lock.json", "cases.json", "scores.json", "journal.jsonl"])
@pytest.mark.parametrize("content", [None, "{", "[]", "null", '{"cases": 3, "entry": [], "columns": "x"}'])
def test_any_file_may_be_missing_or_misshapen(tmp_path: Path, name: str, content: str | None) -> None:
    folder = make_results(tmp_path / "gold", "gold")
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    assert "Verdicts" in text_of(page_of([folder]))


def test_an_incomplete_result_says_so_with_its_bounds(folders: list[Path]) -> None:
    coverage = {"tasks_scored": 4, "tasks": 5, "criteria_scored": 23, "criteria": 25}
    bounds = {"strict": {"low": 64.0, "high": 72.0}}
    edit(folders[1] / "scores.json", {"incomplete": True, "coverage": coverage, "bounds": bounds})
    assert re.search(r"partial: incomplete\. 2 criteria are unscored.*Strict 64\.0–72\.0", text_of(page_of(folders)))


def test_entries_under_other_conditions_are_ranked_apart(folders: list[Path]) -> None:
    edit(folders[2] / "lock.json", {"conditions": {"egress": "open", "media": "native"}})
    page = page_of(folders)
    assert page.count('aria-label="Ranking, column witnessed"') == 2
    assert re.findall(r'<h2 class="group">(.*?)</h2>', page) == ["egress none", "egress open"]


def test_entries_of_the_same_agent_are_told_apart(tmp_path: Path) -> None:
    folders = [make_results(tmp_path / name, "gold") for name in ("one", "two")]
    edit(folders[1] / "lock.json", {"entry": {"agent": "gold", "model": "m-2", "harness": "x", "attempt": 1}})
    names = re.findall(r'<p class="name">([^<]+)</p>', page_of(folders))
    assert set(names) == {"gold", "gold · m-2"}


def test_a_build_that_failed_shows_as_fail_with_its_reason(folders: list[Path]) -> None:
    journal = folders[2] / "journal.jsonl"
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    kept = [r for r in records if not (r.get("case") == "player" and r["type"] == "criterion")]
    for record in kept:
        if record.get("case") == "player":
            record |= {"outcome": "build_failed", "reason": "npm run build ended with 1"}
    journal.write_text("".join(json.dumps(record) + "\n" for record in kept))
    words = text_of(page_of(folders))
    assert "stub 0 of 5 pass 0 of 5 pass 0 of 5 pass build failed npm run build ended with 1" in words


def test_no_picture_is_taken_from_outside_the_results_folder(tmp_path: Path, folders: list[Path]) -> None:
    (tmp_path / "secret.jpg").write_bytes((folders[0] / "evidence/booking/annotation.jpg").read_bytes())
    (folders[0] / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    for name in ("../secret.jpg", str(tmp_path / "secret.jpg"), "link.jpg", "a\0b"):
        assert Shelf().take_inside(folders[0], name).key == ""


def test_pictures_beyond_the_budget_are_left_out_with_a_note(tmp_path: Path, folders: list[Path]) -> None:
    picture = folders[0] / "evidence/booking/annotation.jpg"
    shelf = Shelf(budget_bytes=picture.stat().st_size - 1)
    found = shelf.take(picture, "annotation.jpg")
    assert (found.key, found.left_out, shelf.left_out) == ("", True, 1)
    assert found.note.startswith("Left out to keep the page small: annotation.jpg")


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_pictures_size_is_read_from_its_header(tmp_path: Path, form: str) -> None:
    from PIL import Image

    Image.new("RGB", (37, 21), "teal").save(tmp_path / "picture", form)
    assert measure((tmp_path / "picture").read_bytes()) == (f"image/{form.lower()}", 37, 21)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8\xff", b"\xff\xd8\xff\xe0\x00\x00", b"\x89PNG\r\n\x1a\n", b"<svg/>"]
)
def test_what_is_no_picture_has_no_size(content: bytes) -> None:
    assert measure(content) is None


def test_control_direction_and_broken_characters_are_drawn() -> None:
    assert visible("a\x1b[31mb\x07\r\nc\td") == "a␛[31mb␇\nc\td"
    assert visible("x\u202ey\x9b\ud800\u200b") == "x⟨U+202E⟩y⟨U+009B⟩⟨U+D800⟩⟨U+200B⟩"
    assert visible("z" * 20_005).endswith("… (5 more characters not shown)")


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one results folder"):
        write_report([], tmp_path / "report")
