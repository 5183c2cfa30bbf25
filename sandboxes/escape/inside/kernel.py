"""System calls that lead out of a container or into another's memory, and kernel settings."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .attempt import Attempt, Facts, Result, add, attempt, none_of, nothing_in, refused

KERNEL = "kernel"
_NEW_USER, _NEW_NET, _NEW_MOUNTS = 0x10000000, 0x40000000, 0x00020000
_SIGCHLD = 17
_CONTAINED = (errno.EPERM, errno.EACCES, errno.ENOSYS)
"""Answers given before the kernel looked at an argument. Anything else: the call itself was let through."""


class _Call(NamedTuple):
    name: str
    what: str
    x86_64: int
    aarch64: int | None
    arguments: tuple[int | bytes, ...]


_TIMEX = struct.pack("=I", 0x8001) + bytes(204)  # single shot, offset 0: moves nothing
_CALLS = (
    _Call("ptrace-init", "stopping PID 1 as a debugger", 101, 117, (16, 1, 0, 0)),
    _Call("read-memory-of-init", "reading the memory of PID 1", 310, 270, (1, 0, 0, 0, 0, 0)),
    _Call("write-memory-of-init", "writing the memory of PID 1", 311, 271, (1, 0, 0, 0, 0, 0)),
    _Call("take-descriptor-of-init", "taking an open file from PID 1", 438, 438, (0, 0, 0)),
    _Call("io-uring", "io_uring, which no filter of system calls sees into", 425, 425, (1, 0)),
    _Call("mount", "mounting", 165, 40, (b"none", b"/tmp", b"tmpfs", 0, 0)),
    _Call("remount-root", "making the root writable", 165, 40, (b"none", b"/", 0, 0x1020, 0)),
    _Call("bind-mount", "mounting a folder elsewhere", 165, 40, (b"/", b"/tmp", 0, 4096, 0)),
    _Call("unmount", "unmounting what covers parts of /proc", 166, 39, (b"/proc/acpi", 2)),
    _Call("new-mount-api", "mounting by the newer calls", 430, 430, (b"tmpfs", 0)),
    _Call("open-tree", "taking a mount along", 428, 428, (-100, b"/", 1)),
    _Call("move-mount", "moving a mount", 429, 429, (-100, b"/tmp", -100, b"/tmp", 0)),
    _Call("pivot-root", "changing the root", 155, 41, (b"/", b"/")),
    _Call("chroot", "changing the process's root", 161, 51, (b"/tmp",)),
    _Call("new-user-namespace", "a user namespace, in which it would be root", 272, 97, (_NEW_USER,)),
    _Call("new-network-namespace", "a network namespace", 272, 97, (_NEW_NET,)),
    _Call("new-mount-namespace", "a mount namespace", 272, 97, (_NEW_MOUNTS,)),
    _Call("clone-user-namespace", "a child in a new user namespace", 56, 220, (_NEW_USER | _SIGCHLD, 0, 0, 0, 0)),
    _Call("join-namespace", "joining another namespace", 308, 268, (0, 0)),
    _Call("keyctl", "the kernel's keyrings, which containers share", 250, 219, (0, -3, 0, 0, 0)),
    _Call("add-key", "a key in the kernel's keyrings", 248, 217, (b"user", b"x", b"x", 1, -3)),
    _Call("request-key", "a key of somebody else", 249, 218, (b"user", b"x", 0, 0)),
    _Call("bpf", "a program in the kernel", 321, 280, (0, 0, 0)),
    _Call("perf-events", "watching the whole machine", 298, 241, (0, -1, 0, -1, 0)),
    _Call("userfaultfd", "stalling the kernel at a page fault", 323, 282, (0,)),
    _Call("kexec", "another kernel", 246, 104, (0, 0, 0, 0)),
    _Call("load-module", "a kernel module from memory", 175, 105, (0, 0, b"")),
    _Call("load-module-file", "a kernel module from a file", 313, 273, (-1, b"", 0)),
    _Call("unload-module", "removing a kernel module", 176, 106, (b"no_such_module", 0)),
    _Call("open-by-handle", "a host's file by its number", 304, 265, (-1, 0, 0)),
    _Call("reboot", "rebooting (with a wrong magic number)", 169, 142, (1, 2, 3, 0)),
    _Call("swap", "swap space", 167, 224, (b"/tmp/none", 0)),
    _Call("process-accounting", "process accounting", 163, 89, (b"/tmp/none",)),
    _Call("adjust-clock", "slewing the clock", 159, 171, (_TIMEX,)),
    _Call("host-name", "the host name", 170, 161, (b"sandbox", 7)),
    _Call("domain-name", "the domain name", 171, 162, (b"sandbox", 7)),
    _Call("input-output-ports", "the processor's ports", 172, None, (3,)),
    _Call("some-input-output-ports", "some of the processor's ports", 173, None, (0, 1, 1)),
    _Call("kernel-log", "the kernel's log", 103, 116, (3, 0, 0)),
    _Call("disk-quotas", "disk quotas", 179, 60, (0, 0, 0, 0)),
    _Call("compare-processes", "comparing kernel objects of processes", 312, 272, (1, 1, 0, 0, 0)),
    _Call("watch-file-system", "watching a whole file system", 300, 262, (0, 0)),
    _Call("personality", "switching off address randomisation", 135, 92, (0x0040000,)),
    _Call("move-pages", "moving another process's pages", 279, 239, (1, 0, 0, 0, 0, 0)),
)


def _calling(call: _Call) -> Callable[[Facts], Result]:
    def run(_facts: Facts) -> Result:
        number = call.x86_64 if os.uname().machine == "x86_64" else call.aarch64
        if number is None:
            return Result(False, "this processor has no such call")
        libc = ctypes.CDLL(None, use_errno=True)
        got = libc.syscall(number, *(ctypes.c_long(it) if isinstance(it, int) else it for it in call.arguments))
        if got == 0 and call.name.startswith("clone"):
            os._exit(0)  # the child, if there is one
        code = ctypes.get_errno() if got == -1 else 0
        return Result(got != -1 or code not in _CONTAINED, errno.errorcode.get(code, f"it returned {got}"))

    return run


for _call in _CALLS:
    add(Attempt(_call.name, KERNEL, _call.what, _calling(_call)))


@attempt(KERNEL, "setting the clock (to the time it shows)")
def set_clock(facts: Facts) -> Result:
    return refused(lambda: time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME)))


def _writable_below(root: str) -> Result:
    writable, seen = [], 0
    for folder, _, names in os.walk(root):
        for name in names:
            seen += 1
            path = os.path.join(folder, name)
            if os.access(path, os.W_OK):
                writable.append(path)
    return nothing_in(writable, seen, f"settings below {root}")


@attempt(KERNEL, "a kernel setting below /proc/sys that may be written (core_pattern and all others)")
def kernel_settings(facts: Facts) -> Result:
    return _writable_below("/proc/sys")


@attempt(KERNEL, "anything below /sys that may be written (uevent_helper, devices, cgroups)")
def device_settings(facts: Facts) -> Result:
    return _writable_below("/sys")


@attempt(KERNEL, "the kernel's emergency keys, memory image and log")
def kernel_files(facts: Facts) -> Result:
    wanted = {"/proc/sysrq-trigger": os.O_WRONLY, "/proc/kcore": os.O_RDONLY, "/dev/kmsg": os.O_RDONLY,
              "/dev/mem": os.O_RDWR, "/dev/port": os.O_RDWR, "/proc/acpi/wakeup": os.O_WRONLY}  # fmt: skip
    return none_of({path: partial(os.open, path, how) for path, how in wanted.items()})


@attempt(KERNEL, "the kernel's own addresses")
def kernel_addresses(facts: Facts) -> Result:
    with Path("/proc/kallsyms").open(encoding="ascii") as lines:
        shown = [line for _, line in zip(range(2000), lines, strict=False)]
    if not shown:
        return Result(False, "the list is empty")
    return nothing_in([line.split()[2] for line in shown if int(line.split()[0], 16)], len(shown), "symbols")


@attempt(KERNEL, "its own limits, raised through the cgroup files")
def own_limits(facts: Facts) -> Result:
    names = ("memory/memory.limit_in_bytes", "pids/pids.max", "cpu/cpu.cfs_quota_us", "devices/devices.allow",
             "memory.max", "pids.max", "cpu.max", "memory/release_agent", "cgroup.procs")  # fmt: skip
    trials = {name: partial(os.open, f"/sys/fs/cgroup/{name}", os.O_WRONLY) for name in names}
    return none_of(trials)
