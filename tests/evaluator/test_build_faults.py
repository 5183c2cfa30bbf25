"""A failed build's fault follows from facts, and never from what the application says about itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluator.build_faults import Seen, judge, npm_code, plain, useful_end
from sandboxes.mirror import MirrorEntry
from sandboxes.sandbox import GIB, Exec

FAILED = Exec(exit_code=1, duration_s=1.0)
BUILD = Seen("build", ("npm", "run", "build"), FAILED, "Error: x is not defined", 300.0, 4 * GIB)
INSTALL = replace(BUILD, phase="install", command=("npm", "ci"))


def answer(marker: str, package: str = "left-pad", item: str = "") -> MirrorEntry:
    return MirrorEntry.model_validate({
        "time": 0.0, "client": "c", "method": "GET", "kind": "package", "package": package, "item": item,
        "path": f"/{package}", "status": 502, "cache": "-", "bytes": 0, "marker": marker,
        "note": "the registry answered 503", "ms": 1.0,
    })  # fmt: skip


def fault(seen: Seen, **ended: object) -> tuple[str, str]:
    outcome, code, _ = judge(replace(seen, ended=replace(seen.ended, **ended)))  # type: ignore[arg-type]
    return outcome, code


def test_c67_heap_memory_and_time_are_told_apart() -> None:
    assert fault(BUILD, exit_code=134) == ("build_failed", "build_heap")
    heap = replace(BUILD, log="FATAL ERROR: Reached heap limit - JavaScript heap out of memory")
    assert fault(heap) == ("build_failed", "build_heap")
    assert fault(BUILD, exit_code=137) == ("build_failed", "build_oom")
    assert fault(BUILD, exit_code=1, oom_killed=True) == ("build_failed", "build_oom")
    assert fault(BUILD, exit_code=None, timed_out=True) == ("build_failed", "build_timeout")
    assert fault(INSTALL, exit_code=None, timed_out=True) == ("build_failed", "install_timeout")


def test_c67_limits_below_the_documented_minimum_are_the_machines_fault() -> None:
    small = replace(BUILD, memory_bytes=1 * GIB, deadline_s=10.0)
    assert fault(small, exit_code=134) == ("infra_error", "build_heap")
    assert fault(small, exit_code=137) == ("infra_error", "build_oom")
    assert fault(small, exit_code=None, timed_out=True) == ("infra_error", "build_timeout")


def test_c76_only_the_mirrors_log_makes_an_outage() -> None:
    assert fault(replace(INSTALL, answers=[answer("outage")])) == ("infra_error", "registry_outage")
    claimed = replace(INSTALL, log="npm error code E502\nnpm error 502 Bad Gateway: the registry is down")
    assert fault(claimed) == ("build_failed", "install_error")
    assert fault(replace(INSTALL, answers=[answer("outage")]), exit_code=None, timed_out=True)[0] == "infra_error"


def test_c76_a_package_that_does_not_exist_is_named() -> None:
    seen = replace(INSTALL, log="npm error code E404\n", answers=[answer("missing", "no-such-thing")])
    outcome, code, reason = judge(seen)
    assert (outcome, code) == ("build_failed", "no_such_package")
    assert "no-such-thing" in reason
    assert fault(replace(INSTALL, log="npm error code ETARGET\n"))[1] == "no_such_package"


def test_a_container_that_died_is_the_machines_fault() -> None:
    assert fault(BUILD, exit_code=None, broken=True) == ("infra_error", "container_lost")


def test_a_full_workspace_is_named() -> None:
    assert fault(replace(BUILD, log="ENOSPC: no space left on device"))[1] == "build_disk"


def test_the_reason_quotes_the_line_that_tells_most() -> None:
    log = 'vite v7 building\n✓ 3 modules\n[vite]: Rollup failed to resolve import "lodash"\nnpm error code 1\n'
    assert 'failed to resolve import "lodash"' in judge(replace(BUILD, log=log)).reason
    log = "entries/error.svelte.js  1.19 kB\n✓ built\nerror during build:\nTypeError: no property 'base'\n  at adapt (x.js:1)\n"
    assert judge(replace(BUILD, log=log)).reason.endswith("; TypeError: no property 'base'")


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ("npm error code EUSAGE\nnpm error\n", "EUSAGE"),
        ("npm ERR! code ERESOLVE\n", "ERESOLVE"),
        ("  npm error code EFAKE\nall fine", ""),
        ("npm error code 1\nnpm error path /workspace\nnpm error command failed", "1"),
    ],
)
def test_npms_own_code_is_read(log: str, code: str) -> None:
    assert npm_code(log) == code


def test_logs_are_read_without_colours_and_boilerplate() -> None:
    raw = b"\x1b[31mError\x1b[0m: boom\r\n10%\r50%\r100% done\nnpm error\nnpm error A complete log of this run can be found in: /x\n"
    assert useful_end(plain(raw)) == "Error: boom\n100% done"
    assert len(useful_end("x" * 100_000)) <= 6000
