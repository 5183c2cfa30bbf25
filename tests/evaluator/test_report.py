"""The report's pages as text: what they say, what they tolerate, and that they are the same every time."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from test_report_results import make_results

from bench.errors import UsageError
from bench.terminal import safe_json
from evaluator.report import write_report
from evaluator.report.patch import read_patch
from evaluator.report.pictures import Shelf, measure
from evaluator.report.put import Site
from evaluator.report.visible import visible

AGENTS = ("gold", "partial", "stub")
BOOKING_1, BOOKING_2, BOOKING_3 = (f"criteria/booking-{n}.html" for n in (1, 2, 3))


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [make_results(tmp_path / agent, agent) for agent in AGENTS]


def pages_of(folders: list[Path], **options: Any) -> dict[str, str]:
    """Name below the site's folder → page; the page to open is "index.html"."""
    page = write_report(folders, folders[0].parent / "report", **options)
    files = page.with_name("index-files")
    below = {path.relative_to(files).as_posix(): path.read_text(encoding="utf-8") for path in files.rglob("*.html")}
    return {"index.html": page.read_text(encoding="utf-8"), **below}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages about three entries, for tests that only read."""
    root = tmp_path_factory.mktemp("report")
    return pages_of([make_results(root / agent, agent) for agent in AGENTS])


def edit(path: Path, change: dict[str, Any]) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def text_of(page: str) -> str:
    """The page's words without its marks, script and style."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", bare))


def test_the_same_folders_give_the_same_bytes(folders: list[Path]) -> None:
    def everything(out: str) -> dict[str, bytes]:
        root = write_report(folders, folders[0].parent / out).parent
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    first = everything("one")
    assert len(first) > 100
    assert everything("two") == first


def test_every_link_of_every_page_leads_to_a_file_and_a_place_that_are_there(folders: list[Path]) -> None:
    root = write_report(folders, folders[0].parent / "report").parent
    pages = {path.resolve(): path.read_text(encoding="utf-8") for path in root.rglob("*.html")}
    assert len(pages) == 1 + 3 + 5 + 25 + 15
    checked = 0
    for path, page in pages.items():
        identifiers = re.findall(r'\sid="([^"]+)"', page)
        assert len(identifiers) == len(set(identifiers)), path
        for link in re.findall(r'(?:href|src)="([^"]+)"', page):
            if link.startswith("data:"):
                continue
            assert not re.match(r"[a-z]+:|//|/", link), (path, link)
            name, _, place = link.partition("#")
            target = (path.parent / unquote(name)).resolve() if name else path
            assert target.is_file() and target.is_relative_to(root.resolve()), (path, link)
            assert not place or f'id="{place}"' in pages[target], (path, link)
            checked += 1
    assert checked > 1000


def test_every_entry_has_a_cell_for_every_criterion_that_leads_to_its_evidence(pages: dict[str, str]) -> None:
    page = pages["index.html"].split('id="verdicts"')[1].split('id="attachments"')[0]
    targets = re.findall(r'class="c [^"]+" href="([^"]+)"', page)
    assert len(targets) == len(set(targets)) == 3 * 25
    assert 'aria-label="Criterion 1: judge PASS, card PASS, witnessed FAIL"' in page


def test_entries_are_ranked_by_strict_with_their_numbers_and_interval(pages: dict[str, str]) -> None:
    page = pages["index.html"]
    board = page.split('aria-label="Ranking, column witnessed"')[1].split("</ol>")[0]
    assert re.findall(r'<p class="name"><a [^>]+>(\w+)</a>', board) == ["gold", "partial", "stub"]
    words = text_of(board)
    assert "Strict 72.0 interval 58.0–86.0" in words
    assert "18 pass 4 partial 3 fail" in words
    assert "25 of 25 criteria scored, 5 of 5 tasks" in words


def test_a_lowered_verdict_shows_its_trail_with_the_rules_name_and_meaning(pages: dict[str, str]) -> None:
    words = text_of(pages[BOOKING_1])
    assert "attempt_failed the judge&#39;s own attempt failed" in words
    assert "no element matches .toast within 2.0 s" in words
    assert "On the start application, where it must fail: failed at step 4" in words
    assert "With other inputs on the submission: held (as required) 1.3 s with name = Bo Li" in words
    assert "PASS → FAIL the judge&#39;s own attempt failed" in text_of(pages["cases/booking.html"])


