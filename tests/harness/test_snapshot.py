"""What an agent leaves is kept as it is, or listed; with scripted agents in real containers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_patch import set_traps

from bench.submission import check_seal, read_manifest
from bench.task import open_dataset
from harness.agents.catalogue import find_agent
from harness.run import SolveSettings, solve
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag

pytestmark = pytest.mark.docker
APP = {"index.html": "<h1>Hi</h1>\n", "assets/song.mp3": "sound", ".gitignore": "assets/*.mp3\n*.log\nsecret/\n"}
GIT = "git init -q . && git config user.email a@b && git config user.name a && git add -f . && git commit -qm start; "
EDIT = "echo changed > index.html; echo new > assets/new.mp3; mkdir secret; echo s > secret/s.log; "


@pytest.fixture
def submissions_of(tmp_path: Path, make_dataset: Callable[..., Path]) -> Callable[..., tuple[Path, dict[str, Any]]]:
    """Runs each script, by its name, as an agent on a task of its own; gives the submissions and their manifests.

    `before` may change the starting application of each task.
    """

    def run(
        scripts: dict[str, str],
        before: Callable[[Path], None] = lambda _project: None,
        app: dict[str, str] = APP,
    ) -> tuple[Path, dict[str, Any]]:
        root = make_dataset(dict.fromkeys(scripts, app))
        for case in scripts:
            before(root / "cases" / case / "project")
        agent = tmp_path / "scripted.yaml"
        body = "case $(sed -n '/^CASE /s///p' ~/request.md) in\n" + "".join(
            f"{case}) {{\n{text}\n}} ;;\n" for case, text in scripts.items()
        )
        agent.write_text(yaml.safe_dump({"kind": "command", "name": "a", "argv": ["bash", "-c", f"{body}\nesac"]}))
        for case in scripts:
            (root / "cases" / case / "user_queries.json").write_text(json.dumps([{"text": f"x\nCASE {case}\n"}]))
        settings = SolveSettings(out=tmp_path / "runs", image=image_tag("solver"), timeout_s=120)
        summary = solve(open_dataset(root), find_agent(str(agent)), settings, DockerSandbox, lambda _line: None)
        assert set(summary.outcomes.values()) == {"ok"}, summary.outcomes
        manifests = {case: read_manifest(summary.submissions, case) for case in scripts}
        for manifest in manifests.values():
            assert manifest
            check_seal(summary.submissions, manifest)
        return summary.submissions, manifests

    return run


def test_c53_however_work_is_left_the_submission_is_the_same(submissions_of: Callable[..., Any]) -> None:
    """What lies in the workspace counts, whatever git thinks of it: also what it ignores or keeps elsewhere."""
    ways = {
        "untracked": EDIT,
        "unstaged": GIT + EDIT,
        "staged": GIT + EDIT + "git add -f .",
        "committed": GIT + EDIT + "git add -f . && git commit -qm work",
        "branch": GIT + EDIT + "git checkout -qb other && git add -f . && git commit -qm work",
        "detached": GIT + EDIT + "git checkout -q --detach && git add -f . && git commit -qm work",
        "nogit": GIT + EDIT + "rm -rf .git",
        "broken": GIT + EDIT + "echo nonsense > .git/HEAD; rm -rf .git/objects",
        "unchangedbits": GIT + "git update-index --assume-unchanged index.html; " + EDIT,
        "sparse": GIT + EDIT + "git config core.sparseCheckout true; echo '!*' > .git/info/sparse-checkout",
        "stashed": GIT + EDIT + "git stash -q -u; git stash pop -q; " + EDIT.replace("mkdir secret; ", "mkdir -p secret; "),
        "gitfile": GIT + EDIT + "mv .git /tmp/store; echo 'gitdir: /tmp/store' > .git",
        "elsewhere": GIT + EDIT + "git worktree add -q /tmp/tree; echo other > /tmp/tree/index.html",
    }  # fmt: skip
    _, manifests = submissions_of(ways)
    assert {manifest.digest for manifest in manifests.values()} == {manifests["untracked"].digest}
    assert manifests["untracked"].changes == ["added: assets/new.mp3", "changed: index.html", "added: secret/s.log"]


def test_c53_what_git_took_out_of_the_workspace_is_not_in_it(submissions_of: Callable[..., Any]) -> None:
    """Stashed or committed and then checked out again: the application is what lies there at the end."""
    sub_module = (
        "git init -q lib && cd lib && git config user.email a@b && git config user.name a && echo l > l.js "
        "&& git add . && git commit -qm l && cd .. && git -c protocol.file.allow=always submodule add -q ./lib lib"
    )
    _, manifests = submissions_of({
        "stashed": GIT + "echo changed > index.html; git stash -q",
        "back": GIT + "git checkout -qb other; echo changed > index.html; git commit -qam work; git checkout -q -",
        "inside": GIT + "git worktree add -q wt",
        "submodule": GIT + sub_module,
    })  # fmt: skip
    assert manifests["stashed"].changed_files == manifests["back"].changed_files == 0
    assert "added: wt/index.html" in manifests["inside"].changes
    assert not any(".git" in change.split("/") for change in manifests["inside"].changes)
    assert "added: lib/l.js" in manifests["submodule"].changes
    assert {"lib/.git", ".git"} <= {node.path for node in manifests["submodule"].left_out}


def test_c55_binary_files_come_out_byte_for_byte(submissions_of: Callable[..., Any]) -> None:
    script = """python3 - <<'END'
