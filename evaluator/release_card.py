"""The texts of a release that people read first: README.md with the card's front matter, and CITATION.cff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.case_source import ATTACHMENTS, CaseSource


@dataclass(frozen=True)
class ReleaseAbout:
    """What a release says of itself. `scope` names the set of tasks, as `ME-96` does for the public one."""

    name: str
    scope: str
    version: str
    released: str
    summary: str
    authors: str

    @property
    def package(self) -> str:
        """The stem of the release's own file names."""
        return f"CoDesignBench-{self.scope}"


def readme(about: ReleaseAbout, cases: Sequence[CaseSource]) -> str:
    """README.md: `configs:` front matter as `datasets.load_dataset` reads it, then what is in the folder."""
    criteria = sum(len(case.criteria) for case in cases)
    kinds = Counter(case.attachment for case in cases)
    labels = {kind: "No extra attachment" if kind == "none" else kind.capitalize() for kind in ATTACHMENTS}
    by_kind = "\n".join(f"| {labels[kind]} | {kinds[kind]} |" for kind in ATTACHMENTS)
    case_rows = "\n".join(
        f"| `{case.case_id}` | {case.title} | {labels[case.attachment]} | {len(case.criteria)} |" for case in cases
    )
    return f"""---
pretty_name: {about.name}
license: apache-2.0
tags:
  - benchmark
  - multimodal
  - coding-agents
  - web-development
size_categories:
  - n<1K
configs:
  - config_name: tasks
    default: true
    data_files:
      - split: test
        path: data/tasks.parquet
  - config_name: rubrics
    data_files:
      - split: test
        path: data/rubrics.parquet
---

# {about.name}

{about.summary}

Scope **{about.scope}**, version {about.version}: **{len(cases)} tasks and {criteria} acceptance criteria**.
Name this scope with every result; it is not comparable with results on any other set of tasks.

| Case | Application | Attachment | Criteria |
| --- | --- | --- | ---: |
{case_rows}

| Primary attachment | Tasks |
| --- | ---: |
{by_kind}
| Total | {len(cases)} |

## Files

| File | Contents |
| --- | --- |
| [Solver archive](solve_norubric.tar.gz) | Applications, requests, annotations, attachments; no rubric. |
| [Evaluation archive](eval_withrubric.tar.gz) | The same inputs, with each task's `rubric.json`. |
| [Task index](data/tasks.parquet) | A record per task, with its screenshot: configuration `tasks`. |
| [Rubric index](data/rubrics.parquet) | A record per criterion: configuration `rubrics`; evaluators only. |
| [Rubric exports](rubrics/) | The criteria as CSV, JSONL and grouped JSON, and the case list. |
| [Rubric package](CoDesignBench-{about.scope}-Rubrics-{criteria}.zip) | The `rubric.json` files. |
| [Manifest](manifest.json) | Scope, case ids, counts, archive checksums. |
| [SHA-256 checksums](SHA256SUMS) | For `sha256sum -c SHA256SUMS`. |

Keep the criteria out of a solver's context and workspace.
"""


def citation(about: ReleaseAbout) -> str:
    """CITATION.cff, format 1.2.0, for a data set."""
    return f"""cff-version: 1.2.0
message: Please cite this data set as below when you use it.
type: dataset
title: "{about.name}"
version: "{about.version}"
date-released: "{about.released}"
license: Apache-2.0
authors:
  - name: "{about.authors}"
"""
