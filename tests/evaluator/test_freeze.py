"""What start applications load from elsewhere is recorded once and answered from the store, in the real browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_cdn import Cdn, running
from playwright.sync_api import Playwright

from bench.errors import DataError, UsageError
from evaluator.browser import AppBrowser
from evaluator.external_addresses import addresses_in, addresses_in_css
from evaluator.freeze import FreezeSummary, freeze
from evaluator.frozen_store import blob_path, open_store, steady
from evaluator.serve import serve
from evaluator.serve_plan import learn_plan
from evaluator.sidecar import browser_for, playwright_driver
from sandboxes.open_fetch import OpenFetch, resolve

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a730000001049444154789c63f8cfc0f01f8c19601c00"
    "4bcc07f91af5a0e70000000049454e44ae426082"
)


def fetcher(cdn: Cdn) -> OpenFetch:
    """`cdn.test` is the fake CDN; every other host is what it is."""
    allowed = frozenset({("127.0.0.1", cdn.port)})
    return OpenFetch(allowed, resolve=lambda host, port: ["127.0.0.1"] if host == "cdn.test" else resolve(host, port))


RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cdn() -> Iterator[Cdn]:
    with running(Cdn("cdn.test")) as served:
        served.add("/v1/style.css", "text/css; charset=utf-8", "@import 'more.css'; h1 { color: rgb(1, 2, 3) }")
        served.add("/v1/more.css", "text/css", 'p { color: rgb(4, 5, 6); background: url("../bold.png") }')
        served.add("/bold.png", "image/png", PNG)
        served.add("/moved.css", "text/css", "", 302, Location="/deep/real.css")
        served.add("/deep/real.css", "text/css", "body { background-image: url(back.png) }")
        served.add("/deep/back.png", "image/png", PNG)
        served.add("/lib", "text/javascript", "", 302, Location="/lib@2/main.js")
        served.add("/lib@2/main.js", "text/javascript", "export { two } from './two.js'; export default 1")
        served.add("/lib@2/two.js", "text/javascript", "export const two = 2")
        served.add("/data.json", "application/json", '{"n": 7}')
        served.add("/lazy.png", "image/png", PNG)
        served.add("/late.json", "application/json", "[1]")
        served.add("/dialog.png", "image/png", PNG)
        served.add("/page2.png", "image/png", PNG)
        served.add("/counted.js", "text/javascript", "window.counted = 1")
        yield served


def page(cdn: Cdn) -> dict[str, str]:
    at = cdn.address
    return {
        "index.html": f"""<!doctype html><title>Shop</title>