def test_a_criterion_shows_citations_in_context_the_refuter_and_the_trace(pages: dict[str, str]) -> None:
    page = pages[BOOKING_1]
    assert re.search(r'<tr class="d-hit"><td class="no">3</td><td class="code" dir="ltr">const saved = true;', page)
    assert re.search(r'<tr class="d-same"><td class="no">2</td><td class="code" dir="ltr">two<', page)
    words = text_of(page)
    assert "js/app.js:3" in words and "The refuter upholds the claim : Tried twice. Its inputs: name = Li" in words
    assert "a-propose/trace.zip" in words


def test_a_trial_shows_patch_trajectory_and_build(pages: dict[str, str]) -> None:
    words = text_of(pages["trials/booking-e1-gold.html"])
    assert "js/app.js +1 −1 @@ -1,2 +1,2 @@ 1 − old 1 + new 2 2 same" in words
    assert "4.0 s agent bash 6.0 s" in words and "Doing it." in words and "Think." in words
    assert "1-install.log added 14 packages" in words
    told = "Leak audit case booking status FLAGGED findings kind rubric, place stdout.log, what criterion 1"
    assert told in words


def test_further_facts_are_shown_from_files_that_are_there(folders: list[Path]) -> None:
    (folders[1] / "leak_audit.json").unlink()
    edit(folders[0] / "scores.json", {"evidence": {"card": {"points": 20.5, "witness": 90.0, "pair": 10.0}}})
    pages = pages_of(folders)
    assert "Leak audit" in text_of(pages["agents/e1-gold.html"])
    assert "Leak audit" not in text_of(pages["agents/e2-partial.html"])
    assert "card: points 20.5 card: witness 90 card: pair 10" in text_of(pages["agents/e1-gold.html"])
    assert "What the credit rests on" not in text_of(pages["agents/e2-partial.html"])
    assert "Audit queue" in text_of(pages["agents/e2-partial.html"])
    assert "leak audit: FLAGGED" in text_of(pages["agents/e1-gold.html"])


def test_plots_can_be_downloaded_as_svg_png_and_csv(folders: list[Path]) -> None:
    from PIL import Image

    plots = write_report(folders, folders[0].parent / "report").parent / "index-files/plots"
    for name in ("leaderboard-1", "attachments-1", "cost-1", "verdicts"):
        assert (plots / f"{name}.svg").read_text(encoding="utf-8").startswith('<svg class="plot" xmlns=')
        with Image.open(plots / f"{name}.png") as image:
            assert len(image.convert("RGB").getcolors(1 << 24) or ()) > 3, name
    rows = list(csv.DictReader(io.StringIO((plots / "verdicts.csv").read_text(encoding="utf-8"))))
    assert len(rows) == 75
    lowered = [row for row in rows if row["judge"] != row["witnessed"]]
    assert {row["entry"] for row in lowered} == {"stub"} and {row["rule"] for row in lowered} == {"attempt_failed"}
    scores = list(csv.DictReader(io.StringIO((plots / "leaderboard-1.csv").read_text(encoding="utf-8"))))
    assert {(r["entry"], r["mean"]) for r in scores if (r["column"], r["metric"]) == ("witnessed", "strict")} == {
        ("gold", "100.0"), ("partial", "72.0"), ("stub", "16.0"),
    }  # fmt: skip


def test_a_formula_stays_a_text_in_a_table(tmp_path: Path) -> None:
    folder = make_results(tmp_path / "gold", "gold", spell=lambda text: "=HYPERLINK(1)" if text == "gold" else text)
    write_report([folder], tmp_path / "report")
    table = (tmp_path / "report/index-files/plots/leaderboard-1.csv").read_text(encoding="utf-8")
    assert "\n'=HYPERLINK(1),judge" in table


