"""Engines that were found unfit are refused by name; what a machine enforces is found out by reaching the limits."""

from __future__ import annotations

import pytest

from bench.errors import InfraError
from sandboxes import doctor, hardening
from sandboxes.engine import refuse_unfit
from sandboxes.sandbox import SandboxSpec


def test_podman_is_refused_and_docker_is_not():
    with pytest.raises(InfraError, match=r"Podman.*use a Docker engine"):
        refuse_unfit({"ApiVersion": "1.41", "Components": [{"Name": "Podman Engine", "Version": "4.3.1"}]})
    refuse_unfit({"ApiVersion": "1.41", "Components": [{"Name": "Engine"}, {"Name": "containerd"}]})
    refuse_unfit({"ApiVersion": "1.41"})


@pytest.mark.docker
def test_doctor_reaches_every_limit_of_this_machine():
    check = {check.name: check for check in doctor.run_checks()}["limits"]
    assert check.ok, check.detail
    for name in ("memory", "workspace-space", "inodes", "threads", "open-files"):
        assert name in check.detail


@pytest.mark.docker
def test_doctor_tells_a_limit_that_does_not_hold(monkeypatch):
    def without_memory_limit(spec, name):
        made = hardening.creation(spec, name)
        made.host["mem_limit"] = made.host["memswap_limit"] = 20 << 30
        return made

    monkeypatch.setattr("sandboxes.docker_sandbox.creation", without_memory_limit)
    check = doctor._limits()
    assert not check.ok and "NOT: " in check.detail and "shared-memory-map" in check.detail.split("NOT: ")[1]
    assert "take the whole machine" in check.remedy


@pytest.mark.docker
def test_a_runtime_is_asked_for_the_evaluators_containers_only_and_checked(monkeypatch):
    def spec(role):
        return hardening.creation(SandboxSpec(role=role, image="x", run="y"), "name").host.get("runtime")

    assert doctor._runtime().ok
    monkeypatch.setenv(hardening.EVALUATOR_RUNTIME, "no-such-runtime")
    assert [spec(role) for role in ("solver", "canary", "builder", "app", "browser")] == [
        None, None, "no-such-runtime", "no-such-runtime", "no-such-runtime"
    ]  # fmt: skip
    check = doctor._runtime()
    assert not check.ok and "daemon.json" in check.remedy and "no-such-runtime" in check.detail
