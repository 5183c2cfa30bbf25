"""The journal survives what a killed run leaves behind and notices what was edited."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench.errors import DataError, InfraError, UsageError
from bench.journal import GENESIS, Journal, read_journal


def written(path: Path, count: int) -> bytes:
    with Journal(path) as journal:
        for number in range(count):
            journal.append({"type": "note", "text": f"Grüße 中文 {number}"})
    return path.read_bytes()


def test_each_line_names_the_hash_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = [json.loads(line) for line in written(path, 3).splitlines()]
    assert [line["seq"] for line in lines] == [1, 2, 3]
    assert lines[0]["prev"] == GENESIS
    assert len({line["prev"] for line in lines}) == 3


def test_c117_a_journal_cut_at_every_byte_of_its_last_record_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    content = written(path, 3)
    last_line = content.rstrip(b"\n").rpartition(b"\n")[2]
    first_bytes = len(content) - len(last_line) - 1
    for cut in range(first_bytes, len(content)):
        path.write_bytes(content[:cut])
        assert len(read_journal(path).records) == 2, f"cut after byte {cut}"
        with Journal(path) as journal:
            journal.append({"type": "note", "text": "redone"})
        assert [r["seq"] for r in read_journal(path).records] == [1, 2, 3]


def test_an_unterminated_line_is_never_accepted_although_it_parses(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(written(path, 2).rstrip(b"\n"))
    assert len(read_journal(path).records) == 1


@pytest.mark.parametrize("edit", ["change", "remove", "swap"])
def test_an_edited_journal_is_refused_with_the_line(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "journal.jsonl"
    lines = written(path, 4).splitlines(keepends=True)
    if edit == "change":
        lines[1] = lines[1].replace(b" 1", b" 9")
    elif edit == "remove":
        del lines[1]
    else:
        lines[1], lines[2] = lines[2], lines[1]
    path.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match=r"line [23]: .*"):
        read_journal(path)


def test_c121_a_second_writer_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(UsageError, match=r"pid \d+ on "), Journal(path):
        pass


def test_c121_the_lock_of_a_killed_writer_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    program = (
        "import os, signal, sys; from pathlib import Path; from bench.journal import Journal\n"
        "with Journal(Path(sys.argv[1])) as j:\n    j.append({'type': 'note'}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert ended.returncode == -9
    with Journal(path) as journal:
        journal.append({"type": "note"})
    assert len(read_journal(path).records) == 2


def test_many_threads_append_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        threads = [
            threading.Thread(target=lambda: [journal.append({"type": "note", "text": "x" * 5000}) for _ in range(20)])
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(read_journal(path).records) == 100


def test_a_full_disk_leaves_a_whole_journal_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append({"type": "note"})

        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(InfraError, match="free some disk"):
                journal.append({"type": "note", "text": "lost"})
        journal.append({"type": "note", "text": "kept"})
    assert [r.get("text") for r in read_journal(path).records] == [None, "kept"]
