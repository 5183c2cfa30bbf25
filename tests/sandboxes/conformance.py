"""What every back end of the `Sandbox` protocol must do; `test_conformance.py` runs it against each we have.

Written against the protocol alone: a back end is a class that takes a `SandboxSpec` (see `BACK_ENDS` in
conftest.py). Nothing here may ask an engine.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import InfraError
from sandboxes.sandbox import MIB, TreePolicy


def test_output_exit_code_and_working_directory_come_back(box, run):
    ended, out, err = run(box, "sh", "-c", "pwd; id -u; echo oops >&2; exit 3")
    assert (ended.exit_code, out, err) == (3, "/workspace\n10001\n", "oops\n")
    assert not (ended.ok or ended.timed_out or ended.broken or ended.oom_killed)


def test_arguments_are_not_read_by_a_shell(box, run):
    hostile = "$(id) `id` ; echo x > /workspace/y \n'\"\\ ${HOME} é 😀"
    _, out, _ = run(box, "printf", "%s", hostile)
    assert out == hostile


def test_environment_of_one_command_is_its_own(box, tmp_path):
    out = tmp_path / "out"
    box.exec(["printenv", "ONLY_HERE"], deadline_s=10, env={"ONLY_HERE": "a b"}, stdout=out)
    assert out.read_text() == "a b\n"
    assert box.exec(["printenv", "ONLY_HERE"], deadline_s=10).exit_code == 1


def test_without_stdin_a_reader_sees_the_end_at_once(box, run):
    ended, out, _ = run(box, "cat", deadline_s=5)
    assert (ended.exit_code, out) == (0, "")


def test_stdin_is_the_whole_file_even_when_the_command_answers_while_it_reads(box, tmp_path):
    sent, back = tmp_path / "in", tmp_path / "out"
    sent.write_bytes(bytes(range(256)) * 8192)
    assert box.exec(["cat"], deadline_s=20, stdin=sent, stdout=back).ok
    assert back.read_bytes() == sent.read_bytes()


def test_a_command_that_never_reads_its_stdin_still_ends(box, tmp_path):
    sent = tmp_path / "in"
    sent.write_bytes(bytes(4 * MIB))
    assert box.exec(["true"], deadline_s=10, stdin=sent).exit_code == 0


def test_a_program_that_is_not_there_is_the_commands_failure_not_ours(box):
    ended = box.exec(["no-such-program"], deadline_s=10)
    assert ended.exit_code in (126, 127)
    assert not ended.broken


def test_the_deadline_ends_the_wait_and_nothing_runs_on(box, run):
    began = time.monotonic()
    loop = "i=0; while :; do i=$((i+1)); echo $i > /workspace/count; sleep 0.05; done"
    ended, _, _ = run(box, "sh", "-c", loop, deadline_s=5.0)
    assert (ended.exit_code, ended.timed_out, ended.broken) == (None, True, False)
    assert time.monotonic() - began < 20
    first = box.read_file("/workspace/count")
    time.sleep(0.3)  # long enough for six more counts, if anything still ran
    assert box.read_file("/workspace/count") == first


def test_what_was_done_before_the_deadline_can_be_copied_out(box, run, tmp_path):
    ended, _, _ = run(box, "sh", "-c", "echo half > /workspace/work; trap '' TERM INT; sleep 60", deadline_s=5.0)
    assert ended.timed_out
    box.get_tree("/workspace", tmp_path / "tree", TreePolicy())
    assert (tmp_path / "tree" / "work").read_text() == "half\n"


def test_a_background_child_that_keeps_the_output_open_does_not_keep_us(box, run):
    began = time.monotonic()
    ended, out, _ = run(box, "sh", "-c", "sleep 60 & echo serving", deadline_s=30)
    assert (ended.exit_code, out) == (0, "serving\n")
    assert time.monotonic() - began < 25


def test_a_background_child_that_floods_the_output_does_not_keep_us_either(box, run):
    ended, _, _ = run(box, "sh", "-c", "yes & sleep 0.2; exit 4", deadline_s=30)
    assert (ended.exit_code, ended.timed_out) == (4, False)


def test_long_output_is_kept_as_head_tail_and_a_count(box, run):
    ended, out, _ = run(box, "sh", "-c", "echo FIRST; head -c 24000000 /dev/zero | tr '\\0' x; echo LAST")
    assert ended.ok
    assert out.startswith("FIRST\nxxx") and out.endswith("xxxLAST\n")
    assert f"{24_000_000 + 11 - 20 * MIB} bytes of output dropped" in out
    assert len(out) < 20 * MIB + 100


def test_a_spawned_process_goes_on_and_its_log_can_be_read(box):
    box.spawn(["sh", "-c", "echo started; exec sleep 60"])
    log, until = b"", time.monotonic() + 30
    while not log and time.monotonic() < until:
        time.sleep(0.05)
        with suppress(FileNotFoundError):  # nothing says how soon the command begins
            log = box.read_file("/tmp/spawn.log")
    assert log == b"started\n"
    assert box.exec(["pgrep", "-x", "sleep", "-n"], deadline_s=10).ok


def test_read_file_gives_the_end_of_a_long_file_and_misses_what_is_not_there(box, run):
    run(box, "sh", "-c", "seq 1 200000 > /workspace/long; ln -s long /workspace/link")
    assert box.read_file("/workspace/long", max_bytes=14) == b"199999\n200000\n"
    for path in ("/workspace/none", "/workspace/link", "/workspace"):
        with pytest.raises(FileNotFoundError):
            box.read_file(path)


def test_memory_beyond_the_limit_is_named_as_such(box, run):
    ended, _, _ = run(box, "python3", "-c", "x = bytearray(1 << 30)")
    assert ended.oom_killed and not ended.broken
    assert box.exec(["true"], deadline_s=10).ok


def test_a_child_killed_for_memory_is_noticed_though_its_parent_ends_well(box, run):
    ended, _, _ = run(box, "sh", "-c", "python3 -c 'x = bytearray(1 << 30)'; exit 0")
    assert (ended.exit_code, ended.oom_killed) == (0, True)


FORK_BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
OPEN_ALL = "import os\nkept = []\nwhile True: kept.append(os.open('/dev/null', os.O_RDONLY))"


def test_a_fork_bomb_stays_inside_is_named_and_the_neighbour_works(make_box, run, tmp_path):
    bomb, neighbour = make_box(), make_box()
    ended = bomb.exec(["python3", "-c", "open('kept', 'w')\n" + FORK_BOMB], deadline_s=5.0)
    assert ended.timed_out
    assert "processes" in {hit.kind for hit in ended.limits}
    assert bomb.get_tree("/workspace", tmp_path / "tree", TreePolicy()).files == 1
    assert run(neighbour, "sh", "-c", "true & true & wait; echo fine")[1] == "fine\n"


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("head -c 40M /dev/zero > big", "disk"),
        ("head -c 40M /dev/zero > big; true", "disk"),
        ("fallocate -l 50G big", "disk"),
        ("head -c 10M /dev/zero > ~/big", "disk"),
        ("i=0; while touch $i 2>/dev/null; do i=$((i+1)); done", "inodes"),
        (f'exec python3 -c "{OPEN_ALL}"', "open files"),
        ("exec python3 -c 'x = bytearray(1 << 30)'", "memory"),
        ("head -c 300M /dev/zero | tail > /dev/null", "memory"),
    ],
)
def test_c23_a_limit_that_was_reached_is_named(make_box, run, small_spec, script, kind):
    few = replace(small_spec.limits, inodes=2000)
    ended, _, _ = run(make_box(limits=few), "sh", "-c", script, deadline_s=60)
    assert [hit.kind for hit in ended.limits] == [kind], ended
    assert not ended.timed_out and ended.wrecked == ""


@pytest.mark.parametrize("script", ["head -c 20M /dev/zero > /tmp/big; true", "kill -9 $$"])
def test_c24_a_command_that_wrecks_its_container_is_told_and_its_workspace_is_all_there(box, run, tmp_path, script):
    began = time.monotonic()
    ended, _, _ = run(box, "bash", "-c", f"echo kept > kept; {script}")
    assert ended.wrecked and not ended.broken
    box.freeze()
    assert box.get_tree("/workspace", tmp_path / "tree", TreePolicy()).files == 1
    assert time.monotonic() - began < 30


def test_an_ordinary_failure_reaches_no_limit(box, run):
    ended, _, _ = run(box, "sh", "-c", "echo wrong >&2; exit 3")
    assert (ended.limits, ended.wrecked) == ((), "")


def test_a_program_that_prints_about_limits_and_succeeds_reached_none(box, run):
    assert run(box, "echo", "No space left on device")[0].limits == ()


def test_a_full_workspace_or_tmp_is_an_error_inside_not_outside(box, run):
    for folder, size in (("/workspace", 40), ("/tmp", 20), ("/home/agent", 10)):
        ended, _, err = run(
            box, "sh", "-c", f"head -c {size}M /dev/zero > {folder}/big; code=$?; rm {folder}/big; exit $code"
        )
        assert ended.exit_code == 1 and "No space left" in err


def test_kill_everything_inside_leaves_the_container_and_its_workspace_alive(box, run):
    script = "echo kept > kept; (sleep 60 &); kill -9 -1; kill -9 1; kill -STOP 1; kill -TERM 1; echo done"
    ended, out, _ = run(box, "bash", "-c", script)
    assert (ended.ok, out) == (True, "done\n")
    _, out, _ = run(box, "sh", "-c", "cat kept; ps -e -o comm= | grep -c sleep")
    assert out == "kept\n0\n"


def test_a_sandbox_whose_only_process_is_killed_from_outside_is_told_as_broken(box):
    box.kill()
    ended = box.exec(["true"], deadline_s=20)
    assert (ended.exit_code, ended.broken, ended.ok) == (None, True, False)


def test_nothing_is_copied_out_of_a_dead_container_as_if_it_were_empty(box, tmp_path: Path):
    box.kill()
    with pytest.raises(InfraError, match="its workspace with it"):
        box.get_tree("/workspace", tmp_path / "tree", TreePolicy())


def test_a_frozen_sandbox_refuses_to_run_more_and_says_so(box, run):
    box.freeze()
    with pytest.raises(InfraError, match="true"):
        run(box, "true")


def test_an_image_that_does_not_exist_is_the_machines_trouble(make_box):
    with pytest.raises(InfraError, match="no-such-image"):
        make_box(image="no-such-image:here")


def test_leaving_the_block_does_not_wait_for_a_process_that_ignores_its_end(back_end, small_spec):
    with back_end(small_spec) as sandbox:
        assert sandbox.exec(["sh", "-c", "trap '' TERM INT HUP; sleep 60 & sleep 0.1"], deadline_s=10).ok
        sandbox.spawn(["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"])
        began = time.monotonic()
    assert time.monotonic() - began < 9  # an engine that waits for it waits ten seconds


def test_a_tree_goes_in_and_comes_back_with_links_and_modes(box, tmp_path):
    start = tmp_path / "start"
    (start / "deep/er").mkdir(parents=True)
    (start / "deep/er/é 中文").write_bytes(b"\x00\xff" * 70_000)
    (start / "run.sh").write_text("#!/bin/sh\n")
    (start / "run.sh").chmod(0o755)
    (start / "link").symlink_to("deep/er")
    box.put_tree(start)
    assert box.exec(["sh", "-c", "test -x run.sh && test -w deep/er && touch deep/er/new"], deadline_s=10).ok
    report = box.get_tree("/workspace", tmp_path / "back", TreePolicy())
    assert (tmp_path / "back/deep/er/é 中文").read_bytes() == b"\x00\xff" * 70_000
    assert (tmp_path / "back/link").readlink() == Path("deep/er")
    assert (tmp_path / "back/run.sh").stat().st_mode & 0o777 == 0o755
    assert (report.files, report.refused) == (4, ())


def test_a_frozen_sandbox_is_copied_as_it_stood(box, tmp_path):
    """The workspace of a frozen container must be all there: an engine that sees nothing of it is no back end."""
    ended = box.exec(["sh", "-c", "echo one > one; while :; do date +%N > tick; done"], deadline_s=4.0)
    assert ended.timed_out
    for copy in ("first", "second"):
        assert box.get_tree("/workspace", tmp_path / copy, TreePolicy()).files == 2
    assert (tmp_path / "first/tick").read_bytes() == (tmp_path / "second/tick").read_bytes()


def test_nothing_of_one_sandbox_is_in_the_next(make_box, run):
    traces = "/workspace/mark /home/agent/mark /tmp/mark /dev/shm/mark"
    first = make_box()
    assert run(first, "sh", "-c", f"touch {traces} && ls {traces} | wc -l")[1].strip() == "4"
    for second in (make_box(), make_box(attempt=2)):
        assert run(second, "sh", "-c", f"ls {traces} 2>/dev/null | wc -l")[1].strip() == "0"
