"""`cdb verify` finds every change, names its place, and is not taken in by a forger who makes everything fit."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forging import seal_again
from hostile_archives import hard_link, link, member, tar_bytes
from judged_run import JudgedRun, rewrite_cases, rewrite_journal

from bench.errors import DataError, UsageError
from bench.task import scope_of
from bench.tree import digest, list_tree
from bench.unpack import unpack
from evaluator.adjudicate import decide_whole
from evaluator.bundle.layout import CAPS, tree_of
from evaluator.bundle.verify import Verified, verify_bundle
from evaluator.bundle.write import write_bundle
from evaluator.cases import Cases, read_cases, what_is_judged
from evaluator.plans import plans_digest
from evaluator.records import CasePlan
from evaluator.scoring import score_files

Forge = Callable[[Callable[[Path], None]], Path]
RESULTS, ENTRY = "results/editor", "entries/editor__none__1"
JOURNAL = f"{RESULTS}/journal.jsonl"


def places(found: Verified) -> list[str]:
    return [fault.place for fault in found.faults]


def said(found: Verified) -> str:
    return "\n".join(fault.line() for fault in found.faults)


def test_a_good_bundle_has_no_fault_packed_or_unpacked_and_is_not_written_to(
    bundle: Path, unpacked: Path, judged: JudgedRun
) -> None:
    before = digest(list_tree(unpacked))
    for place in (bundle, unpacked):
        found = verify_bundle(place, dataset=judged.dataset)
        assert (found.faults, found.criteria, found.submissions) == ([], 6, 2)
        assert verify_bundle(place, digest_wanted=found.digest).faults == []
    assert digest(list_tree(unpacked)) == before


ONE_OF_EACH = [
    "README.md",
    "bundle.json",
    f"{RESULTS}/lock.json",
    JOURNAL,
    f"{RESULTS}/cases.json",
    f"{RESULTS}/scores.json",
    f"{RESULTS}/run_card.md",
    f"{RESULTS}/spend.json",
    f"{RESULTS}/evidence/clock/01/a.witness.json",
    f"{RESULTS}/evidence/clock/01/a-propose/00.jpg",
    f"{RESULTS}/evidence/clock/submission-desktop.jpg",
    f"{RESULTS}/evidence/clock/submission.json",
    f"{RESULTS}/built/clock/BUILT.json",
    f"{RESULTS}/built/clock/app/index.html",
    f"{ENTRY}/lock.json",
    f"{ENTRY}/journal.jsonl",
    f"{ENTRY}/submissions/clock.manifest.json",
    f"{ENTRY}/submissions/clock/index.html",
    f"{ENTRY}/trials/clock/1/trajectory.json",
    "start/clock/project/index.html",
]


@pytest.mark.parametrize("path", ONE_OF_EACH)
@pytest.mark.parametrize("where", [0.02, 0.5, 0.98])
def test_one_flipped_bit_in_any_kind_of_member_is_named(unpacked: Path, path: str, where: float) -> None:
    content = bytearray((unpacked / path).read_bytes())
    content[int(where * (len(content) - 1))] ^= 1
    (unpacked / path).write_bytes(content)
    found = verify_bundle(unpacked)
    assert any(place.startswith(path) for place in places(found)), said(found)


def test_the_bundles_own_list_knows_every_kind_of_member(unpacked: Path) -> None:
    """So that the test above leaves none out: whatever is in a bundle is of a kind it tries."""

    def kind(path: str) -> str:
        parts = ["NAME" if part in ("clock", "list", "shop", "01", "02") else part for part in path.split("/")]
        return "/".join(parts[:4]) if "submissions" in parts and len(parts) > 4 else "/".join(parts)

    members = [str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file() and not p.is_symlink()]
    tried = {kind(path) for path in ONE_OF_EACH}
    untried = {kind(p) for p in members} - tried
    assert untried <= {
        f"{RESULTS}/evidence/NAME/NAME/b.witness.json",
        f"{RESULTS}/evidence/NAME/NAME/b-propose/00.jpg",
        f"{ENTRY}/submissions/list.manifest.json",
        f"{ENTRY}/trials/NAME/1/stdout.log",
        "start/NAME/project/_annotations/shot.png",
    }


def test_every_byte_of_the_bundles_own_card_counts(unpacked: Path) -> None:
    whole = (unpacked / "bundle.json").read_bytes()
    for place in range(0, len(whole) - 1, len(whole) // 40):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1
        (unpacked / "bundle.json").write_bytes(spoiled)
        assert "FAULT bundle.json: " in said(verify_bundle(unpacked)), whole[place - 20 : place + 20]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda b: (b / f"{ENTRY}/submissions/clock/more.txt").write_text("x"), f"{ENTRY}/submissions/clock/more.txt"),
        (lambda b: (b / f"{ENTRY}/submissions/clock/run.sh").chmod(0o644), f"{ENTRY}/submissions/clock/run.sh"),
        (lambda b: shutil.rmtree(b / f"{RESULTS}/evidence/clock/02"), f"{RESULTS}/evidence/clock/02"),
        (lambda b: (b / f"{ENTRY}/submissions/clock.manifest.json").unlink(), f"{ENTRY}/submissions/clock"),
        (lambda b: (b / "bundle.json").unlink(), "bundle.json"),
        (lambda b: shutil.rmtree(b / RESULTS), RESULTS),
    ],
)  # fmt: skip
def test_what_is_added_removed_or_has_another_mode_is_named(
    unpacked: Path, change: Callable[[Path], Any], place: str
) -> None:
    change(unpacked)
    assert place in places(verify_bundle(unpacked))


def test_a_digest_that_was_published_shows_any_other_bundle(unpacked: Path, bundle: Path) -> None:
    published = verify_bundle(bundle).digest
    (unpacked / "README.md").write_text("another\n")
    seal_again(unpacked)
    assert verify_bundle(unpacked).faults == [], "a forger may rewrite everything that nothing is bound to"
    assert places(verify_bundle(unpacked, digest_wanted=published)) == ["the whole"]


def test_submissions_made_elsewhere_are_bundled_and_verified_with_their_seals(
    judged: JudgedRun, tmp_path: Path
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(judged.root, root, symlinks=True)
    (root / "runs/editor__none__1/journal.jsonl").unlink()  # so that it is no entry of ours any more
    lock, cases = root / "results/editor/lock.json", root / "results/editor/cases.json"
    score_files(cases, lock.with_name("journal.jsonl"), lock.with_name("scores.json"))
    write_bundle([root / "results/editor"], tmp_path / "b.tar.gz", environment={})
    found = verify_bundle(tmp_path / "b.tar.gz")
    assert (found.faults, found.submissions) == ([], 2)
    (folder := tmp_path / "out").mkdir()
    unpack(tmp_path / "b.tar.gz", folder, CAPS, tree_of, any_name=True)
    assert not (folder / ENTRY / "lock.json").exists()
    (folder / ENTRY / "submissions/list/run.sh").write_text("x")
    assert f"{ENTRY}/submissions/list" in places(verify_bundle(folder))


# A forger who makes everything fit: fresh chain, fresh scores, fresh bundle.json.


def every(key: tuple[str, int], change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Callable[[Any], Any]:
    return lambda r: change(r) if (r.get("case"), r.get("criterion_index")) == key else r


def test_a_verdict_turned_round_in_a_fresh_chain_is_not_what_its_replays_give(forge: Forge) -> None:
    def better(record: dict[str, Any]) -> dict[str, Any]:
        won = {column: {"verdict": "PASS", "rule": "all_hold"} for column in ("judge", "card", "witnessed")}
        return {**record, "verdict": "PASS", "columns": won}

    found = verify_bundle(forge(lambda b: rewrite_journal(b / JOURNAL, every(("clock", 2), better))))
    assert {place.partition(",")[0] for place in places(found)} == {JOURNAL}
    assert "clock criterion 2: column witnessed says PASS by all_hold; its replays give FAIL by core_missing" in said(
        found
    )


def test_parts_credited_without_their_replays_are_found(forge: Forge) -> None:
    def better(record: dict[str, Any]) -> dict[str, Any]:
        won = {column: {"verdict": "PASS", "rule": "all_hold"} for column in ("judge", "card", "witnessed")}
        subs = [{**sub, "proposed": True, "card": True, "witnessed": True} for sub in record["sub_requirements"]]
        return {**record, "verdict": "PASS", "columns": won, "sub_requirements": subs}

    found = verify_bundle(forge(lambda b: rewrite_journal(b / JOURNAL, every(("clock", 2), better))))
    assert "part a is credited as (True, True, True)" in said(found)


def test_a_part_that_is_not_core_all_at_once_is_not_the_plans(forge: Forge) -> None:
    def easier(record: dict[str, Any]) -> dict[str, Any]:
        subs = [{**sub, "core": False} for sub in record["sub_requirements"]]
        partial = {column: {"verdict": "PARTIAL", "rule": "core_holds"} for column in record["columns"]}
        return {**record, "verdict": "PARTIAL", "columns": partial, "sub_requirements": subs}

    found = verify_bundle(forge(lambda b: rewrite_journal(b / JOURNAL, every(("clock", 2), easier))))
    assert "its sub-requirements are not those of the plan" in said(found)


def test_an_easier_plan_is_not_the_one_in_the_lock(forge: Forge) -> None:
    def easier(cases: Cases) -> Cases:
        case = cases.cases[0]
        subs = [sub.model_copy(update={"core": False}) for sub in case.plan[1].sub_requirements]
        plan = [case.plan[0], case.plan[1].model_copy(update={"sub_requirements": subs})]
        return cases.model_copy(update={"cases": [case.model_copy(update={"plan": plan}), *cases.cases[1:]]})

    found = verify_bundle(forge(lambda b: rewrite_cases(b / RESULTS / "cases.json", easier)))
    assert f"FAULT {RESULTS}/cases.json: its plans do not have the digest it gives for them" in said(found)


def test_a_credit_out_of_nothing_is_found(forge: Forge) -> None:
    def whole(record: dict[str, Any]) -> dict[str, Any]:
        won = {c: v.model_dump() for c, v in decide_whole("PASS", "unchanged").items()}
        return {**record, "verdict": "PASS", "columns": won}

    found = verify_bundle(forge(lambda b: rewrite_journal(b / JOURNAL, every(("shop", 1), whole))))
    assert "shop criterion 1: no witness ran, so it can only be FAIL" in said(found)


def _better(record: dict[str, Any]) -> dict[str, Any]:
    won = {column: {"verdict": "PASS", "rule": "all_hold"} for column in ("judge", "card", "witnessed")}
    return {**record, "verdict": "PASS", "columns": won}


def test_a_verdict_beside_the_one_that_is_checked_is_found(unpacked: Path) -> None:
    """Scores read what other tools write too; in a journal of ours nothing passes by what is checked."""

    def beside(record: dict[str, Any]) -> Any:
        if (record.get("case"), record.get("criterion_index")) != ("clock", 2):
            return record
        return [record, {"case": "clock", "criterion_index": 2, "verdict": "PASS", "supersedes": 4}]

    rewrite_journal(unpacked / JOURNAL, beside)
    found = verify_bundle(unpacked)
    assert "no judging writes a record of type None" in said(found)
    assert "a record without a type" in said(found), "and it is not scored"


@pytest.mark.parametrize("first", ["genuine", "forged"])
def test_a_verdict_that_was_decided_twice_is_found(forge: Forge, first: str) -> None:
    seqs = iter(range(1, 100))

    def twice(record: dict[str, Any]) -> Any:
        seq = next(seqs)
        if (record.get("case"), record.get("criterion_index")) != ("clock", 2):
            return record
        next(seqs)
        if first == "forged":
            return [_better(record), record]
        return [record, {**_better(record), "supersedes": seq}]

    found = verify_bundle(forge(lambda b: rewrite_journal(b / JOURNAL, twice)))
    assert "clock criterion 2: it" in said(found)
    assert ("a verdict is never judged again" in said(found)) == (first == "genuine")


def test_a_case_that_was_taken_out_is_missed(forge: Forge, judged: JudgedRun) -> None:
    def without(cases: Cases) -> Cases:
        left = [case for case in cases.cases if case.case != "shop"]
        dataset = {**cases.dataset, "tasks": len(left), "criteria": sum(len(case.criteria) for case in left)}
        plans = plans_digest([CasePlan(case=case.case, criteria=case.plan) for case in left])
        return cases.model_copy(update={"cases": left, "dataset": dataset, "plans_sha256": plans})

    def change(bundle: Path) -> None:
        rewrite_cases(bundle / RESULTS / "cases.json", without)
        rewrite_journal(bundle / JOURNAL, lambda r: None if r.get("case") == "shop" else r)
        lock = json.loads((bundle / RESULTS / "lock.json").read_text())
        lock |= what_is_judged(read_cases(bundle / RESULTS / "cases.json"))
        (bundle / RESULTS / "lock.json").write_text(json.dumps(lock))

    found = verify_bundle(forge(change))
    assert f"FAULT {RESULTS}/cases.json: its scope" in said(found)

    def smaller(bundle: Path) -> None:
        def scoped(cases: Cases) -> Cases:
            names = [case.case for case in cases.cases]
            return cases.model_copy(update={"scope": scope_of(cases.dataset["name"], names, len(names))})

        rewrite_cases(bundle / RESULTS / "cases.json", scoped)
        lock = json.loads((bundle / RESULTS / "lock.json").read_text())
        lock |= what_is_judged(read_cases(bundle / RESULTS / "cases.json"))
        (bundle / RESULTS / "lock.json").write_text(json.dumps(lock))

    found = verify_bundle(forge(smaller))
    assert "that of the solve entry's lock" in said(found), "a release that would have had no more cases"
    assert "its scope is" in said(verify_bundle(forge(lambda _: None), dataset=judged.dataset))


def test_a_blind_pair_credits_only_what_it_can(forge: Forge) -> None:
    def paired(choices: list[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def change(record: dict[str, Any]) -> dict[str, Any]:
            pair = {"outcome": "won", "choices": choices, "reasons": [], "pictures": []}
            none = {"witness": None, "witness_sha256": None, "replays": [], "pair": pair}
            won = {"proposed": True, "card": True, "witnessed": True}
            subs = [{**sub, **none, **won} for sub in record["sub_requirements"]]
            return {**_better(record), "sub_requirements": subs}

        return change

    found = verify_bundle(forge(lambda b: rewrite_journal(b / JOURNAL, every(("clock", 2), paired([])))))
    assert "clock criterion 2: part a is credited by a blind pair" in said(found)


def test_a_picture_that_cannot_be_is_one_fault_among_others(forge: Forge) -> None:
    def named(record: dict[str, Any]) -> dict[str, Any]:
        subs = json.loads(json.dumps(record["sub_requirements"]))
        subs[0]["replays"][0]["steps"][0]["frame"] = f"evidence/clock/02/{'x' * 400}.jpg"
        return {**record, "sub_requirements": subs}

    def change(bundle: Path) -> None:
        rewrite_journal(bundle / JOURNAL, every(("clock", 2), named))
        (bundle / "start/clock/project/index.html").write_text("another")

    found = verify_bundle(forge(change))
    assert f"{RESULTS}/evidence/clock/02" in places(found)
    assert "start/clock/project" in places(found)


def test_another_witness_or_picture_than_was_judged_is_found(forge: Forge) -> None:
    def change(bundle: Path) -> None:
        witness = bundle / RESULTS / "evidence/clock/01/a.witness.json"
        witness.write_text(witness.read_text().replace("after", "before"))

    found = verify_bundle(forge(change))
    assert places(found) == [f"{RESULTS}/evidence/clock/01", f"{RESULTS}/evidence/clock/01/a.witness.json"]


def test_a_swapped_submission_with_a_fresh_seal_is_not_the_one_that_was_judged(forge: Forge) -> None:
    def change(bundle: Path) -> None:
        folder = bundle / ENTRY / "submissions/clock"
        (folder / "index.html").write_text("better")
        seal = bundle / ENTRY / "submissions/clock.manifest.json"
        files = list_tree(folder)
        seal.write_text(json.dumps({**json.loads(seal.read_text()), "files": files, "digest": digest(files)}))

    found = verify_bundle(forge(change))
    assert set(places(found)) == {f"{ENTRY}/submissions/clock"}
    assert "judged was sha256:" in said(found) and "its trial sealed sha256:" in said(found)


def test_a_solve_journal_of_other_seals_and_another_agents_name_are_found(forge: Forge) -> None:
    def change(bundle: Path) -> None:
        other = f"sha256:{'0' * 64}"
        rewrite_journal(bundle / ENTRY / "journal.jsonl", lambda r: {**r, "digest": other} if r.get("digest") else r)
        rewrite_cases(
            bundle / RESULTS / "cases.json",
            lambda c: c.model_copy(update={"entry": {**c.entry, "agent": "somebody better"}}),
        )
        lock = bundle / RESULTS / "lock.json"
        lock.write_text(lock.read_text().replace('"editor"', '"somebody better"'))

    found = verify_bundle(forge(change))
    assert {f"{ENTRY}/submissions/clock", f"{ENTRY}/submissions/list", f"{RESULTS}/cases.json"} == set(places(found))
    assert "somebody better" in said(found)


def test_a_submission_that_is_kept_quiet_is_found(forge: Forge) -> None:
    """Worse than FAIL it cannot be, but a result of another scope it can: what was sealed must be judged."""

    def change(bundle: Path) -> None:
        rewrite_cases(
            bundle / RESULTS / "cases.json",
            lambda c: c.model_copy(
                update={"cases": [c.cases[0].model_copy(update={"submission": None}), *c.cases[1:]]}
            ),
        )
        lock = json.loads((bundle / RESULTS / "lock.json").read_text())
        lock["submissions"]["clock"] = None
        (bundle / RESULTS / "lock.json").write_text(json.dumps(lock))

    assert "clock has no submission, though its trial sealed one" in said(verify_bundle(forge(change)))


def test_criteria_and_starts_are_compared_with_the_dataset(forge: Forge, judged: JudgedRun) -> None:
    easy = "Anything."

    def change(bundle: Path) -> None:
        def easier(cases: Cases) -> Cases:
            first = cases.cases[0]
            texts = [first.criteria[0].model_copy(update={"criterion": easy}), *first.criteria[1:]]
            return cases.model_copy(
                update={"cases": [first.model_copy(update={"criteria": texts}), *cases.cases[1:]]}
            )

        rewrite_cases(bundle / RESULTS / "cases.json", easier)
        rewrite_journal(bundle / JOURNAL, every(("clock", 1), lambda r: {**r, "criterion": easy}))
        (bundle / "start/clock/project/index.html").write_text("after already")

    forged = forge(change)
    assert places(verify_bundle(forged)) == ["start/clock/project"]
    found = verify_bundle(forged, dataset=judged.dataset)
    assert f"FAULT {RESULTS}/cases.json: the criteria of clock are not those of the dataset" in said(found)


def test_a_removed_verdict_makes_the_score_incomplete_and_other_numbers_are_found(
    forge: Forge, unpacked: Path
) -> None:
    forged = forge(lambda b: rewrite_journal(b / JOURNAL, every(("clock", 2), lambda _: None)))
    assert json.loads((forged / RESULTS / "scores.json").read_text())["incomplete"], "which everybody sees"
    scores = unpacked / RESULTS / "scores.json"
    scores.write_text(scores.read_text().replace('"partial": 1', '"partial": 0'))
    assert f"FAULT {RESULTS}/scores.json: scored again it differs in cases" in said(verify_bundle(unpacked))


def test_a_torn_or_unchained_line_is_named_by_its_number(unpacked: Path) -> None:
    path = unpacked / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert "results/editor/journal.jsonl, line 3: the hash chain is broken" in said(verify_bundle(unpacked))
    path.write_bytes(b"".join(lines)[:-1])
    assert "its last line is torn" in said(verify_bundle(unpacked))


# Hostile bundles: the rules of release archives hold, links may lie in applications alone.

GOOD = [member("bundle.json", b"{}"), member("results/x/lock.json", b"{}")]
SUBMISSION = "entries/e/submissions/one"
TRICKS = {
    "a path out": ([member("../evil", b"x")], "has `..` in it"),
    "an absolute path": ([member("/etc/evil", b"x")], "absolute"),
    "a link for a file of ours": ([link("results/x/journal.jsonl", "/etc/passwd")], "outside of an application"),
    "a link for a folder": ([link("results/y", "../..")], "outside of an application"),
    "a link out of a submission": ([link(f"{SUBMISSION}/a", "../../../../../etc/passwd")], "out of its application"),
    "a link into another submission": ([link(f"{SUBMISSION}/a", "../two/b")], "out of its application"),
    "a FIFO": ([member(f"{SUBMISSION}/pipe", kind=tarfile.FIFOTYPE)], "it is a FIFO"),
    "a device": ([member(f"{SUBMISSION}/zero", kind=tarfile.CHRTYPE)], "it is a device"),
    "a hard link out": ([hard_link(f"{SUBMISSION}/h", "/etc/passwd")], "hard link"),
    "one path twice": ([member("bundle.json", b"[]")], "given twice"),
    "control characters in a name of ours": ([member("results/x/a\x1b[2J", b"x")], "control character"),
    "control characters in an application's name": (
        [member("entries/e\n/submissions/one/f", b"x")],
        "control character",
    ),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_c4_hostile_archives_are_refused_by_the_rules_of_releases(tmp_path: Path, trick: str) -> None:
    members, why = TRICKS[trick]
    path = tmp_path / "b.tar.gz"
    path.write_bytes(gzip.compress(tar_bytes([*GOOD, *members]), 1))
    with pytest.raises(DataError, match=why):
        verify_bundle(path)
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", [JOURNAL, f"{RESULTS}/evidence", "entries"])
def test_links_in_an_unpacked_bundle_are_refused_before_anything_is_read(
    unpacked: Path, name: str, tmp_path: Path
) -> None:
    path = unpacked / name
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(DataError, match="is a link outside of an application"):
        verify_bundle(unpacked)


@pytest.mark.parametrize("where", ["../../../../outside", "/etc", "../../entries/../../outside"])
def test_paths_of_cases_json_that_lead_out_are_not_followed(forge: Forge, where: str) -> None:
    def change(cases: Cases) -> Cases:
        first = cases.cases[0]
        assert first.submission
        leads_out = first.submission.model_copy(update={"folder": where})
        return cases.model_copy(
            update={"cases": [first.model_copy(update={"submission": leads_out}), *cases.cases[1:]]}
        )

    def forged(bundle: Path) -> None:
        rewrite_cases(bundle / RESULTS / "cases.json", change)

    found = verify_bundle(_without_scoring(forge, forged))
    assert f"{where} leads out of the bundle" in said(found)


def _without_scoring(forge: Forge, change: Callable[[Path], None]) -> Path:
    """The scores cannot be made anew from cases.json that leads nowhere."""
    try:
        return forge(change)
    except (DataError, OSError):
        raise AssertionError("scoring looked at the path") from None


def test_no_bundle_at_all_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        verify_bundle(tmp_path / "nothing.tar.gz")
    with pytest.raises(UsageError, match="it is no bundle"):
        verify_bundle(tmp_path)
    (tmp_path / "x.tar.gz").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"x\.tar\.gz cannot be read"):
        verify_bundle(tmp_path / "x.tar.gz")


def test_the_command_line_tells_faults_by_its_exit_code(
    unpacked: Path, bundle: Path, run_cdb: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    good = run_cdb(["verify", bundle, "--json"])
    assert (good.returncode, json.loads(good.stdout)["faults"]) == (0, [])
    (unpacked / ENTRY / "submissions/clock/run.sh").write_text("x")
    bad = run_cdb(["verify", unpacked])
    assert bad.returncode == 1
    assert f"FAULT {ENTRY}/submissions/clock/run.sh: changed since the bundle was made" in bad.stdout


def test_replays_without_a_start_application_ask_for_the_dataset(judged: JudgedRun, tmp_path: Path) -> None:
    write_bundle([judged.results], tmp_path / "b.tar.gz", environment={})
    with pytest.raises(UsageError, match="pass the extracted release with --dataset"):
        verify_bundle(tmp_path / "b.tar.gz", replays=1)


def test_the_same_seed_draws_the_same_verdicts(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator.bundle import replays

    monkeypatch.setattr(replays, "_replay", lambda s, n, c, i, f: replays.Replayed(n, c, i, "holds"))
    drawn = [[one[1:3] for one in verify_bundle(bundle, replays=3, seed=seed).replayed] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(verify_bundle(bundle, replays=99).replayed) == 4, "those that stand on witnesses"
    monkeypatch.setattr(
        replays, "_replay", lambda s, n, c, i, f: replays.Replayed(n, c, i, "fails", "recorded PASS, now FAIL")
    )
    found = verify_bundle(bundle, replays=1)
    assert places(found) == [JOURNAL] and "does not replay" in said(found)
