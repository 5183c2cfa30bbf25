"""What the engine says about our containers, and what processes inside them can and cannot do."""

from __future__ import annotations

import json

import pytest

from sandboxes.engine import engine
from sandboxes.hardening import seccomp_profile
from sandboxes.owner import parse_owner, this_process
from sandboxes.sandbox import Mount

FORBIDDEN = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
calls = {
    "ptrace": (101 if x86 else 117, 16, 1, 0, 0),
    "process_vm_readv": (310 if x86 else 270, 1, 0, 0, 0, 0, 0),
    "process_vm_writev": (311 if x86 else 271, 1, 0, 0, 0, 0, 0),
    "io_uring_setup": (425, 1, 0),
    "mount": (165 if x86 else 40, 0, 0, 0, 0, 0),
    "unshare_user": (272 if x86 else 97, 0x10000000),
    "setns": (308 if x86 else 268, 0, 0),
    "keyctl": (250 if x86 else 219, 0, 0),
    "bpf": (321 if x86 else 280, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "pivot_root": (155 if x86 else 41, 0, 0),
    "userfaultfd": (323 if x86 else 282, 0),
    "chroot": (161 if x86 else 51, b"/tmp"),
    "socket_packet": (41 if x86 else 198, 17, 3, 0),
    "socket_vsock": (41 if x86 else 198, 40, 1, 0),
    "socket_alg": (41 if x86 else 198, 38, 5, 0),
    "clone_newuser": (56 if x86 else 220, 0x10000011, 0, 0, 0, 0),
}
answers = {}
for name, (number, *arguments) in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    if result == 0 and name.startswith("clone"):
        os._exit(0)  # the child
    answers[name] = errno.errorcode.get(ctypes.get_errno(), "none") if result == -1 else "allowed"
print(json.dumps(answers))
"""


def _rules(role):
    profile = json.loads(seccomp_profile(role))
    names = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    return profile, names


BUILD_NEEDS_NOT = {
    "fanotify_mark", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit", "mlock",
    "mlock2", "mlockall", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
    "msgctl", "msgget", "msgrcv", "msgsnd", "name_to_handle_at", "personality", "semctl", "semget", "semop",
    "semtimedop", "shmat", "shmctl", "shmdt", "shmget", "vmsplice",
}  # fmt: skip
FORBIDDEN_TO_BUILDS = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
calls = {
    "io_setup": (206 if x86 else 0, 1, 0), "shmget": (29 if x86 else 194, 1, 4096, 0o1666),
    "msgget": (68 if x86 else 186, 1, 0o1666), "semget": (64 if x86 else 190, 1, 1, 0o1666),
    "mq_open": (240 if x86 else 180, b"x", 0o102, 0o666, 0), "mlockall": (151 if x86 else 230, 1),
    "personality": (135 if x86 else 92, 0), "vmsplice": (278 if x86 else 75, 0, 0, 0, 0),
}
answers = {}
for name, (number, *arguments) in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    answers[name] = errno.errorcode.get(ctypes.get_errno(), "none") if result == -1 else "allowed"
print(json.dumps(answers))
"""


def test_each_profile_differs_from_the_solvers_by_what_its_role_needs_or_does_not():
    profile, solver = _rules("solver")
    _, browser = _rules("browser")
    _, builder = _rules("builder")
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert (browser - solver, solver - browser) == ({"chroot", "unshare"}, set())
    assert (builder - solver, solver - builder) == (set(), BUILD_NEEDS_NOT)
    assert any(rule["names"] == ["clone"] and "args" in rule for rule in profile["syscalls"])
    for name in ("ptrace", "process_vm_readv", "process_vm_writev", "io_uring_setup", "io_uring_enter", "setns"):
        assert name not in solver | browser | builder
    assert {"unshare", "mount", "chroot", "keyctl", "pivot_root"}.isdisjoint(solver | builder)
    assert seccomp_profile("app") == seccomp_profile("builder") and seccomp_profile("canary") == seccomp_profile(
        "solver"
    )


@pytest.mark.docker
def test_forbidden_system_calls_are_answered_with_eperm(make_box, run):
    for role in ("solver", "builder", "app"):
        _, out, err = run(make_box(role=role), "python3", "-c", FORBIDDEN)
        answers = json.loads(out or err)
        assert set(answers.values()) == {"EPERM"}, (role, answers)


@pytest.mark.docker
def test_a_browser_may_make_its_own_sandbox_and_nothing_else(make_box, run):
    _, out, err = run(make_box(role="browser"), "python3", "-c", FORBIDDEN)
    answers = json.loads(out or err)
    assert {name for name, answer in answers.items() if answer != "EPERM"} <= {
        "unshare_user",
        "clone_newuser",
        "chroot",
    }
    assert answers["unshare_user"] != "EPERM"


@pytest.mark.docker
def test_a_builder_gets_none_of_the_calls_no_build_needs_though_a_solver_does(make_box, run):
    _, out, _ = run(make_box(role="builder"), "python3", "-c", FORBIDDEN_TO_BUILDS)
    assert set(json.loads(out).values()) == {"EPERM"}, out
    _, out, _ = run(make_box(), "python3", "-c", FORBIDDEN_TO_BUILDS)
    assert json.loads(out)["shmget"] == json.loads(out)["personality"] == "allowed"


@pytest.mark.docker
def test_the_tools_of_a_solver_work_under_the_profile(make_box, run):
    from sandboxes.images import image_tag
    from sandboxes.sandbox import Limits

    solver = make_box(image=image_tag("solver"), limits=Limits())
    work = """set -e
        git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
        node -e 'new (require("worker_threads").Worker)("process.exitCode=0", {eval: true})'
        npm init -y >/dev/null
        python3 -c 'import threading, multiprocessing as m; p = m.Process(target=print); p.start(); p.join()'
        chromium --headless --no-sandbox --disable-gpu --screenshot=shot.png 'data:text/html,<h1>hi</h1>' 2>/dev/null
        pdftotext -v 2>/dev/null; ffmpeg -v error -i shot.png -f null -; convert shot.png shot.jpg; rg --version >/dev/null
    """
    ended, _, err = run(solver, "bash", "-c", work, deadline_s=200)
    assert ended.exit_code == 0, err
    assert solver.read_file("/workspace/shot.jpg").startswith(b"\xff\xd8")


@pytest.mark.docker
@pytest.mark.parametrize("role", ["solver", "builder", "app", "browser", "canary"])
def test_c128_the_engine_confirms_every_limit_and_label_of_every_role(make_box, tmp_path, role):
    shown = tmp_path / "shown"
    shown.mkdir()
    other = make_box(role="app").id if role == "browser" else None
    box = make_box(role=role, attempt=3, mounts=[Mount(shown, "/shown")], network_of=other)
    told = engine().api.inspect_container(box.id)
    host, config = told["HostConfig"], told["Config"]
    assert config["User"] == "10002:10002"
    assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert f"seccomp={seccomp_profile(role)}" in host["SecurityOpt"]
    assert host["NetworkMode"] == (f"container:{other}" if other else "none")
    assert host["ReadonlyRootfs"] and host["IpcMode"] == "private"
    assert "/proc/kallsyms" in host["MaskedPaths"] and "/proc/kcore" in host["MaskedPaths"]
    assert host["PidMode"] == "" and not host["Devices"] and not host["Binds"]
    assert host["Memory"] == host["MemorySwap"] == 256 * 2**20
    assert host["PidsLimit"] == 64 and host["NanoCpus"] == 10**9
    assert host["LogConfig"]["Config"] == {"max-size": "1m", "max-file": "2"}
    assert host["RestartPolicy"]["Name"] in ("no", "")
    mounts = {mount["Destination"]: mount for mount in told["Mounts"]}
    assert set(mounts) == {"/workspace", "/home/agent", "/tmp", "/shown"}
    assert not mounts["/shown"]["RW"] and not any("docker.sock" in str(mount) for mount in mounts.values())
    labels = config["Labels"]
    assert (labels["cdb.run"], labels["cdb.case"], labels["cdb.attempt"]) == ("test-sandboxes", "case-1", "3")
    assert labels["cdb.role"] == role and parse_owner(labels["cdb.owner"]) == this_process()
    volume = engine().api.inspect_volume(mounts["/workspace"]["Name"])
    assert volume["Labels"]["cdb.owner"] == labels["cdb.owner"]
    assert volume["Options"]["type"] == "tmpfs"


@pytest.mark.docker
def test_c129_what_is_mounted_is_the_same_on_the_host_whatever_the_agent_does(make_box, run, tmp_path):
    shown = tmp_path / "credentials"
    shown.mkdir()
    (shown / "auth.json").write_text("login")
    (shown / "auth.json").chmod(0o666)
    shown.chmod(0o777)
    box = make_box(mounts=[Mount(shown, "/credentials")])
    attack = "cd /credentials; echo x > auth.json; rm -f auth.json; mv auth.json b; chmod 0 auth.json; touch new; ln -sf / l"
    run(box, "sh", "-c", attack)
    assert [it.name for it in shown.iterdir()] == ["auth.json"]
    assert (shown / "auth.json").read_text() == "login" and (shown / "auth.json").stat().st_mode & 0o777 == 0o666


@pytest.mark.docker
def test_processes_have_no_capability_no_new_privileges_and_no_writable_system(box, run):
    script = """
        grep -E '^(CapEff|CapPrm|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '[:space:]' ' '; echo
        for p in / /usr /etc /proc/sys/kernel/core_pattern /sys/fs/cgroup /dev/mem; do test -w $p && echo "writable $p"; done
        ls /var/run/docker.sock 2>/dev/null; ls /dev | grep -E '^(sd|vd|nvme|kmsg|mem|fuse|kvm)' ; ls /proc/self/ns >/dev/null
        cat /proc/1/comm; ulimit -c; true
    """
    _, out, _ = run(box, "sh", "-c", script)
    assert out.splitlines()[0].split() == [
        "CapPrm:", "0000000000000000", "CapEff:", "0000000000000000", "NoNewPrivs:", "1", "Seccomp:", "2"
    ]  # fmt: skip
    assert out.splitlines()[1:] == ["bash", "0"]


@pytest.mark.docker
def test_two_containers_share_a_network_only_when_asked_to(make_box, run):
    app, stranger = make_box(role="app"), make_box()
    friend = make_box(role="browser", network_of=app.id)
    app.spawn(["python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"])
    fetch = ["curl", "-s", "-o", "/dev/null", "--retry", "20", "--retry-connrefused", "--retry-delay", "0"]
    assert run(friend, *fetch, "http://127.0.0.1:8000/")[0].exit_code == 0
    assert run(stranger, "curl", "-s", "http://127.0.0.1:8000/")[0].exit_code == 7
