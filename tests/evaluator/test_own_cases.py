"""People's own cases: the linter names what is wrong, and what it lets through is a whole release."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from bench.errors import DataError, UsageError
from evaluator.lint import Finding, lint
from evaluator.own_cases import case_folders, read_about
from evaluator.pack import pack_own_cases
from evaluator.verify import describe_release, verify_release

REPOSITORY = Path(__file__).parent.parent.parent
REQUEST = "Please add a search box above the list, as the note price-list.pdf says. See the marked screenshot."
CRITERIA = [
    "Typing into the search box leaves only the rows whose name holds the typed letters.",
    "Clearing the search box shows every row again, in the order of before.",
    "The sort buttons still work while a search is active.",
]
RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with one faultless case."""
    case = tmp_path / "own/cases/price-list"
    project = case / "project"
    for name in ("_annotations", "_attachments"):
        (project / name).mkdir(parents=True)
    (project / "index.html").write_text("<h1>Prices</h1>")
    (project / "_attachments/price-list.pdf").write_bytes(b"a,b")
    (project / "_attachments/price-list.pdf").rename(project / "_attachments/price-list.csv")
    Image.new("RGB", (60, 40), "teal").save(project / "_annotations/marked.png")
    (case / "user_queries.json").write_text(json.dumps([{"text": REQUEST.replace(".pdf", ".csv")}]))
    (case / "rubric.json").write_text(json.dumps(CRITERIA))
    return tmp_path / "own"


def findings(own: Path) -> list[Finding]:
    return lint(case_folders(own))


def codes(own: Path) -> set[tuple[str, str]]:
    return {(finding.level, finding.code) for finding in findings(own)}


def test_a_faultless_case_has_no_finding(own: Path) -> None:
    assert findings(own) == []


def write_request(own: Path, text: str) -> None:
    (own / "cases/price-list/user_queries.json").write_text(json.dumps([{"text": f"{text} price-list.csv"}]))


@pytest.mark.parametrize(
    "text",
    [
        "TODO: write this", "Add a box. FIXME", "tell them TBD", "Lorem ipsum dolor sit amet", "Hello {{name}}, add it",
        "Make it <insert colour here>", "Use <YOUR_TEXT>", "Add [placeholder]", "It should <...>", "Use ${COLOUR}",
    ],
)  # fmt: skip
def test_a_placeholder_in_a_request_is_an_error(own: Path, text: str) -> None:
    write_request(own, text)
    assert codes(own) == {("error", "placeholder")}


