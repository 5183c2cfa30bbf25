"""An audit from its draw to its report: strata and probabilities, a page that gives nothing away, figures by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from told_judgings import AGENT, MODEL, SAID, make_judging

from bench.errors import DataError, UsageError
from evaluator.audit.design import allocate, read_design
from evaluator.audit.page import sample
from evaluator.audit.report import audit_report, lines

VERDICTS: dict[str, list[str | None]] = {
    "alpha": ["PASS", "PASS", "FAIL", "PARTIAL"], "beta": ["FAIL", "FAIL", "PASS", None], "gamma": ["FAIL", "FAIL"],
}  # fmt: skip


def draw(results: list[Path], out: Path, labels: int = 10, seed: int = 3) -> Any:
    return sample(results, out, column="witnessed", labels=labels, seed=seed)


def label(design: Path, who: str, path: Path, wrong: dict[tuple[str, int], str] | None = None) -> Path:
    """A labeller who says what the judge says, but for `wrong`."""
    read = read_design(design)
    labels = {}
    for item in read.items:
        said = VERDICTS[item.case][item.criterion_index - 1]
        labels[item.item] = {"verdict": (wrong or {}).get((item.case, item.criterion_index), said or "UNSURE")}
    path.write_text(
        json.dumps({"schema": "cdb.audit_labels/1", "audit": read.audit, "labeller": who, "labels": labels})
    )
    return path


@pytest.mark.parametrize(
    ("sizes", "weights", "total", "takes"),
    [
        ([10, 10], [1, 1], 10, [5, 5]),
        ([30, 10, 1], [1, 1, 1], 12, [8, 3, 1]),
        ([10, 10], [2, 1], 10, [6, 4]),
        ([3, 100], [1, 1], 200, [3, 100]),
        ([5, 5], [1, 1], 1, [2, 2]),
    ],
)
def test_labels_are_shared_out_by_size_and_doubt(
    sizes: list[int], weights: list[float], total: int, takes: list[int]
) -> None:
    assert allocate(sizes, weights, total) == takes


def test_strata_are_made_by_attachment_verdict_and_flags_and_settled_criteria_are_not_drawn(tmp_path: Path) -> None:
    folder = make_judging(tmp_path / "r", VERDICTS, flagged=frozenset({("alpha", 1)}), settled="gamma")
    design = draw([folder], tmp_path / "audit").design
    told = {tuple(s.traits.values()): (s.size, s.drawn) for s in design.results[0].strata}
    assert told == {
        ("audio", "FAIL", False): (1, 1), ("audio", "PARTIAL", False): (1, 1), ("audio", "PASS", False): (1, 1),
        ("audio", "PASS", True): (1, 1), ("none", "FAIL", False): (2, 2), ("none", "PASS", False): (1, 1),
        ("none", "none", False): (1, 1),
    }  # fmt: skip
    assert "gamma" not in {item.case for item in design.items}
    assert draw([folder], tmp_path / "few", labels=4).design.results[0].level == []  # coarser strata for few labels
    assert [s.drawn for s in read_design(tmp_path / "few" / "design.json").results[0].strata] == [4]
    assert {item.probability for item in read_design(tmp_path / "few" / "design.json").items} == {4 / 8}


def test_the_page_gives_away_neither_verdict_nor_rule_nor_who_made_or_judged_it(tmp_path: Path) -> None:
    folders = [make_judging(tmp_path / name, VERDICTS) for name in ("first-entry", "second-entry")]
    made = draw(folders, tmp_path / "audit", labels=20)
    page = made.page.read_text(encoding="utf-8")
    for hidden in (AGENT, MODEL, SAID, "it-did-not-hold", "core_holds", "first-entry", "second-entry", "probability"):
        assert hidden not in page, hidden
    assert "criterion 1 of alpha" in page and "request of beta" in page and "Click the button" in page
    assert made.page.parent != made.design_file.parent
    # the same criterion of both entries is drawn; nothing but its number tells the two questions apart
    parts = page.split('<section class="item"')[1:]
    twins = [
        part.replace(part[part.index("data-item") :][11:14], "N") for part in parts if "criterion 1 of beta" in part
    ]
    assert len(twins) == 2 and twins[0].partition("</section>")[0] == twins[1].partition("</section>")[0]


def test_the_same_seed_gives_the_same_bytes_and_another_draw_does_not_overwrite(tmp_path: Path) -> None:
    folder = make_judging(tmp_path / "r", VERDICTS)
    made = draw([folder], tmp_path / "audit")
    first = made.page.read_bytes(), made.design_file.read_bytes()
    draw([folder], tmp_path / "audit")
    assert (made.page.read_bytes(), made.design_file.read_bytes()) == first
    with pytest.raises(UsageError, match="holds another audit"):
        draw([folder], tmp_path / "audit", labels=4, seed=9)


def test_the_report_of_a_census_worked_out_by_hand(tmp_path: Path) -> None:
    # Judge: alpha (1+1)/4, beta 1/4, gamma 0 Strict = 25 %. Two people label all; both say alpha 2 is FAIL and one
    # says beta 1 is PASS: alpha 1/4, beta (1 + ½)/4, gamma 0 = 20.833 %. Graded judge (2.5 + 1)/4/3 = 29.17 %.
    folder = make_judging(tmp_path / "r", VERDICTS)
    made = draw([folder], tmp_path / "audit", labels=99)
    ann = label(made.design_file, "Ann", tmp_path / "a.json", {("alpha", 2): "FAIL", ("beta", 4): "FAIL"})
    ben = label(
        made.design_file, "Ben", tmp_path / "b.json", {("alpha", 2): "FAIL", ("beta", 1): "PASS", ("beta", 4): "FAIL"}
    )
    found = audit_report(made.design_file, [ann, ben])
    strict, graded = found["results"][0]["strict"], found["results"][0]["graded"]
    assert (strict["judge"], strict["mean"]) == (25.0, pytest.approx(100 * (1 / 4 + 1.5 / 4) / 3, abs=1e-3))
    assert strict["here_low"] == strict["here_high"] == strict["mean"]  # everything was labelled
    assert graded["judge"] == pytest.approx(100 * (2.5 + 1) / 4 / 3, abs=1e-3)
    assert found["judge"]["confusion"]["PASS"] == {"FAIL": 2, "PARTIAL": 0, "PASS": 4}
    assert found["judge"]["confusion"]["FAIL"] == {"FAIL": 9, "PARTIAL": 0, "PASS": 1}
    # People: ranks agree but for beta 1, (0, 2): observed 1; margins FAIL 7/6, PARTIAL 1/1, PASS 2/3 of 10;
    # expected [¼(7·1 + 1·6 + 1·3 + 2·1) + 7·3 + 2·6]/10 = 3.75; kappa 1 - 1/3.75.
    assert found["people"]["pairs"][0]["kappa"]["value"] == pytest.approx(1 - 1 / 3.75, abs=1e-6)
    assert {(d["case"], d["criterion_index"]) for d in found["disagreements"]} == {
        ("alpha", 2),
        ("beta", 1),
        ("beta", 4),
    }
    assert any("corrected 20.8" in line for line in lines(found))


def test_a_stratum_without_a_label_gives_agreement_and_no_corrected_score(tmp_path: Path) -> None:
    made = draw([make_judging(tmp_path / "r", VERDICTS)], tmp_path / "audit")
    found = audit_report(made.design_file, [label(made.design_file, "Ann", tmp_path / "a.json")])  # unsure of beta 4
    assert found["results"][0]["strict"] is None and "label the rest" in found["results"][0]["why_not"]
    assert found["judge"]["kappa"]["value"] == 1.0
    assert found["labellers"][0]["unsure"] == 1


def test_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder = make_judging(tmp_path / "r", VERDICTS)
    made, other = draw([folder], tmp_path / "audit"), draw([folder], tmp_path / "other", seed=4)
    ann = label(made.design_file, "Ann", tmp_path / "a.json")
    with pytest.raises(UsageError, match="of audit"):
        audit_report(other.design_file, [ann])
    with pytest.raises(UsageError, match="second file of labeller 'Ann'"):
        audit_report(made.design_file, [ann, ann])
    ann.write_text(ann.read_text().replace('"001"', '"999"'))
    with pytest.raises(DataError, match="no item '999'"):
        audit_report(made.design_file, [ann])
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + journal.read_bytes().splitlines(True)[-1])
    with pytest.raises(DataError):
        audit_report(made.design_file, [label(made.design_file, "Ben", tmp_path / "b.json")])


def test_a_judging_that_is_not_finished_is_not_drawn_from(tmp_path: Path) -> None:
    folder = make_judging(tmp_path / "r", VERDICTS)
    journal = folder / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(True)[:-1]))
    with pytest.raises(UsageError, match="gamma is not judged yet"):
        draw([folder], tmp_path / "audit")