import pathlib, random
for n, name in enumerate(["a.png", "b.mp3", "c.pdf", "d.wasm", "e.bin", "crlf.txt", "utf16.txt", "empty.png"]):
    data = random.Random(n).randbytes(70_000 * n)
    data = {"crlf.txt": b"a\\r\\nb\\r\\n\\x1a", "utf16.txt": "hé\\n".encode("utf-16"), "empty.png": b""}.get(name, data)
    pathlib.Path(name).write_bytes(data)
END
sha256sum *.png *.mp3 *.pdf *.wasm *.bin *.txt > sums; echo '* text=auto eol=crlf' > .gitattributes; cp a.png assets/song.mp3"""
    submissions, manifests = submissions_of({"one": script})
    checked = subprocess.run(["sha256sum", "--quiet", "-c", "sums"], cwd=submissions / "one", check=False)
    assert checked.returncode == 0
    assert "changed: assets/song.mp3" in manifests["one"].changes
    named = (submissions.parent / "trials/one/1/changes-not-shown.txt").read_text()
    assert "added: d.wasm (210000 bytes)" in named


@pytest.mark.slow
def test_c54_twenty_thousand_installed_files_are_left_out_recorded_and_quick(
    submissions_of: Callable[..., Any],
) -> None:
    script = """python3 - <<'END'
import os
for package in range(400):
    for n in range(50):
        folder = f"node_modules/p{package}/lib{n % 5}"
        os.makedirs(folder, exist_ok=True)
        open(f"{folder}/f{n}.js", "w").write("x" * 1000)
