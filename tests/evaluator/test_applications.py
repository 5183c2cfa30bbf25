"""What a judging makes of how start and submission were built and served; building and serving themselves are played."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.errors import InfraError
from evaluator import applications
from evaluator.applications import Applications, Bench, NotServed, running_applications
from evaluator.build import BuildResult
from evaluator.cases import Case, SubmissionFacts
from evaluator.serve import ServeFailed
from evaluator.serve_plan import ServePlan, learn_plan

Run = Callable[..., Applications]
VITE = {"scripts": {"build": "vite build"}, "devDependencies": {"vite": "7"}}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a case whose submission has `submitted` beside the start's files; `result` alters its build, `failure`
    is what serving it raises."""

    def run(
        submitted: dict[str, str],
        *,
        failure: ServeFailed | None = None,
        by_hand: ServePlan | None = None,
        **result: Any,
    ) -> Applications:
        start, submission = tmp_path / "start", tmp_path / "submissions" / "case"
        for folder, extra in ((start, {}), (submission, submitted)):
            folder.mkdir(parents=True)
            for name, text in ({"package.json": json.dumps(VITE), "index.html": ""} | extra).items():
                (folder / name).write_text(text)

        def build(plan: ServePlan, tree: Path, out: Path, **settings: Any) -> BuildResult:
            facts = {"outcome": "ok", "plan": plan, "served": tree} | (result if tree == submission else {})
            return BuildResult.model_validate(facts)

        @contextmanager
        def serve(plan: ServePlan, built: Path, **settings: Any) -> Iterator[SimpleNamespace]:
            if failure and built == submission:
                raise failure
            yield SimpleNamespace(url="http://127.0.0.1:8080/")

        @contextmanager
        def browser_for(app: object, **settings: Any) -> Iterator[str]:
            yield "a browser"

        for name, stand_in in (("build", build), ("serve", serve), ("browser_for", browser_for)):
            monkeypatch.setattr(applications, name, stand_in)
        monkeypatch.setattr(applications, "image_tag", lambda role: f"cdb-{role}:test")
        case = Case(
            case="case", request="", attachment="none", attachments=[], annotation=None, project="start",
            start_digest="sha256:00", serve_plan=by_hand or learn_plan(start), criteria=[], plan=[], planned=False,
            submission=SubmissionFacts(folder="submissions/case", digest="", changed_files=1, outcome="ok"),
        )  # fmt: skip
        unused = cast(Any, None)
        bench = Bench(
            run="test", cases_folder=tmp_path, results=tmp_path / "results", start_builds=tmp_path / "builds",
            judge=unused, mirror=unused, built=tmp_path / "built", logs=tmp_path / "evidence",
            start_replays=tmp_path / "replays",
        )  # fmt: skip
        with running_applications(case, bench, unused) as running:
            return running

    return run


def told(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "evidence" / "case" / "serving.json").read_bytes())


def test_the_plan_of_the_start_is_used_as_long_as_it_fits(run: Run, tmp_path: Path) -> None:
    assert run({"src.js": ""}).flags == []
    record = told(tmp_path)
    assert record["submission"]["changes"] == ""
    assert record["submission"]["serve"]["outcome"] == "served"
    assert record["start"]["serve"] is None


def test_a_plan_that_fits_no_more_is_learned_anew_and_said(run: Run, tmp_path: Path) -> None:
    assert run({"vite.config.js": "export default { build: { outDir: 'site' } }"}).flags == ["serve_plan_changed"]
    submission = told(tmp_path)["submission"]
    assert submission["changes"] == "output was 'dist' and is 'site'"
    assert submission["plan"]["output"] == "site"


def test_a_plan_made_by_hand_is_not_looked_at_again(run: Run, tmp_path: Path) -> None:
    plan = ServePlan(kind="npm", build=["make"], output="www", by_hand=True)
    assert run({"vite.config.js": "export default { build: { outDir: 'site' } }"}, by_hand=plan).flags == []
    assert told(tmp_path)["submission"]["plan"]["build"] == ["make"]


def test_c64_what_only_the_submissions_build_needed_is_in_the_evidence(run: Run, tmp_path: Path) -> None:
    assert run({}, flags=["lock_of_start", "lock_mismatch"], lock_mismatch=True).flags == ["lock_mismatch"]
    assert told(tmp_path)["submission"]["build"]["lock_mismatch"] is True


def test_a_submission_that_does_not_build_is_told_with_the_end_of_its_log(run: Run, tmp_path: Path) -> None:
    with pytest.raises(NotServed) as failed:
        run(
            {}, outcome="build_failed", code="build_error", reason="`npm run build` failed", log_tail="x is undefined"
        )
    assert (failed.value.outcome, str(failed.value)) == ("build_failed", "`npm run build` failed\nx is undefined")
    assert told(tmp_path)["submission"]["build"]["code"] == "build_error"
    assert told(tmp_path)["submission"]["serve"] is None


def test_a_submission_that_is_no_application_is_its_own_fault(run: Run) -> None:
    with pytest.raises(NotServed, match="is not readable as JSON") as failed:
        run({"package.json": "{"})
    assert failed.value.outcome == "build_failed"


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": '{"scripts": {"build": "ng build"}, "devDependencies": {"@angular/cli": "17"}}',
         "angular.json": '{"defaultProject": []}'},
        {"package.json": '{"scripts": {"build": "vite build"}, "devDependencies": {"vite": "^' + "9" * 5000 + '"}}'},
    ],
)  # fmt: skip
def test_a_submission_whose_files_we_stumble_over_is_its_own_fault(run: Run, files: dict[str, str]) -> None:
    with pytest.raises(NotServed, match="no way to serve the submission") as failed:
        run(files)
    assert failed.value.outcome == "build_failed"


def test_a_submission_that_does_not_serve_is_told_when_the_start_does(run: Run, tmp_path: Path) -> None:
    with pytest.raises(NotServed, match="serve_timeout") as failed:
        run({}, failure=ServeFailed("serve_timeout", "nothing listened within 60 s", "warming up"))
    assert failed.value.outcome == "serve_failed"
    record = told(tmp_path)
    assert record["submission"]["serve"]["code"] == "serve_timeout"
    assert record["submission"]["serve"]["log"] == "warming up"
    assert record["start"]["serve"]["outcome"] == "served"


def test_c69_a_server_that_refuses_our_host_name_is_never_a_verdict(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="serve_error"):
        run({}, failure=ServeFailed("serve_error", "it refuses the host name localhost", "", by_host=True))
    assert told(tmp_path)["submission"]["serve"]["code"] == "serve_error"
