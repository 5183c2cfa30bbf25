"""What a trial costs beyond its container: trivial trials against the same steps as bare calls to the engine."""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import docker

from bench.task import Task, open_dataset
from harness.agents.catalogue import find_agent
from harness.trial import TrialSettings, run_trial
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.engine import connect
from sandboxes.hardening import UID, USER, creation
from sandboxes.images import image_tag
from sandboxes.sandbox import HOME, MIB, WORKSPACE, Limits, SandboxSpec

TRIALS = 8
ROUNDS = 3
CONCURRENCY = (1, 2, 4, 8)
MANY = 64
_LIMITS = Limits(
    memory_bytes=64 * MIB, cpus=1.0, pids=32, workspace_bytes=4 * MIB, home_bytes=4 * MIB, tmp_bytes=4 * MIB
)
_PAGE = b"<h1>Hello</h1>\n"
_numbers = count()


def measure() -> dict[str, float | dict[str, float]]:
    """`ratio` by concurrency: median wall time of 8 trivial trials over that of the same steps as bare calls, rounds
    alternating. `cpu_s_per_trial`: processor seconds of this process for one trial. `rss_mb_64`: peak memory of a
    process that holds 64 trials at once. `teardown_s`: leaving a container whose processes ignore SIGTERM."""
    with _task() as (task, folder):
        client = connect()
        own = _own(task, folder)
        floor = _floor(client, task)
        for once in (own, floor):
            once()
        walls = {n: _alternate(own, floor, n) for n in CONCURRENCY}
        cpu_s = _cpu_s(lambda: _run(own, 2))
    figures: dict[str, float | dict[str, float]] = {
        "ratio": {str(n): round(statistics.median(a / b for a, b in walls[n]), 3) for n in CONCURRENCY},
        "wall_s": {str(n): round(statistics.median(a for a, _ in walls[n]), 3) for n in CONCURRENCY},
        "floor_s": {str(n): round(statistics.median(b for _, b in walls[n]), 3) for n in CONCURRENCY},
        "cpu_s_per_trial": round(cpu_s / TRIALS, 4),
        "rss_mb_64": _many_at_once(),
        "teardown_s": round(_teardown_s(), 3),
    }
    return figures


@contextmanager
def _task() -> Iterator[tuple[Task, Path]]:
    with tempfile.TemporaryDirectory(prefix="cdb-measure-") as scratch:
        case = Path(scratch) / "data/cases/one"
        (case / "project").mkdir(parents=True)
        (case / "project/index.html").write_bytes(_PAGE)
        (case / "user_queries.json").write_text(json.dumps([{"text": "Nothing."}]), encoding="utf-8")
        yield open_dataset(Path(scratch) / "data").tasks[0], Path(scratch)


def _own(task: Task, folder: Path, opener: type[DockerSandbox] = DockerSandbox) -> Callable[[], None]:
    """One trivial trial, sealed and all, as `cdb solve` runs it. Raises RuntimeError when it did not end well."""
    agent, image = find_agent("noop"), image_tag("base")

    def once() -> None:
        number = next(_numbers)
        settings = TrialSettings("measure", image, folder / f"submissions-{number}", limits=_LIMITS)
        result = run_trial(task, agent, settings, folder / f"trial-{number}", opener)
        if result.outcome != "ok":
            raise RuntimeError(f"a trivial trial ended with {result.outcome}: {result.reason}")

    return once


def _floor(client: docker.DockerClient, task: Task) -> Callable[[], None]:
    """The same steps as bare calls: create, start, two trees in, one command, pause, tree out, remove."""
    home, workspace = _tar("request.md", task.request.encode()), _tar("index.html", _PAGE)
    argv = list(find_agent("noop").launch(task).argv)
    spec = SandboxSpec("solver", image_tag("base"), "measure", limits=_LIMITS)
    api = client.api

    def once() -> None:
        number = next(_numbers)
        container = creation(spec, f"cdb-measure-{os.getpid()}-{number}").create(api)
        try:
            api.start(container)
            api.put_archive(container, HOME, home)
            api.put_archive(container, WORKSPACE, workspace)
            made = api.exec_create(container, argv, user=USER, workdir=WORKSPACE)["Id"]
            api.exec_start(made)
            if api.exec_inspect(made)["ExitCode"] != 0:
                raise RuntimeError("the floor's command failed")
            api.pause(container)
            chunks, _ = api.get_archive(container, WORKSPACE)
            for _chunk in chunks:
                pass
        finally:
            api.remove_container(container, force=True, v=True)

    return once


def _tar(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        header = tarfile.TarInfo(name)
        header.size, header.uid, header.gid = len(content), UID, UID
        tar.addfile(header, io.BytesIO(content))
    return packed.getvalue()


def _alternate(own: Callable[[], None], floor: Callable[[], None], concurrency: int) -> list[tuple[float, float]]:
    """Wall seconds of both in each round; who goes first changes."""
    walls = []
    for number in range(ROUNDS):
        if number % 2:
            below = _run(floor, concurrency)
            walls.append((_run(own, concurrency), below))
        else:
            above = _run(own, concurrency)
            walls.append((above, _run(floor, concurrency)))
    return walls


def _run(once: Callable[[], None], concurrency: int) -> float:
    began = time.monotonic()
    with ThreadPoolExecutor(concurrency) as pool:
        for future in [pool.submit(once) for _ in range(TRIALS)]:
            future.result()
    return time.monotonic() - began


def _cpu_s(work: Callable[[], object]) -> float:
    before = os.times()
    work()
    after = os.times()
    return after.user - before.user + after.system - before.system


def _many_at_once() -> float:
    """Peak resident memory (MB, as the kernel counts it) of a process of its own with MANY trials at once."""
    argv = [sys.executable, "-m", "scripts.measurements.sandbox", str(MANY)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        raise RuntimeError(f"{MANY} trials at once did not end well: {done.stderr[-800:]}")
    told = json.loads(done.stdout)
    if told["at_once"] != MANY:
        raise RuntimeError(f"only {told['at_once']} of {MANY} containers ran at once")
    return float(told["rss_mb"])


def _teardown_s() -> float:
    with DockerSandbox(SandboxSpec("solver", image_tag("base"), "measure", limits=_LIMITS)) as box:
        box.spawn(["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"])
        began = time.monotonic()
    return time.monotonic() - began


def main(many: int) -> None:
    """Runs `many` trials whose containers all stand before the first goes on; prints peak memory."""
    meeting = threading.Barrier(many, timeout=200)

    class Meeting(DockerSandbox):
        def __enter__(self) -> DockerSandbox:
            started = super().__enter__()
            meeting.wait()
            return started

    with _task() as (task, folder):
        once = _own(task, folder, Meeting)
        with ThreadPoolExecutor(many) as pool:
            for future in [pool.submit(once) for _ in range(many)]:
                future.result()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak_kb = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    print(json.dumps({"rss_mb": round(peak_kb / 1024, 1), "at_once": many}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
