"""A file that somebody wrote by hand is either read or refused by its name, wherever it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import CdbError, UsageError
from bench.yaml_file import read_yaml
from evaluator.judges.model.settings import read_settings
from evaluator.overrides import read_overrides
from harness.agents.catalogue import find_agent
from runner.config import read_config
from sandboxes.gateway.policy import load_config

BAD = {
    "latin-1": ("name: Müller".encode("latin-1"), "UTF-8"),
    "twice": (b"a: 1\na: 2\n", "given twice"),
    "open": (b"a: [1, 2\n", "not YAML"),
    "date": (b"a: 2026-13-45\n", "not YAML"),
    "list as key": (b"? [1, 2]\n: 3\n", "not YAML"),
    "deep": (b"[" * 5000 + b"]" * 5000, "YAML"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_with_the_files_name(tmp_path: Path, name: str) -> None:
    content, said = BAD[name]
    (path := tmp_path / "given.yaml").write_bytes(content)
    with pytest.raises(UsageError, match=said) as refused:
        read_yaml(path)
    assert str(path) in str(refused.value)


def test_a_mark_of_byte_order_a_merge_and_an_empty_file_are_fine(tmp_path: Path) -> None:
    (path := tmp_path / "given.yaml").write_bytes(b"\xef\xbb\xbfa: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n")
    assert read_yaml(path) == {"a": {"b": 1}, "c": {"b": 1, "d": 2}}
    path.write_bytes(b"")
    assert read_yaml(path) is None


@pytest.mark.parametrize("read", [read_settings, read_overrides, find_agent, read_config, load_config])
@pytest.mark.parametrize("name", BAD)
def test_every_reader_refuses_it(tmp_path: Path, read: object, name: str) -> None:
    (path := tmp_path / "given.yaml").write_bytes(BAD[name][0])
    given = str(path) if read in (read_settings, find_agent) else path
    with pytest.raises(CdbError) as refused:
        read(given)  # type: ignore[operator]
    assert str(path) in str(refused.value)
