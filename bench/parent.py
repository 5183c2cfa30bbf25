"""A step of a run ends when the run's own process does, however that ended: nothing goes on spending unseen."""

from __future__ import annotations

import os
import signal
import sys

PARENT = "CDB_PARENT"
"""Names the process id of the run that started this process."""
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent dies; does nothing for a process no run has started.

    On systems without prctl (macOS) the next start waits for the step's locks instead.
    """
    parent = os.environ.pop(PARENT, "")
    if not parent.isdigit() or sys.platform != "linux":
        return
    import ctypes  # only here: every other start of the command line goes without it

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(parent):  # it died before the kernel was asked
        raise SystemExit(128 + signal.SIGTERM)
