"""A failed install is given another chance where the reason allows one, each kind once."""

from __future__ import annotations

import pytest

from evaluator.install_remedies import Remedy, remedy

SCRIPT = "npm error code 7\nnpm error path /workspace\nnpm error command failed\nnpm error command sh -c husky\n"


def test_c64_a_lock_out_of_step_is_resolved_anew() -> None:
    assert remedy(["npm", "ci"], "npm error code EUSAGE\n") == Remedy(["npm", "install"], "lock_mismatch")
    assert remedy(["npm", "install"], "npm error code EUSAGE\n") is None
    frozen = ["npm", "exec", "--yes", "--", "pnpm@9", "install", "--frozen-lockfile"]
    then = remedy(frozen, " ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with frozen-lockfile")
    assert then == Remedy([*frozen[:-1], "--no-frozen-lockfile"], "lock_mismatch")


def test_remedies_add_up_and_end() -> None:
    first = remedy(["npm", "ci"], "npm error code ERESOLVE\n")
    assert first == Remedy(["npm", "ci", "--legacy-peer-deps"], "legacy_peer_deps")
    second = remedy(first.command, SCRIPT)
    assert second == Remedy([*first.command, "--ignore-scripts"], "scripts_skipped")
    assert remedy(second.command, SCRIPT) is None
    assert remedy(second.command, "npm error code ERESOLVE\n") is None


@pytest.mark.parametrize(
    "log", ["npm error code E404\n", "npm error code ETARGET\n", "npm error code ENOTFOUND\n", ""]
)
def test_what_no_remedy_answers_stays_failed(log: str) -> None:
    assert remedy(["npm", "ci"], log) is None