<link rel="stylesheet" href="{at}/v1/style.css"><link rel=stylesheet href="{at}/moved.css">
<h1>Shop</h1><p>Text</p><div style="height:4000px"></div><img loading="lazy" width="9" height="9" src="{at}/lazy.png">
<a href="two.html">Two</a>
<script type="module">
import one, {{ two }} from "{at}/lib";
window.sum = one + two;
const script = document.createElement("script"); script.src = "{at}/counted.js?_=" + Date.now();
document.body.append(script);
fetch("{at}/data.json", {{headers: {{"x-more": "1"}}}}).then(r => r.json()).then(d => {{ window.n = d.n; }});
setTimeout(() => fetch("{at}/late.json"), 1500);
fetch("{at}/track", {{method: "POST", body: "x"}}).catch(() => 0);
fetch("http://169.254.169.254/latest/meta-data").catch(() => 0);
fetch("{at}/missing.json").then(r => {{ window.missing = r.status; }}, () => {{ window.missing = "blocked"; }});
window.openDialog = () => {{ const i = new Image(); i.id = "d"; i.src = "{at}/dialog.png"; document.body.append(i); }};
</script>""",
        "two.html": f'<img src="{at}/page2.png"><p>Two</p>',
    }


@pytest.fixture(scope="module")
def recorded(cdn: Cdn, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, FreezeSummary]:
    """Dataset root, store, and the summary of the call that recorded it."""
    room = tmp_path_factory.mktemp("freeze")
    for case, files in {"shop": page(cdn), "alone": {"index.html": "<h1>Alone</h1>"}}.items():
        project = room / "inputs/cases" / case / "project"
        project.mkdir(parents=True)
        for name, text in files.items():
            (project / name).write_text(text)
        (project.parent / "user_queries.json").write_text('[{"text": "Change it."}]')
    fetch = fetcher(cdn)
    return room / "inputs", room / "store", freeze(room / "inputs", room / "store", fetch=fetch, concurrency=1)


@pytest.fixture(scope="module")
def driver() -> Iterator[Playwright]:
    with playwright_driver() as started:
        yield started


@pytest.fixture(scope="module")
def frozen(recorded: tuple[Path, Path, FreezeSummary], driver: Playwright) -> Iterator[AppBrowser]:
    root, store, _ = recorded
    project = root / "cases/shop/project"
    with (
        serve(learn_plan(project), project, run="test", case="freeze") as app,
        browser_for(app, driver=driver, run="test", case="freeze", frozen=open_store(store)) as browser,
    ):
        yield browser


@pytest.mark.docker
@pytest.mark.browser
def test_everything_that_a_visit_loads_is_recorded(recorded: tuple[Path, Path, FreezeSummary], cdn: Cdn) -> None:
    _, store, summary = recorded
    kept = {entry.url.removeprefix(cdn.address).partition("?")[0] for entry in open_store(store).index.entries}
    assert kept >= {
        "/v1/style.css", "/v1/more.css", "/bold.png", "/moved.css", "/deep/back.png", "/lib",
        "/lib@2/two.js", "/data.json", "/lazy.png", "/late.json", "/dialog.png", "/page2.png", "/counted.js",
        "/missing.json",
    }  # fmt: skip
    assert summary.complete and summary.entries == len(open_store(store).index.entries)
    assert [one.url for one in summary.refused] == ["http://169.254.169.254/latest/meta-data"]
    assert open_store(store).index.allowed == [f"127.0.0.1:{cdn.port}"]
    assert not [path for path in cdn.asked if path.startswith("POST")]


@pytest.mark.docker
@pytest.mark.browser
def test_a_page_gets_from_the_store_what_it_would_get_from_the_network(frozen: AppBrowser, cdn: Cdn) -> None:
    before = len(cdn.asked)
    with frozen.open() as visit:
        visit.goto("/")
        page = visit.page
        page.wait_for_function("() => window.n && window.sum && window.counted && window.missing", timeout=30_000)
        read = "() => [window.n, window.sum, window.counted, window.missing]"
        assert page.evaluate(read) == [7, 3, 1, "blocked"]  # the CDN lets no page read its 404
        colours = "() => ['h1', 'p'].map((tag) => getComputedStyle(document.querySelector(tag)).color)"
        assert page.evaluate(colours) == ["rgb(1, 2, 3)", "rgb(4, 5, 6)"]
        background = page.evaluate("() => getComputedStyle(document.body).backgroundImage")
        assert background == f'url("{cdn.address}/deep/back.png")'
        page.evaluate("() => window.openDialog()")
        page.wait_for_function("() => document.querySelector('#d').naturalWidth === 2", timeout=30_000)
        assert {url.removeprefix(cdn.address) for url in visit.refused} == {
            "/track", "http://169.254.169.254/latest/meta-data",
        }  # fmt: skip
    assert len(cdn.asked) == before


@pytest.mark.docker
@pytest.mark.browser
def test_what_is_not_recorded_stays_refused_and_is_listed(frozen: AppBrowser) -> None:
    with frozen.open() as visit:
        visit.goto("/two.html")
        asked = "() => fetch('https://new.example/x.js').then(() => 'reached', () => 'refused')"
        assert visit.page.evaluate(asked) == "refused"
        assert visit.refused == ["https://new.example/x.js"]


@pytest.mark.docker
@pytest.mark.browser
def test_what_was_recorded_whole_is_not_recorded_again(recorded: tuple[Path, Path, FreezeSummary], cdn: Cdn) -> None:
    root, store, first = recorded
    before = len(cdn.asked)
    again = freeze(root, store, fetch=fetcher(cdn))
    assert (again.digest, again.entries, len(cdn.asked)) == (first.digest, first.entries, before)


@pytest.mark.docker
@pytest.mark.browser
def test_a_server_that_is_away_leaves_the_store_incomplete_until_it_is_back(
    make_dataset: Callable[..., Path], tmp_path: Path, run_cdb: RunCdb
) -> None:
    with running(Cdn()) as cdn:
        cdn.add("/x.js", "text/javascript", "window.x = 1", 503)
        root = make_dataset({"one": {"index.html": f'<h1>One</h1><script src="{cdn.address}/x.js"></script>'}})
        command = ["dataset", "freeze", "--dataset", root, "--store", tmp_path / "store", "--json"]
        command += ["--allow-private", f"127.0.0.1:{cdn.port}"]
        away = run_cdb(command)
        told = json.loads(away.stdout)
        assert (away.returncode, told["entries"]) == (3, 0), away.stderr
        assert [one["reason"] for one in told["failed"]] == ["it answers 503"]
        cdn.add("/x.js", "text/javascript", "window.x = 1")
        back = run_cdb(command)
        assert (back.returncode, json.loads(back.stdout)["entries"]) == (0, 1), back.stderr
    refused = run_cdb([*command[:-2], "--allow-private", "nonsense"])
    assert (refused.returncode, "ADDRESS:PORT" in refused.stderr) == (2, True)


@pytest.mark.docker
@pytest.mark.browser
def test_without_an_allowance_nothing_on_this_machine_is_asked(
    make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    with running(Cdn()) as cdn:
        cdn.add("/x.js", "text/javascript", "window.x = 1")
        root = make_dataset({"one": {"index.html": f'<h1>One</h1><script src="{cdn.address}/x.js"></script>'}})
        summary = freeze(root, tmp_path / "store")
        assert cdn.asked == []
    assert (summary.entries, summary.complete) == (0, True)
    assert [one.url for one in summary.refused] == [f"{cdn.address}/x.js"]


@pytest.mark.docker
@pytest.mark.browser
def test_a_changed_store_is_refused_by_name(recorded: tuple[Path, Path, FreezeSummary], tmp_path: Path) -> None:
    shutil.copytree(recorded[1], tmp_path / "store")
    index = json.loads((tmp_path / "store/index.json").read_text())
    entry = next(entry for entry in index["entries"] if entry["url"].endswith("style.css"))
    blob_path(tmp_path / "store", entry["sha256"]).write_text("h1 { display: none }")
    with pytest.raises(DataError, match=r"style\.css"):
        open_store(tmp_path / "store")
    shutil.copytree(recorded[1], tmp_path / "other")
    entry["status"] = 500
    (tmp_path / "other/index.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match="digest"):
        open_store(tmp_path / "other")
    entry["sha256"] = "../../../etc/passwd"
    (tmp_path / "other/index.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match="SHA-256"):
        open_store(tmp_path / "other")
    with pytest.raises(UsageError, match="cdb dataset freeze"):
        open_store(tmp_path)


@pytest.mark.docker
@pytest.mark.browser
def test_a_judging_names_its_store_and_a_replay_wants_the_same(
    recorded: tuple[Path, Path, FreezeSummary], tmp_path: Path, run_cdb: RunCdb
) -> None:
    root, store, summary = recorded
    evaluation = tmp_path / "evaluation-inputs"
    shutil.copytree(root, evaluation)
    (evaluation / "cases/shop/rubric.json").write_text('["The heading says Store."]')
    (evaluation / "cases/alone/rubric.json").write_text('["The heading says Together."]')
    project = tmp_path / "submissions/shop"
    shutil.copytree(root / "cases/shop/project", project)
    (project / "index.html").write_text(
        (project / "index.html")
        .read_text()
        .replace("<h1>Shop", '<script src="https://new.example/x.js"></script><h1>Store')
    )
    witnesses = tmp_path / "witnesses/shop"
    witnesses.mkdir(parents=True)
    (witnesses / "witnesses.json").write_text('{"case": "shop", "witnesses": []}')
    prepared = ["prepare", "--dataset", evaluation, "--submissions", tmp_path / "submissions", "--only", "shop"]
    assert run_cdb([*prepared, "--out", tmp_path / "e"]).returncode == 0
    judge = ["judge", "--cases", tmp_path / "e/cases.json", "--out", tmp_path / "r", "--model", "recorded"]
    judge += ["--witnesses", tmp_path / "witnesses"]
    ended = run_cdb([*judge, "--frozen", store])
    assert ended.returncode in (0, 3), ended.stderr
    lock = json.loads((tmp_path / "r/lock.json").read_text())
    assert lock["conditions"] == {"egress": "frozen", "frozen": summary.digest}
    looks = json.loads((tmp_path / "r/evidence/shop/submission.json").read_text())
    assert "https://new.example/x.js" in looks["refused_requests"]
    assert not [url for url in looks["refused_requests"] if url.endswith("style.css")]
    records = [json.loads(line) for line in (tmp_path / "r/journal.jsonl").read_text().splitlines()]
    assert [record["flags"] for record in records if record["type"] == "case"] == [["new_hosts"]]
    other = run_cdb(judge)
    assert other.returncode == 2 and "conditions" in other.stderr
    replay = run_cdb(["replay", tmp_path / "r", "shop", "1"])
    assert replay.returncode == 2 and "--frozen" in replay.stderr


def test_addresses_are_read_off_sources_and_links_for_people_are_not(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<link href="//fonts.example.com/css2?family=A&amp;display=swap" rel="stylesheet">'
        '<link rel="canonical" href="https://shop.example.com/"><a href="https://blog.example.com/post">Blog</a>'
        '<svg xmlns="http://www.w3.org/2000/svg"></svg><img src="https://img.example.com/a.png">'
    )
    (tmp_path / "app.js").write_text(
        "import x from 'https://esm.example.com/react@18';\nconst a = 'https://api.example.com/v1/users';\n"
        "fetch(`https://${host}/x.json`); const logo = 'https://cdn.example.com/logo.svg'; // https://doc.example.com/a.js\n"
    )
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/a.js").write_text("import 'https://no.example.com/a.js'")
    assert {address.url for address in addresses_in(tmp_path)} == {
        "https://fonts.example.com/css2?family=A&display=swap", "https://img.example.com/a.png",
        "https://esm.example.com/react@18", "https://cdn.example.com/logo.svg",
    }  # fmt: skip
    css = "@import 'a.css'; p { background: url( 'b c.png' ) } @font-face { src: url(d.woff2) } q { x: url(data:x) }"
    assert list(addresses_in_css(css)) == ["a.css", "b c.png", "d.woff2"]


def test_only_a_cache_busters_value_is_ignored() -> None:
    assert steady("https://a.b/x.js?_=1714060800123&v=2#c") == steady("https://a.b/x.js?_=1999999999999&v=2")
    assert steady("https://a.b/x.js?v=1714060800123") != steady("https://a.b/x.js?v=1999999999999")
    assert steady("https://a.b/x.js?t=12") != steady("https://a.b/x.js?t=13")
