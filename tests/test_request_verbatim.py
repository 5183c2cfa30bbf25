"""C13: what the user wrote reaches the agent and the judge's side byte for byte, whatever characters it holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bench.task import open_solver_inputs
from evaluator.cases import read_cases
from evaluator.prepare import prepare
from harness.agents.catalogue import find_agent
from harness.run import SolveSettings, solve
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag

pytestmark = pytest.mark.docker

ENTRIES = [
    "\"; touch /tmp/pwn; $(touch /tmp/pwn) `touch /tmp/pwn` ${IFS} {{k}} {0} %s %(x)s '\n中文 \n",
    "{prompt_file} {workspace} {home} {{7*7}} {% raw %} <%= 1 %> ${{ x }} #{x} \\n \\u0041 \\",
    "\ufeff a mark first, then \r\n, \r, \u2028, \u0085, a bell \a, red \x1b[31m, a NUL \x00, the end \x1a \x04.",
    "EOF\nEOF\n'EOF'\n---\n\t \u00a0 é e\u0301 \u202eright to left\u202c 👩‍👩‍👧 𝕏 \U0010fffd   \n\n",
    "",
    "-rf --help @file !history ~ * ? [a] <>|&; # // /* */ <script>alert(1)</script> &amp; %00 %s",
]
SCRIPT = "cat > stdin.md; cp /home/agent/request.md file.md; ls -A /tmp > tmp.txt"


def test_c13_every_entry_arrives_unchanged_at_the_agent_and_in_the_judges_case(
    tmp_path: Path, make_dataset: Callable[..., Path]
) -> None:
    root = make_dataset({"one": {"index.html": "<p>x</p>"}}, root="data")
    entries = [{"text": text, "turn": n} for n, text in enumerate(ENTRIES)]
    queries = root / "cases/one/user_queries.json"
    queries.write_bytes(b"\xef\xbb\xbf" + json.dumps(entries, ensure_ascii=False).encode())
    agent = tmp_path / "agent.yaml"
    agent.write_text(
        yaml.safe_dump({"kind": "command", "name": "echo", "argv": ["bash", "-c", SCRIPT], "stdin": "prompt"})
    )
    settings = SolveSettings(out=tmp_path / "runs", image=image_tag("solver"), timeout_s=60)
    summary = solve(open_solver_inputs(root), find_agent(str(agent)), settings, DockerSandbox, lambda _line: None)
    assert summary.outcomes == {"one": "ok"}
    said = "\n\n".join(ENTRIES)
    for name in ("stdin.md", "file.md"):
        assert (summary.submissions / "one" / name).read_bytes().startswith(said.encode() + b"\n\n---\n"), name
    assert "pwn" not in (summary.submissions / "one/tmp.txt").read_text()
    assert not Path("/tmp/pwn").exists()
    (root / "cases/one/rubric.json").write_text(json.dumps(ENTRIES[:4], ensure_ascii=False))
    prepare(root, summary.submissions, tmp_path / "out")
    (case,) = read_cases(tmp_path / "out/cases.json").cases
    assert case.request == said
    assert [criterion.criterion for criterion in case.criteria] == ENTRIES[:4]
