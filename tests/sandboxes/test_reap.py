"""Reaping touches the things of dead owners of this machine and nothing else."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest
from docker.errors import NotFound

from sandboxes import reap
from sandboxes.engine import engine
from sandboxes.images import image_tag
from sandboxes.owner import OWNER, Owner, host, parse_owner, start_time, this_process

pytestmark = pytest.mark.alone  # what a dead run left is looked at, and any other run removes it


def test_an_owner_reads_back_as_it_was_written():
    me = this_process()
    assert parse_owner(str(me)) == me and not me.is_dead


@pytest.mark.parametrize("text", ["", "host", "host:1", "host:x:1", ":1:2", "host:1:-2"])
def test_an_unreadable_owner_is_nobody(text):
    assert parse_owner(text) is None


def test_a_pid_used_again_by_another_process_means_the_owner_is_dead():
    me = this_process()
    assert Owner(me.host, me.pid, me.started + 1).is_dead
    assert not Owner("elsewhere-0-0", 999_999_999, 1).is_dead


def test_a_process_that_ended_but_was_not_waited_for_is_dead():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(child.pid) is None
    child.wait()


@pytest.fixture
def orphan():
    """A process that made things and died without tidying up: here only its name is left."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = Owner(host(), child.pid, start_time(child.pid) or 0)
    child.kill()
    child.communicate()
    return owner


@pytest.mark.docker
def test_only_what_dead_owners_of_this_machine_left_is_removed(orphan):
    api = engine().api
    owners = {
        "dead": str(orphan),
        "alive": str(this_process()),
        "elsewhere": f"another-host-1-1:{orphan.pid}:{orphan.started}",
        "unreadable": "whoever",
        "unlabelled": None,
    }
    made = {}
    try:
        for name, owner in owners.items():
            labels = {OWNER: owner, "cdb.run": "test-reap"} if owner else {"test": "reap"}
            container = api.create_container(image_tag("base"), name=f"reap-test-{name}", labels=labels)["Id"]
            volume = api.create_volume(f"reap-test-{name}", labels=labels)["Name"]
            network = api.create_network(f"reap-test-{name}", labels=labels, internal=True)["Id"]
            made[name] = (container, volume, network)
        listed = {item.id for item in reap.leftovers()}
        assert set(made["dead"]) | set(made["alive"]) | set(made["elsewhere"]) <= listed
        assert not listed & {*made["unreadable"], *made["unlabelled"]}
        removed = reap.reap()
        assert {item.id for item in removed if item.run == "test-reap"} == set(made["dead"])
        left = {item["Id"] for item in api.containers(all=True)} | {item["Id"] for item in api.networks()}
        left |= {item["Name"] for item in api.volumes()["Volumes"]}
        for name in ("alive", "elsewhere", "unreadable", "unlabelled"):
            assert set(made[name]) <= left
        assert not set(made["dead"]) & left
        assert not [item for item in reap.reap() if item.run == "test-reap"]
    finally:
        for container, volume, network in made.values():
            for remove, identity in (
                (api.remove_container, container),
                (api.remove_volume, volume),
                (api.remove_network, network),
            ):
                with contextlib.suppress(NotFound):
                    remove(identity)


@pytest.mark.docker
def test_a_killed_runners_container_is_gone_after_the_next_reaping():
    program = (
        "import time; from sandboxes.docker_sandbox import DockerSandbox; from sandboxes.sandbox import SandboxSpec\n"
        "from sandboxes.images import image_tag\n"
        "with DockerSandbox(SandboxSpec('solver', image_tag('base'), 'test-killed')) as box: print(box.id, flush=True); time.sleep(60)"
    )
    runner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    identity = runner.stdout.readline().strip()
    assert not [item for item in reap.reap() if item.id == identity]
    runner.kill()
    runner.communicate()
    removed = {(item.kind, item.id) for item in reap.reap()}
    assert ("container", identity) in removed
    assert not [item for item in reap.leftovers() if item.run == "test-killed"]


@pytest.mark.docker
def test_leaving_the_block_leaves_no_container_and_no_volume():
    from sandboxes.docker_sandbox import DockerSandbox
    from sandboxes.sandbox import SandboxSpec

    with DockerSandbox(SandboxSpec(role="solver", image=image_tag("base"), run="test-leaving")) as box:
        assert {found.kind for found in reap.leftovers() if found.run == "test-leaving"} == {"container", "volume"}
        assert box.exec(["true"], deadline_s=10).ok
    assert [found for found in reap.leftovers() if found.run == "test-leaving"] == []


@pytest.mark.docker
def test_a_kept_container_survives_reaping_and_goes_when_it_is_asked_for(run_cdb):
    program = (
        "from sandboxes.docker_sandbox import DockerSandbox; from sandboxes.sandbox import SandboxSpec\n"
        "from sandboxes.images import image_tag\n"
        "with DockerSandbox(SandboxSpec('solver', image_tag('base'), 'test-kept', case='one')) as box:\n"
        "    box.exec(['sh', '-c', 'echo evidence > evidence'], deadline_s=10); box.keep(); print(box.id)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    identity = done.stdout.strip()
    assert "docker unpause cdb-kept-one-" in done.stderr
    try:
        assert identity not in {found.id for found in reap.reap()}
        (kept,) = [found for found in reap.leftovers() if found.is_kept and found.run == "test-kept"]
        assert kept.owner.is_dead
        stream, _ = engine().api.get_archive(identity, "/workspace/evidence")
        assert b"evidence" in b"".join(stream)
    finally:
        told = run_cdb(["clean", "--kept"])
    assert f"removed container {kept.name}" in told.stdout
    assert [found for found in reap.leftovers() if found.run == "test-kept"] == []
