"""What to try when an install fails for a reason that is not yet the application's fault, and how it is recorded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evaluator.build_faults import npm_code

SCRIPT_FAILED = re.compile(r"^npm (?:ERR!|error) command (?:failed|sh )", re.MULTILINE)
YARN_OUTDATED_LOCK = "YN0028"
NPM_COMMANDS = (("npm", "ci"), ("npm", "install"))


class Remedy(NamedTuple):
    """The next command, and the flag that says what was done beside the plan."""

    command: list[str]
    flag: str


def remedy(command: Sequence[str], log: str) -> Remedy | None:
    """The first remedy that answers what `log` says and has not been tried; None when nothing would help.

    A lock that does not fit package.json is resolved anew (agents edit package.json alone); peer versions
    that clash are let be, as older clients do; a failing install script is left out: what it wants (git
    hooks, a download, a compiler) a page seldom needs.
    """
    npm = tuple(command[:2]) in NPM_COMMANDS
    code = npm_code(log) if npm else ""
    candidates = (
        (code == "EUSAGE" and command[1] == "ci", ["npm", "install", *command[2:]], "lock_mismatch"),
        (
            "--frozen-lockfile" in command and "ERR_PNPM_OUTDATED_LOCKFILE" in log,
            [word.replace("--frozen", "--no-frozen") for word in command],
            "lock_mismatch",
        ),
        (
            "--immutable" in command and YARN_OUTDATED_LOCK in log,
            [word.replace("--immutable", "--no-immutable") for word in command],
            "lock_mismatch",
        ),
        (code == "ERESOLVE", [*command, "--legacy-peer-deps"], "legacy_peer_deps"),
        (npm and SCRIPT_FAILED.search(log) is not None, [*command, "--ignore-scripts"], "scripts_skipped"),
    )
    return next(
        (Remedy(then, flag) for applies, then, flag in candidates if applies and then[-1] not in command), None
    )