END
echo '{"name": "x"}' > package.json; echo '{}' > package-lock.json; mkdir -p sub/node_modules/.bin dist node_modules/.cache
echo y > sub/yarn.lock; echo z > sub/node_modules/q.js; echo built > dist/app.js; date +%s%N > ended"""
    submissions, manifests = submissions_of({"one": script})
    manifest = manifests["one"]
    assert [(node.path, node.files, node.bytes) for node in manifest.left_out] == [
        ("node_modules", 20_000, 20_000_000), ("sub/node_modules", 1, 2)
    ]  # fmt: skip
    assert manifest.changes == [
        "added: dist/app.js", "added: ended", "added: package-lock.json", "added: package.json", "added: sub/yarn.lock"
    ]  # fmt: skip
    agents_end_s = int((submissions / "one/ended").read_text()) / 1e9
    assert (submissions / "one.manifest.json").stat().st_mtime - agents_end_s < 30


def test_what_the_agents_files_refer_to_is_never_left_out(submissions_of: Callable[..., Any]) -> None:
    app = {**APP, "node_modules/shipped/s.js": "from the start", "legacy.html": "<script src=node_modules/old/x.js>"}
    page = '<script type=importmap>{"imports": {"three": "./node_modules/three/build/three.js"}}</script>'
    script = f"""for p in three @me/kit css old unused; do mkdir -p sub/node_modules/$p web/node_modules/$p/build
        echo $p > web/node_modules/$p/build/three.js; echo $p > sub/node_modules/$p/i.css; done
        cat > web/page.html <<'END'
{page}<link rel=stylesheet href="/sub/node_modules/%40me/kit/i.css">
END
        echo '@import "../sub/node_modules/css/i.css?v=1";' > web/a.css; ln -s sub/node_modules/old/i.css linked.css
        echo '{{"packages": {{"node_modules/unused": 1}}}}' > sub/package-lock.json
        echo 'export default {{ x: "sub/node_modules/unused" }}' > vite.config.js
        mkdir -p .cache/img .cache/rest; echo i > .cache/img/i.png; echo r > .cache/rest/r; echo '<img src=.cache/img/i.png>' > i.html
        mkdir vendor node_modules/new; echo h > node_modules/new/h; mkdir .vite; echo hard > .vite/first; ln .vite/first vendor/second"""
    submissions, manifests = submissions_of({"one": script}, app=app)
    added = {change.removeprefix("added: ") for change in manifests["one"].changes}
    assert {
        "web/node_modules/three/build/three.js", "sub/node_modules/@me/kit/i.css", "sub/node_modules/css/i.css",
        "sub/node_modules/old/i.css", ".cache/img/i.png", "vendor/second", "node_modules/new/h",
    } <= added  # fmt: skip
    assert (submissions / "one/vendor/second").read_text() == "hard\n"
    assert not any("unused" in name or "rest" in name or ".vite" in name for name in added)
    assert {(n.path, n.files) for n in manifests["one"].left_out} == {
        ("web/node_modules", 4), ("sub/node_modules", 2), (".cache", 1), (".vite", 1)
    }  # fmt: skip


def test_c56_odd_nodes_are_listed_and_links_that_stay_inside_are_kept(submissions_of: Callable[..., Any]) -> None:
    script = """mkfifo pipe; ln -s pipe to-pipe; ln -s loop loop; ln -s / root; ln -s /nowhere/evaluation-inputs r
        python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('sock')"; ln -s sock to-sock
        ln -s /workspace/assets/song.mp3 absolute; ln -s /workspace/../etc/passwd sly; ln -s ../index.html assets/up
        chmod 4755 index.html; mkdir shut; echo kept > shut/f; chmod 000 shut/f shut; ln index.html twin; ln pipe pipe2"""
    submissions, manifests = submissions_of({"one": script})
    manifest = manifests["one"]
    assert {node.path: node.reason for node in manifest.refused} == {
        "pipe": "FIFO", "pipe2": "FIFO", "sock": "socket", "loop": "links in a circle, or more than 40 in a row", "root": "absolute link to '/'",
        "r": "absolute link to '/nowhere/evaluation-inputs'", "sly": "link out of the tree to '../etc/passwd'",
    }  # fmt: skip
    assert {node.path: node.reason for node in manifest.altered} == {
        "absolute": "absolute link to '/workspace/assets/song.mp3' made relative",
        "index.html": "setuid taken off", "twin": "setuid taken off",
    }  # fmt: skip
    one = submissions / "one"
    assert (one / "absolute").read_text() == "sound" and (one / "assets/up").read_text() == (one / "twin").read_text()
    assert (one / "shut/f").read_text() == "kept\n"
    assert not any(path.is_fifo() or path.is_socket() for path in one.rglob("*"))


def test_c60_an_unchanged_application_is_recognised_whatever_the_start_holds(
    submissions_of: Callable[..., Any],
) -> None:
    def odd_start(project: Path) -> None:
        (project / "away").symlink_to("/etc/hostname")
        (project / "inside").symlink_to("assets/song.mp3")
        (project / "lib/.git").mkdir(parents=True)
        (project / "lib/.git/config").write_text("[core]\n")
        (project / "lib/l.js").write_text("l")
        (project / "sub").mkdir()
        (project / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
        (project / "node_modules/v").mkdir(parents=True)
        (project / "node_modules/v/v.js").write_text("v")
        (project / ("d/" * 70)).mkdir(parents=True)
        (project / ("d/" * 70) / "deep.txt").write_text("deep")
        (project / "run.sh").write_text("#!/bin/sh\n")
        (project / "run.sh").chmod(0o4711)
        (project / "\udcff\n").write_bytes(b"name")

    _, manifests = submissions_of(
        {"one": "true", "two": "if [ -e lib/.git ] || [ -e sub/.git ]; then touch history; fi"}, odd_start
    )
    for manifest in manifests.values():
        assert (manifest.changed_files, manifest.changes) == (0, [])
        assert manifest.digest == manifest.start_digest


def test_c127_after_a_snapshot_of_git_traps_nothing_ran_on_the_host(
    submissions_of: Callable[..., Any], tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    set_traps(tmp_path / "trapped", canary)
    script = "cp -r assets/trapped/. . && mkdir -p real && cd real && git init -q . && cp -r ../.git/config ../.git/hooks .git/; touch x"

    def with_traps(project: Path) -> None:
        subprocess.run(["cp", "-r", tmp_path / "trapped", project / "assets/trapped"], check=True)
        (project / "assets/trapped/.git").rename(project / "assets/trapped/dotgit")

    script = "mv assets/trapped/dotgit .git; " + script
    submissions, manifests = submissions_of({"one": script}, with_traps)
    assert ".gitmodules" in (submissions.parent / "trials/one/1/changes.patch").read_text()
    assert {".git", "real/.git"} <= {node.path for node in manifests["one"].left_out}
    assert not canary.exists()


LARGE = """
import json, re, sys
from pathlib import Path
from bench.task import open_dataset
from evaluator.prepare import prepare
from harness.agents.catalogue import find_agent
from harness.run import SolveSettings, solve
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.engine import engine
from sandboxes.images import image_tag