@pytest.mark.parametrize(
    "text",
    [
        "Add a TODO list to the page", "Make the <h1> and the <button> larger", "Show a < b and c > d",
        "In the TODO app, add a filter", "todo items get a date", "The array [1, 2] and an object {a: 1} are shown",
        "Use a List<string> here", "An <input type='text'> for the name",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_placeholder_is_none(own: Path, text: str) -> None:
    write_request(own, text)
    assert codes(own) == set()


Spoil = Callable[[Path], object]
FAULTS: dict[str, tuple[tuple[str, str], Spoil]] = {
    "an empty request": (("error", "request_empty"), lambda c: (c / "user_queries.json").write_text('[{"text": " "}]')),
    "no request": (("error", "unreadable"), lambda c: (c / "user_queries.json").unlink()),
    "a broken request": (("error", "unreadable"), lambda c: (c / "user_queries.json").write_text("[")),
    "no rubric": (("error", "rubric"), lambda c: (c / "rubric.json").unlink()),
    "a criterion without text": (
        ("error", "rubric"), lambda c: (c / "rubric.json").write_text(json.dumps([*CRITERIA, " "]))),
    "a criterion of signs": (
        ("error", "criterion_empty"), lambda c: (c / "rubric.json").write_text(json.dumps([*CRITERIA, "…?!"]))),
    "a criterion twice": (
        ("error", "criterion_twice"), lambda c: (c / "rubric.json").write_text(json.dumps([*CRITERIA, CRITERIA[0].upper() + "!"]))),
    "nearly the same criterion": (
        ("warning", "criterion_near"),
        lambda c: (c / "rubric.json").write_text(json.dumps([*CRITERIA, CRITERIA[0].replace("leaves", "keeps")]))),
    "nothing to preserve": (
        ("warning", "no_preservation"), lambda c: (c / "rubric.json").write_text(json.dumps(CRITERIA[:2]))),
    "no annotation": (("error", "annotation_missing"), lambda c: (c / "project/_annotations/marked.png").unlink()),
    "a broken annotation": (
        ("error", "annotation_broken"),
        lambda c: (c / "project/_annotations/marked.png").write_bytes((c / "project/_annotations/marked.png").read_bytes()[:60])),
    "an annotation of another format": (
        ("error", "annotation_broken"),
        lambda c: Image.new("RGB", (60, 40)).save(c / "project/_annotations/marked.png", "JPEG")),
    "an attachment that is not there": (
        ("warning", "attachment_missing"), lambda c: (c / "project/_attachments/price-list.csv").rename(c / "project/_attachments/PRICE.csv")),
    "an attachment nobody mentions": (
        ("warning", "attachment_unmentioned"), lambda c: (c / "project/_attachments/voice.mp3").write_bytes(b"ID3")),
    "criterion text in the request": (
        ("error", "leak"), lambda c: write_request(c.parent.parent, CRITERIA[0])),
    "criterion text in the project": (
        ("error", "leak"), lambda c: (c / "project/app.js").write_text("// " + CRITERIA[1].replace(" ", "\n// "))),
    "a copy of the rubric": (("error", "leak"), lambda c: shutil.copy(c / "rubric.json", c / "project/rubric.json")),
    "names that differ in case": (
        ("error", "file_twins"), lambda c: [(c / "project" / n).write_text("x") for n in ("A.js", "a.js")]),
    "names that differ in Unicode form": (
        ("error", "file_twins"), lambda c: [(c / "project" / n).write_text("x") for n in ("\u00e9.js", "e\u0301.js")]),
    "a reserved name": (("error", "file_name"), lambda c: (c / "project/con.js").write_text("x")),
    "a colon in a name": (("error", "file_name"), lambda c: (c / "project/a:b.js").write_text("x")),
    "a control character in a name": (("error", "file_name"), lambda c: (c / "project/a\x07.js").write_text("x")),
    "a name with a space at its end": (("error", "file_name"), lambda c: (c / "project/a.js ").write_text("x")),
    "a name that is not UTF-8": (("error", "file_name"), lambda c: (c / "project/\udcff.js").write_text("x")),
    "a link out": (("error", "link_out"), lambda c: (c / "project/out").symlink_to("/etc/passwd")),
    "no application": (("error", "no_application"), lambda c: (c / "project/index.html").unlink()),
    "an external script": (
        ("warning", "external"),
        lambda c: (c / "project/index.html").write_text("<h1>a</h1><script src='https://cdn.example.com/a.js'></script>")),
    "no lock file": (
        ("warning", "no_lock"),
        lambda c: (c / "project/package.json").write_text('{"scripts":{"build":"vite build"},"devDependencies":{"vite":"7"}}')),
    "installed packages": (
        ("warning", "left_out"), lambda c: (c / "project/node_modules/a").mkdir(parents=True)),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_with_file_and_remedy(own: Path, fault: str) -> None:
    expected, spoil = FAULTS[fault]
    spoil(own / "cases/price-list")
    found = [f for f in findings(own) if (f.level, f.code) == expected]
    assert found, findings(own)
    assert all(f.case == "price-list" and f.file and f.what and f.remedy for f in found)
    assert not {f.level for f in findings(own)} - {expected[0], "warning"}


def test_an_oversize_file_is_named(own: Path) -> None:
    with (own / "cases/price-list/project/film.bin").open("wb") as stream:
        stream.truncate(1100 * 1024 * 1024)
    levels = {
        (f.level, f.code)
        for f in __import__("evaluator.lint", fromlist=["_sizes"])._sizes("a", own / "cases/price-list/project")
    }
    assert levels == {("error", "too_large")}


def test_ids_must_differ_over_the_release_and_from_disk_to_disk(own: Path) -> None:
    shutil.copytree(own / "cases/price-list", own / "cases/Price-List")
    listed = [{"id": "same", "criterion": CRITERIA[2]}]
    for case in ("price-list", "Price-List"):
        (own / "cases" / case / "rubric.json").write_text(json.dumps(listed))
    assert {code for _, code in codes(own)} >= {"rubric_id", "case_id"}


@pytest.mark.parametrize("rubric", [
    CRITERIA,
    [{"criterion": text} for text in CRITERIA],
    {"task_id": "t1", "rubrics": [{"rubric_id": f"r{n}", "criterion": text} for n, text in enumerate(CRITERIA)]},
    {"criteria": [{"text": text} for text in CRITERIA]},
])  # fmt: skip
def test_every_shape_of_rubric_is_packed_verbatim_and_verified(own: Path, tmp_path: Path, rubric: object) -> None:
    content = "\ufeff" + json.dumps(rubric, indent=1)
    (own / "cases/price-list/rubric.json").write_text(content, encoding="utf-8")
    (own / "cases/price-list/plan.json").write_text("{}")
    (own / "release.yaml").write_text("name: My cases\nscope: Mine-1\nversion: 2\nauthors: Me\n")
    out, about = pack_own_cases(own, tmp_path / "release")
    assert (about.name, about.scope, about.version) == ("My cases", "Mine-1", "2")
    assert verify_release(out)["criteria"] == 3
    assert describe_release(out)["by_attachment"]["document"] == 1
    listed = subprocess.run(
        ["tar", "-tzf", out / "eval_withrubric.tar.gz"], capture_output=True, text=True, check=True
    )
    assert "plan.json" not in listed.stdout


def test_wrong_folders_and_a_bad_release_yaml_are_explained(own: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean"):
        case_folders(own / "cases")
    (tmp_path / "empty/cases").mkdir(parents=True)
    with pytest.raises(UsageError, match="holds no case"):
        case_folders(tmp_path / "empty")
    (own / "release.yaml").write_text("nam: x\n")
    with pytest.raises(DataError, match=r"nam.*known keys: name"):
        read_about(own, 1)
    with pytest.raises(UsageError, match="among the cases"):
        pack_own_cases(own, own / "cases/release")


def test_the_verb_packs_only_without_errors(own: Path, tmp_path: Path, run_cdb: RunCdb) -> None:
    write_request(own, "TODO later")
    out = tmp_path / "release"
    bad = run_cdb(["dataset", "pack", own, "--out", out, "--json"])
    told = json.loads(bad.stdout)
    assert (bad.returncode, told["errors"], told["release"], out.exists()) == (1, 1, None, False)
    assert told["findings"][0]["file"] == "user_queries.json" and told["findings"][0]["remedy"]
    good = run_cdb(["dataset", "pack", own, "--out", out, "--allow", "placeholder", "--json"])
    assert (good.returncode, json.loads(good.stdout)["release"]) == (0, str(out)), good.stderr
    assert run_cdb(["dataset", "pack", own]).returncode == 2


def recipe() -> list[str]:
    """The commands of docs/own-dataset.md, block by block, as a newcomer would type them."""
    text = (REPOSITORY / "docs/own-dataset.md").read_text(encoding="utf-8")
    return re.findall(r"```bash\n(.*?)```", text, re.DOTALL)


@pytest.mark.docker
@pytest.mark.browser
def test_the_recipe_in_the_docs_works_word_for_word(tmp_path: Path) -> None:
    import os
    import sys

    tools = tmp_path / "bin"
    tools.mkdir()
    for name, argv in {"cdb": f'"{sys.executable}" -m cdb "$@"', "python": f'"{sys.executable}" "$@"'}.items():
        (tools / name).write_text(f"#!/bin/sh\nexec {argv}\n")
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY)}
    blocks = recipe()
    assert len(blocks) >= 5
    script = "set -euo pipefail\n" + "\n".join(blocks)
    ended = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=280, check=False
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    cases = json.loads((tmp_path / "evaluation/cases.json").read_text())
    assert [case["case"] for case in cases["cases"]] == ["notes-search"]
    assert cases["cases"][0]["submission"]["changed_files"] == 0
