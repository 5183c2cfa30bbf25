"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from bench.outcomes import CASE, CRITERION, TRIAL
from bench.submission import SubmissionManifest
from evaluator.adjudicate import RULES
from evaluator.audit_queue import REASONS
from evaluator.bundle.layout import BundleCard, ResultCard
from evaluator.cases import Case, Cases
from evaluator.records import AdvocateRecord, CaseRecord, CriterionRecord, Replay, StepResult, SubResult
from sandboxes.egress.records import EgressLine, EgressSums, HostSums
from sandboxes.gateway.policy import Upstream
from sandboxes.gateway.records import CallRecord, TrialSummary

REPOSITORY = Path(__file__).parent.parent
RECORDS = (REPOSITORY / "docs/records.md").read_text(encoding="utf-8")


def test_every_field_that_is_written_is_explained() -> None:
    models = (SubmissionManifest, Case, Cases, CriterionRecord, CaseRecord, SubResult, Replay, StepResult)
    models = (*models, AdvocateRecord, CallRecord, TrialSummary, EgressLine, EgressSums, HostSums)
    models = (*models, BundleCard, ResultCard)
    fields = {field.removesuffix("_") for model in models for field in model.model_fields}
    unexplained = sorted(f for f in fields if not re.search(rf"[`.\[\]]{f}[`\[\]]", RECORDS))
    assert unexplained == []


def test_every_setting_of_an_upstream_is_explained() -> None:
    gateway = (REPOSITORY / "docs/gateway.md").read_text(encoding="utf-8")
    assert [field for field in Upstream.model_fields if f"`{field}`" not in gateway] == []


def test_every_outcome_and_rule_is_in_the_tables() -> None:
    for table in (TRIAL, CASE, CRITERION):
        for name, row in table.items():
            assert re.search(rf"\| `{name}` \|.*\| {row.counts} \|", RECORDS), name
    assert [rule for rule in RULES if f"`{rule}`" not in RECORDS] == []
    assert [n for n, reason in REASONS.items() if f"| `{n}` | {reason.weight} | {reason.text} |" not in RECORDS] == []


def test_every_document_that_is_linked_exists() -> None:
    for document in (REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
