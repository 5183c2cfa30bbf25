"""Whose fault a failed install or build is: a pure function from what was seen to an outcome and a reason.

What it rests on, strongest first: the mirror's own log (a registry that is away), the engine's word on
deadline and memory, npm's error code, the exit status, and only then text. An application cannot make
itself `infra_error` here by what it prints.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sandboxes.mirror import MirrorEntry
from sandboxes.sandbox import GIB, Exec

MINIMUM_MEMORY_BYTES = 2 * GIB
MINIMUM_PHASE_S = 60.0
"""Limits from which an application that does not fit into them is one that does not build."""
TAIL_LINES = 60
TAIL_CHARS = 6000
ABORTED = 134
KILLED = 137

NPM_CODE = re.compile(r"^npm (?:ERR!|error) code (\S+)", re.MULTILINE)
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
NOISE = re.compile(
    r"^npm (?:ERR!|error|notice)\s*$|A complete log of this run can be found|^npm notice|^\s*$|_logs/.*debug-0\.log"
)
HEADLINE_CHARS = 300
TELLING = re.compile(r"\berror\b(?![.\w-]*\.\w)|\bfailed\b|cannot find|\w+Error: \S", re.IGNORECASE)
"""Not the name of a file that was built: `error.svelte.js`."""
NAMED_ERROR = re.compile(r"\b[A-Z]\w*Error: \S|\bfailed to \w", re.IGNORECASE)
HEAP = "JavaScript heap out of memory"
NO_SPACE = "ENOSPC"
NOT_IN_REGISTRY = frozenset({"E404", "ETARGET", "ENOVERSIONS"})

Phase = Literal["install", "build"]


class Fault(NamedTuple):
    """What went wrong: the outcome it gives, a stable code for tables, a sentence for people."""

    outcome: Literal["build_failed", "infra_error"]
    code: str
    reason: str


@dataclass(frozen=True)
class Seen:
    """The facts about one failed command of `phase`. `log` is all of its output, escapes removed."""

    phase: Phase
    command: Sequence[str]
    ended: Exec
    log: str
    deadline_s: float
    memory_bytes: int
    answers: Sequence[MirrorEntry] = ()
    """What the mirror answered to this command."""


def npm_code(log: str) -> str:
    """npm's last error code (`EUSAGE`, `E404`, `1` for a failed script …) or empty."""
    codes = NPM_CODE.findall(log)
    return str(codes[-1]) if codes else ""


def plain(output: bytes) -> str:
    """Output as text without colours and progress bars."""
    text = ANSI.sub("", output.decode("utf-8", errors="replace"))
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def useful_end(log: str) -> str:
    """The last lines that say something, at most TAIL_LINES and TAIL_CHARS."""
    lines = [line.rstrip() for line in log.splitlines() if not NOISE.search(line)]
    return "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARS:]


def judge(seen: Seen) -> Fault:
    """The fault behind a command that did not end with 0."""
    command = " ".join(seen.command)
    away = [answer for answer in seen.answers if answer.marker == "outage"]
    if away:
        return Fault("infra_error", "registry_outage", f"the npm registry failed during `{command}`: {away[-1].note}")
    if seen.ended.broken:
        return Fault("infra_error", "container_lost", f"the builder container died while `{command}` ran")
    exhausted = _exhausted(seen, command)
    if exhausted:
        return exhausted
    gone = [answer for answer in seen.answers if answer.marker == "missing"]
    code = npm_code(seen.log)
    if seen.phase == "install" and (code in NOT_IN_REGISTRY or gone):
        names = sorted({f"{answer.package}@{answer.item}".strip("@") for answer in gone})
        wanted = f" ({', '.join(names[:5])})" if names else ""
        return Fault(
            "build_failed", "no_such_package", f"`{command}` asks for what the registry does not have{wanted}"
        )
    told = f"npm error code {code}" if code else f"exit status {seen.ended.exit_code}"
    return Fault("build_failed", f"{seen.phase}_error", f"`{command}` failed: {told}; {_headline(seen.log)}")


def _exhausted(seen: Seen, command: str) -> Fault | None:
    """A limit that was hit; below the documented minimum that is the machine's affair."""
    ended, log = seen.ended, seen.log
    if ended.timed_out:
        enough, code = seen.deadline_s >= MINIMUM_PHASE_S, f"{seen.phase}_timeout"
        said = f"`{command}` did not end within {seen.deadline_s:.0f} s"
    elif HEAP in log or (ended.exit_code == ABORTED and not ended.oom_killed):
        enough, code = seen.memory_bytes >= MINIMUM_MEMORY_BYTES, f"{seen.phase}_heap"
        said = f"`{command}` ran out of Node's heap (the container has {seen.memory_bytes / GIB:.1f} GiB)"
    elif ended.oom_killed or ended.exit_code == KILLED:
        enough, code = seen.memory_bytes >= MINIMUM_MEMORY_BYTES, f"{seen.phase}_oom"
        said = f"`{command}` was killed for want of memory (the container has {seen.memory_bytes / GIB:.1f} GiB)"
    elif NO_SPACE in log:
        enough, code = True, f"{seen.phase}_disk"
        said = f"`{command}` filled the workspace"
    else:
        return None
    return Fault("build_failed" if enough else "infra_error", code, said)


def _headline(log: str) -> str:
    """The line of the log that most likely says what is wrong."""
    lines = [line.strip()[:HEADLINE_CHARS] for line in log.splitlines() if line.strip() and not NOISE.search(line)]
    telling = [line for line in lines if TELLING.search(line)]
    telling.sort(key=lambda line: not NAMED_ERROR.search(line))  # a named error before a word like "failed"
    own = [line for line in telling if not line.startswith(("npm ERR!", "npm error"))]
    return (own or telling or lines or ["it said nothing"])[0]
