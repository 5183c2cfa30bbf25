"""Becoming somebody else, and reaching processes that are not one's own."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .attempt import Facts, Result, attempt, none_of, nothing_in, refused

PROCESSES = "processes"
_OWN_ID = 10001


def _foreign() -> list[int]:
    """Processes of another user: PID 1 and the name sink."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if Path(f"/proc/{pid}").stat().st_uid != os.getuid() or pid == 1]


def _on_each(act: Callable[[int], object]) -> Result:
    pids = _foreign()
    if 1 not in pids:
        raise RuntimeError("PID 1 is not to be seen")
    return none_of({f"process {pid}": partial(act, pid) for pid in pids})


@attempt(PROCESSES, "killing or stopping PID 1 and the recorder of names")
def signal_init(facts: Facts) -> Result:
    pids, numbers = _foreign(), (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL)
    if 1 not in pids:
        raise RuntimeError("PID 1 is not to be seen")
    return none_of({f"{n.name} to {pid}": partial(os.kill, pid, n) for pid in pids for n in numbers})


@attempt(PROCESSES, "the memory of PID 1, as a file")
def memory_of_init(facts: Facts) -> Result:
    return _on_each(lambda pid: os.open(f"/proc/{pid}/mem", os.O_RDWR))


@attempt(PROCESSES, "the environment of PID 1")
def environment_of_init(facts: Facts) -> Result:
    return _on_each(lambda pid: Path(f"/proc/{pid}/environ").read_bytes())


@attempt(PROCESSES, "the container's log, through the open files of PID 1")
def log_of_container(facts: Facts) -> Result:
    return _on_each(lambda pid: os.open(f"/proc/{pid}/fd/1", os.O_WRONLY))


@attempt(PROCESSES, "another root, through PID 1")
def root_of_init(facts: Facts) -> Result:
    return _on_each(lambda pid: os.listdir(f"/proc/{pid}/root"))


@attempt(PROCESSES, "processes outside this container")
def processes_outside(facts: Facts) -> Result:
    own = Path("/proc/self/cgroup").read_text(encoding="ascii")
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    return nothing_in([pid for pid in pids if _cgroup(pid) not in (own, "")], len(pids), "processes")


def _cgroup(pid: str) -> str:
    """Empty for a process that ended meanwhile; one that is only waited for is in no group any more."""
    try:
        stopped = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
            in "ZX"
        )
        return "" if stopped else Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii")
    except OSError:
        return ""


@attempt(PROCESSES, "user 0, by asking")
def become_root(facts: Facts) -> Result:
    calls: dict[str, Callable[[], None]] = {
        "setuid": lambda: os.setuid(0), "setgid": lambda: os.setgid(0), "setgroups": lambda: os.setgroups([0]),
        "setresuid": lambda: os.setresuid(0, 0, 0),
    }  # fmt: skip
    return none_of(dict(calls))


@attempt(PROCESSES, "user 0, by the image's setuid programs")
def setuid_programs(facts: Facts) -> Result:
    tried = []
    for argv in (["su", "-c", "id -u"], ["mount", "-t", "tmpfs", "none", "/tmp"], ["passwd", "-S", "root"]):
        if shutil.which(argv[0]):
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
            if done.returncode == 0:
                return Result(True, f"{argv[0]} worked: {done.stdout[:100]!r}")
            tried.append(argv[0])
    return Result(False, f"{', '.join(tried) or 'no such program'}: all failed")


@attempt(PROCESSES, "a setuid program of its own")
def own_setuid_program(facts: Facts) -> Result:
    program = Path("/tmp/own-sh")
    shutil.copyfile("/bin/sh", program)
    program.chmod(0o6755)
    try:
        os.chown(program, 0, 0)
    except OSError:
        done = subprocess.run([program, "-p", "-c", "id -u"], capture_output=True, text=True, timeout=10, check=False)
        return Result(done.stdout.strip() == "0", f"not given to root; it runs as {done.stdout.strip()}")
    return Result(True, "the file belongs to root now")


@attempt(PROCESSES, "capabilities, written to a file of its own")
def file_capabilities(facts: Facts) -> Result:
    program = Path("/tmp/own-capable")
    program.touch()
    everything = b"\x01\x00\x00\x02" + b"\xff" * 16
    return refused(lambda: os.setxattr(program, "security.capability", everything))


@attempt(PROCESSES, "capabilities it may have been left")
def capabilities(facts: Facts) -> Result:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    sets = dict(re.findall(r"^(Cap\w+):\s+([0-9a-f]+)$", status, re.MULTILINE))
    return nothing_in([f"{name}={bits}" for name, bits in sets.items() if int(bits, 16)], len(sets), "sets")


@attempt(PROCESSES, "running without the filter of system calls, or with a way to new privileges")
def filter_is_off(facts: Facts) -> Result:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    told = dict(re.findall(r"^(NoNewPrivs|Seccomp):\s+(\d)$", status, re.MULTILINE))
    return Result(told != {"NoNewPrivs": "1", "Seccomp": "2"}, str(told))


@attempt(PROCESSES, "switching the bar to new privileges off again")
def new_privileges(facts: Facts) -> Result:
    got = ctypes.CDLL(None).prctl(38, 0, 0, 0, 0)
    return Result(got == 0, f"prctl returned {got}")


@attempt(PROCESSES, "more processor time than others: a negative nice value, a real-time class")
def scheduling(facts: Facts) -> Result:
    return none_of({
        "nice": lambda: os.setpriority(os.PRIO_PROCESS, 0, -10),
        "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    })  # fmt: skip


@attempt(PROCESSES, "being spared by the memory killer")
def spared_by_memory_killer(facts: Facts) -> Result:
    return refused(lambda: Path("/proc/self/oom_score_adj").write_text("-1000", encoding="ascii"))


@attempt(PROCESSES, "a higher cap on open files or core dumps")
def higher_caps(facts: Facts) -> Result:
    def raise_cap(kind: int) -> Callable[[], None]:
        def trial() -> None:
            hard = resource.getrlimit(kind)[1]
            try:
                resource.setrlimit(kind, (hard + 1, hard + 1))
            except ValueError as error:  # how Python tells EPERM here
                raise PermissionError(1, str(error)) from error

        return trial

    return none_of({"open files": raise_cap(resource.RLIMIT_NOFILE), "core": raise_cap(resource.RLIMIT_CORE)})


@attempt(PROCESSES, "running as anybody but the container's user")
def other_identity(facts: Facts) -> Result:
    seen = {*os.getresuid(), *os.getresgid(), *os.getgroups()}
    return Result(seen != {_OWN_ID}, f"ids {sorted(seen)}")