def test_the_policy_allows_only_the_pages_own_script_and_style(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
        assert policy.startswith(
            "default-src &#39;none&#39;; img-src &#39;self&#39; data:; media-src &#39;self&#39;"
        ), name
        assert "unsafe" not in policy and "connect-src" not in policy
        assert not re.search(r"<[^>]+\s(?:style|on\w+)=", re.sub(r"<script\b.*?</script>", "", page, flags=re.S))


def test_missing_files_are_said_and_not_fatal(folders: list[Path]) -> None:
    stub = folders[2]
    (stub / "evidence/booking/1/submission.jpg").unlink()
    (stub / "evidence/booking/2/submission.jpg").write_text("<svg onload=alert(1)>")
    (stub / "evidence/booking/3/witness.json").unlink()
    (stub / "scores.json").unlink()
    (folders[0] / "evidence/booking/annotation.jpg").unlink()
    (stub.parent / "runs/stub/trials/booking/1/trajectory.json").write_text("{")
    pages = pages_of(folders)
    assert "Picture missing: evidence/booking/1/submission.jpg" in text_of(pages[BOOKING_1])
    assert "Not shown: evidence/booking/2/submission.jpg is no PNG, JPEG, GIF or WebP picture" in text_of(
        pages[BOOKING_2]
    )
    assert "evidence/booking/3/witness.json is missing from the results folder" in text_of(pages[BOOKING_3])
    assert "stub: scores.json is missing" in text_of(pages["index.html"])
    assert "Picture missing: annotation.jpg" in text_of(pages["cases/booking.html"])
    assert "trajectory.json could not be read: JSONDecodeError" in text_of(pages["trials/booking-e3-stub.html"])


@pytest.mark.parametrize(
    "content", [None, "{", "[]", '{"cases": 3, "entry": [], "columns": "x", "solve": 1, "trials": 2}']
)
def test_any_file_may_be_missing_or_misshapen(tmp_path: Path, content: str | None) -> None:
    names = {"leak_audit.json", "spend.json", "scores.json", "journal.jsonl", "lock.json", "cases.json"}
    for whole in ("journal.jsonl", "cases.json"):
        folder = make_results(tmp_path / whole / "gold", "gold")
        for name in names - {whole}:
            if content is None:
                (folder / name).unlink()
            else:
                (folder / name).write_text(content)
        words = text_of(pages_of([folder])["index.html"])
        assert "Verdicts" in words and "scores.json" in words, whole


def test_an_incomplete_result_says_so_with_its_bounds(folders: list[Path]) -> None:
    coverage = {"tasks_scored": 4, "tasks": 5, "criteria_scored": 23, "criteria": 25}
    bounds = {"strict": {"low": 64.0, "high": 72.0}}
    edit(folders[1] / "scores.json", {"incomplete": True, "coverage": coverage, "bounds": bounds})
    words = text_of(pages_of(folders)["index.html"])
    assert re.search(r"partial: incomplete\. 2 criteria are unscored.*Strict 64\.0–72\.0", words)


def test_entries_under_other_conditions_are_ranked_apart(folders: list[Path]) -> None:
    edit(folders[2] / "lock.json", {"conditions": {"egress": "open", "media": "native"}})
    page = pages_of(folders)["index.html"]
    assert page.count('aria-label="Ranking, column witnessed"') == 2
    assert re.findall(r'<h2 class="group">(.*?)</h2>', page) == ["egress none", "egress open"]


def test_entries_of_the_same_agent_are_told_apart(tmp_path: Path) -> None:
    folders = [make_results(tmp_path / name, "gold") for name in ("one", "two")]
    edit(folders[1] / "lock.json", {"entry": {"agent": "gold", "model": "m-2", "harness": "x", "attempt": 1}})
    names = re.findall(r'<p class="name"><a [^>]+>([^<]+)</a>', pages_of(folders)["index.html"])
    assert set(names) == {"gold", "gold · m-2"}


def test_a_build_that_failed_shows_as_fail_with_its_reason(folders: list[Path]) -> None:
    journal = folders[2] / "journal.jsonl"
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    kept = [r for r in records if not (r.get("case") == "player" and r["type"] == "criterion")]
    for record in kept:
        if record.get("case") == "player":
            record |= {"outcome": "build_failed", "reason": "npm run build ended with 1"}
    journal.write_text("".join(json.dumps(record) + "\n" for record in kept))
    pages = pages_of(folders)
    assert "0 of 5 pass · build failed · ended by itself" in text_of(pages["trials/player-e3-stub.html"])
    assert "npm run build ended with 1" in text_of(pages["criteria/player-1.html"])


def test_no_picture_is_taken_from_outside_the_results_folder(tmp_path: Path, folders: list[Path]) -> None:
    (tmp_path / "secret.jpg").write_bytes((folders[0] / "evidence/booking/annotation.jpg").read_bytes())
    (folders[0] / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    shelf = Shelf(Site(tmp_path / "site/index.html"))
    for name in ("../secret.jpg", str(tmp_path / "secret.jpg"), "link.jpg", "a\0b"):
        assert shelf.take_inside(folders[0], name).src == ""


def test_nothing_that_a_browser_would_run_is_copied_under_its_own_ending(tmp_path: Path) -> None:
    shelf = Shelf(Site(tmp_path / "site/index.html"))
    endings = {"a.html": ".txt", "a.SVG": ".txt", "a.pdf": ".pdf", "a.exe": "", "a.xhtml": "", "a": ""}
    for name, ending in endings.items():
        (tmp_path / name).write_text("<script>")
        assert Path(shelf.keep(tmp_path / name, name).src).suffix == ending, name


def test_large_pictures_get_a_small_copy_and_each_is_kept_once(tmp_path: Path) -> None:
    from PIL import Image

    noise = Image.effect_noise((1280, 800), 90).convert("RGB")
    noise.save(tmp_path / "a.jpg", quality=90)
    (tmp_path / "b.jpg").write_bytes((tmp_path / "a.jpg").read_bytes())
    (tmp_path / "torn.jpg").write_bytes((tmp_path / "a.jpg").read_bytes()[:3000])
    site = Site(tmp_path / "site/index.html")
    shelf = Shelf(site)
    first, again, torn = (shelf.take(tmp_path / name, name) for name in ("a.jpg", "b.jpg", "torn.jpg"))
    assert first == again and (first.width, first.height) == (1280, 800)
    with Image.open(site.folder / first.thumb) as small:
        assert small.size == (400, 250)
    assert torn.src and torn.thumb == torn.src  # a torn file is shown as it is


def test_a_report_replaces_its_own_pages_and_nobody_elses(tmp_path: Path, folders: list[Path]) -> None:
    page = write_report(folders, tmp_path / "out/index.html")
    gone = page.with_name("index-files") / "agents/e3-stub.html"
    assert gone.is_file()
    write_report(folders[:2], page)
    assert not gone.exists()
    half = Site(tmp_path / "half.html")
    half.put("media/a.txt", b"a")  # and then it was stopped
    assert write_report(folders[:1], tmp_path / "half.html").is_file()
    (tmp_path / "mine-files").mkdir()
    (tmp_path / "mine-files/keep.txt").write_text("mine")
    with pytest.raises(UsageError, match="was not made by `cdb report`"):
        write_report(folders, tmp_path / "mine.html")


def test_a_patch_is_read_whatever_is_in_it() -> None:
    text = (
        "diff --git a/x y.js b/x y.js\nnew file mode 100644\n--- /dev/null\n+++ b/x y.js\n@@ -0,0 +1,2 @@\n+one\n"
        "+++ not a header\n\\ No newline at end of file\ndiff --git a/p.png b/p.png\nBinary files differ\n"
    )
    first, second = read_patch(text)
    assert (first.name, first.status, first.added, first.removed) == ("x y.js", "added", 2, 0)
    assert [(line.kind, line.new, line.text) for line in first.lines[1:]] == [
        ("add", 1, "one"), ("add", 2, "++ not a header"), ("note", None, "No newline at end of file"),
    ]  # fmt: skip
    assert (second.name, second.status) == ("p.png", "binary")
    long = read_patch("diff --git a/a b/a\n@@ -1 +1,900 @@\n" + "+x\n" * 900)[0]
    assert (long.added, len(long.lines), long.not_shown) == (900, 800, 101)
    assert read_patch("no patch\n@@ -1 +1 @@\n") == []


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


def test_json_for_a_terminal_is_the_same_json_without_what_a_terminal_obeys() -> None:
    value = {"a": "\x1b[31m \x9b31m \u202e \ud800 \U000e0041 é 中文"}
    text = safe_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert all(c.isprintable() for c in text) and "é 中文" in text


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one results folder"):
        write_report([], tmp_path / "report")
