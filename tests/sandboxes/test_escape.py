"""Every attempt to get out of a container fails, on a container as trials get it, and is recognised when it does not."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from sandboxes import docker_sandbox, hardening
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.engine import engine
from sandboxes.escape import suite
from sandboxes.escape.__main__ import markdown
from sandboxes.escape.finding import Finding
from sandboxes.owner import OWNER, this_process

SHOULD_SUCCEED = {
    "become-root", "capabilities", "environment-of-init", "filter-is-off", "host-by-every-address", "io-uring",
    "kernel-addresses", "keyctl", "log-of-container", "make-device", "memory-of-init", "other-identity",
    "other-interfaces", "passwords", "preload", "ptrace-init", "raw-socket", "read-memory-of-init", "replace-git",
    "replace-shell", "root-of-init", "signal-init", "write-file-outside", "write-outside",
}  # fmt: skip
"""What must be seen to work in a container that is made as carelessly as many are."""


def hidden_by_this_kernel() -> set[str]:
    """What the host's own settings keep even from a careless container's root, which has no CAP_SYSLOG."""
    kernel = Path("/proc/sys/kernel")
    told = [int((kernel / name).read_text()) for name in ("kptr_restrict", "perf_event_paranoid")]
    return {"kernel-addresses"} if told[0] or told[1] > 1 else set()


def test_there_are_enough_attempts_and_no_two_have_one_name():
    names = [entry.name for entry in suite.listed()]
    assert len(names) == len(set(names)) >= 60
    assert {entry.group for entry in suite.listed()} >= {
        "network",
        "kernel",
        "processes",
        "files",
        "exhaustion",
        "copy",
    }


def test_the_document_lists_every_attempt(request):
    document = (request.config.rootpath / "docs/security.md").read_text(encoding="utf-8")
    assert markdown() in document, "run `python -m sandboxes.escape` and put its output into docs/security.md"


@pytest.mark.docker
@pytest.mark.alone
def test_c14_c15_c19_c23_c128_c129_every_attempt_is_contained_and_the_neighbour_undisturbed():
    began = time.monotonic()
    found = suite.run_suite()
    assert [f for f in found if f.came != "contained"] == []
    assert [f[:3] for f in found] == [tuple(entry) for entry in suite.listed()]
    assert all(f.evidence for f in found)
    assert time.monotonic() - began < 120, "a minute is what it may take on a quiet machine"


@pytest.mark.docker
def test_attempts_that_succeed_are_recognised(monkeypatch):
    """The attacker is root, with the default capabilities, no filter, a writable root and an "internal" network."""
    labels = {OWNER: str(this_process())}
    network = engine().api.create_network("cdb-test-careless", internal=True, labels=labels)["Id"]

    class Careless(DockerSandbox):
        def _create(self):
            wanted = hardening.creation(self.spec, self.name)
            for name in ("cap_drop", "security_opt", "read_only", "sysctls"):
                wanted.host.pop(name, None)
            wanted.host.update(security_opt=["seccomp=unconfined"], network_mode=network)
            wanted.container["user"] = "0:0"
            monkeypatch.setattr(hardening, "_MASKED", ())
            monkeypatch.setattr(docker_sandbox, "USER", "0:0")
            return wanted.create(self._client.api)

        def __exit__(self, *exc):
            monkeypatch.undo()
            super().__exit__(*exc)

    try:
        found = suite.run_suite(lambda spec: Careless(spec) if spec.mounts else DockerSandbox(spec))
    finally:
        engine().api.remove_network(network)
    came = {f.name: f.came for f in found}
    escaped = {name for name, it in came.items() if it == "escaped"}
    assert SHOULD_SUCCEED - escaped - hidden_by_this_kernel() == set()
    assert came["the-quiet-neighbour"] == came["neighbour-by-loopback"] == "contained"


@pytest.mark.docker
def test_an_attacker_that_dies_shows_nothing_and_fails_the_suite(monkeypatch):
    class Dying(DockerSandbox):
        def exec(self, argv, **more):
            return super().exec(["false"] if "inside" in argv else argv, **more)

    found = suite.run_suite(lambda spec: Dying(spec) if spec.mounts else DockerSandbox(spec))
    from_inside = [f for f in found if f.group in ("network", "kernel", "processes", "files")]
    assert {f.came for f in from_inside} == {"unproved"}


@pytest.mark.parametrize(("came", "code"), [("contained", 0), ("escaped", 1), ("unproved", 1)])
def test_the_command_fails_when_an_attempt_does_not(monkeypatch, capsys, came, code):
    from typer.testing import CliRunner

    import cdb

    monkeypatch.setattr(suite, "run_suite", lambda: (Finding("x", "network", "the host", came, "seen"),))
    done = CliRunner().invoke(cdb.app, ["doctor", "--escape-suite", "--json"])
    assert done.exit_code == code
    assert json.loads(done.stdout)[came] == 1
