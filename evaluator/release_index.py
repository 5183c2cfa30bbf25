"""The indexes of a release: two parquet files for browsing and the rubric exports, fields as on the card."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.case_source import CaseSource

TRACK = "ME"
STRING = {"dtype": "string", "_type": "Value"}
TASK_FEATURES = {
    "case_id": STRING,
    "benchmark_track": STRING,
    "request": STRING,
    "query_path": STRING,
    "project_path": STRING,
    "annotation_path": STRING,
    "annotation_image": {"_type": "Image"},
    "attachment_paths": {"feature": STRING, "_type": "List"},
}
RUBRIC_FEATURES = {
    "rubric_id": STRING,
    "case_id": STRING,
    "task_id": STRING,
    "benchmark_track": STRING,
    "criterion_index": {"dtype": "int64", "_type": "Value"},
    "criterion": STRING,
}
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write_task_index(out: Path, cases: Sequence[CaseSource]) -> None:
    """Write tasks.parquet: one row per case. Holds no criterion."""
    rows = [_task_row(case) for case in cases]
    kinds = {name: pa.string() for name in TASK_FEATURES}
    kinds |= {"annotation_image": IMAGE, "attachment_paths": pa.list_(pa.string())}
    _write_parquet(out, rows, kinds, TASK_FEATURES)


def write_rubric_index(out: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write rubrics.parquet from `rubric_rows`."""
    kinds = {name: pa.string() for name in RUBRIC_FEATURES} | {"criterion_index": pa.int64()}
    _write_parquet(out, rows, kinds, RUBRIC_FEATURES)


def rubric_rows(cases: Sequence[CaseSource]) -> list[dict[str, object]]:
    """One row per criterion in the cases' and criteria's order, keys as on the card."""
    return [
        {
            "rubric_id": criterion.rubric_id,
            "case_id": case.case_id,
            "task_id": case.task_id,
            "benchmark_track": TRACK,
            "criterion_index": index,
            "criterion": criterion.text,
        }
        for case in cases
        for index, criterion in enumerate(case.criteria, 1)
    ]


def rubric_exports(cases: Sequence[CaseSource]) -> dict[str, bytes]:
    """The files of `rubrics/` (name → content): the rows as CSV, JSONL and grouped JSON, and the case list."""
    rows = rubric_rows(cases)
    table = io.StringIO()
    writer = csv.DictWriter(table, list(RUBRIC_FEATURES), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    grouped = {
        case.case_id: {
            "case_id": case.case_id,
            "task_id": case.task_id,
            "benchmark_track": TRACK,
            "rubrics": [
                {"rubric_id": criterion.rubric_id, "criterion_index": index, "criterion": criterion.text}
                for index, criterion in enumerate(case.criteria, 1)
            ],
        }
        for case in cases
    }
    ids = [case.case_id for case in cases]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return {
        f"rubrics_{len(rows)}.csv": table.getvalue().encode(),
        f"rubrics_{len(rows)}.jsonl": lines.encode(),
        "rubrics_by_task.json": json_bytes(grouped),
        "case_list.txt": "".join(f"{case_id}\n" for case_id in ids).encode(),
        "case_list.json": json_bytes(ids),
    }


def json_bytes(value: object) -> bytes:
    """JSON for people and machines: indented, keys in the order given, one newline at the end."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _task_row(case: CaseSource) -> dict[str, object]:
    base, annotation = f"cases/{case.case_id}", case.annotations[0]
    return {
        "case_id": case.case_id,
        "benchmark_track": TRACK,
        "request": case.request,
        "query_path": f"{base}/user_queries.json",
        "project_path": f"{base}/project",
        "annotation_path": f"{base}/project/{annotation}",
        "annotation_image": {
            "bytes": (case.project / annotation).read_bytes(),
            "path": Path(annotation).name,
        },
        "attachment_paths": [f"{base}/project/{path}" for path in case.attachments],
    }


def _write_parquet(
    out: Path, rows: Sequence[dict[str, object]], kinds: dict[str, pa.DataType], features: Mapping[str, object]
) -> None:
    """One row group, every setting fixed; the features that `datasets` reads go into the schema."""
    told = json.dumps({"info": {"features": features}})
    schema = pa.schema([(name, kinds[name]) for name in features], metadata={"huggingface": told})
    table = pa.Table.from_pylist(list(rows), schema=schema)
    pq.write_table(
        table,
        out,
        row_group_size=max(1, len(rows)),
        version="2.6",
        compression="snappy",
        use_dictionary=False,
        write_statistics=False,
        data_page_version="1.0",
    )