def memory(field):
    return int(re.search(rf"^{field}:\\s+(\\d+) kB", Path("/proc/self/status").read_text(), re.M)[1]) / 1024

root, out = Path(sys.argv[1]), Path(sys.argv[2])
engine()
before = memory("VmRSS")
dataset = open_dataset(root)
summary = solve(dataset, find_agent(sys.argv[3]), SolveSettings(out=out, image=image_tag("solver")), DockerSandbox, print)
found = prepare(root, summary.submissions, out / "prepared")
print(json.dumps({"outcomes": summary.outcomes, "growth": memory("VmHWM") - before,
                  "changes": found.cases[0].submission.changed_files, "attachment": found.cases[0].attachments[0].sha256}))
"""


@pytest.mark.slow
def test_c11_a_600_mb_attachment_passes_without_being_held_in_memory(
    make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    root = make_dataset({"one": APP})
    large = root / "cases/one/project/_attachments/film.mp4"
    large.parent.mkdir()
    with large.open("wb") as file:
        for at in range(0, 600, 50):
            file.seek(at * 1024 * 1024)
            file.write(b"frame" * 1000)
        file.truncate(600 * 1024 * 1024)
    (root / "cases/one/rubric.json").write_text(json.dumps(["First."]))
    agent = tmp_path / "copier.yaml"
    copy = "head -c 300000000 _attachments/film.mp4 > assets/cut.mp4; sha256sum _attachments/film.mp4 assets/cut.mp4 > sums"
    agent.write_text(yaml.safe_dump({"kind": "command", "name": "a", "argv": ["bash", "-c", copy]}))
    ended = subprocess.run(
        [sys.executable, "-c", LARGE, root, tmp_path / "runs", agent], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])
    assert told["outcomes"] == {"one": "ok"} and told["changes"] == 2
    assert told["growth"] < 150
    one = next((tmp_path / "runs").glob("*/submissions/one"))
    assert subprocess.run(["sha256sum", "--quiet", "-c", "sums"], cwd=one, check=False).returncode == 0
    assert told["attachment"] in (one / "sums").read_text()
