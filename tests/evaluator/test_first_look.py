"""The closer first look: one start and one submission with known differences, looked at once in a real Chromium."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from PIL import Image

from bench.errors import UsageError
from evaluator.applications import Applications
from evaluator.browser import AppBrowser
from evaluator.evidence.har import MAX_BODY_BYTES, cap_bodies
from evaluator.evidence.levels import FULL, depth_of, level_named
from evaluator.evidence.store import Kept, Manifest, check_evidence, keep_evidence, keep_pair, kind_of
from evaluator.first_look.accessibility import axe_version
from evaluator.first_look.facts import ClosePage, Differences, Flow, State
from evaluator.first_look.flows import witness_of
from evaluator.first_look.states import controls
from evaluator.recon import Recon, look
from evaluator.start_replays import StartReplays
from evaluator.try_witness import local_browser, serve

START = """<!doctype html><html lang="en"><title>Shop</title>
<nav><a href="#about">About</a> <a href="#gone">Nowhere</a></nav>
<main><h1>Shop</h1><p id="view">Welcome in</p>
<button id="cart">Cart</button> <button>Nothing</button>
<label>Search <input id="search" type="search"></label> <p id="found"></p>
<img src="lamp.png" alt="A lamp" width="20" height="20"></main>
<script>
  const view = document.getElementById('view');
  onhashchange = () => { view.textContent = location.hash === '#about' ? 'We sell lamps' : 'Welcome in'; };
  document.getElementById('cart').onclick = () => {
    document.body.insertAdjacentHTML('beforeend', '<h2>Your cart</h2><button>Pay</button>');
  };
  document.getElementById('search').onkeydown = event => {
    if (event.key === 'Enter') document.getElementById('found').textContent = 'Nothing found for ' + event.target.value;
  };
  const clock = document.createElement('button');
  clock.textContent = 'Time';
  clock.onclick = () => { view.textContent = 'Now ' + performance.now(); };
  document.querySelector('main').append(clock);
</script></html>
"""
SUBMISSION = (
    START.replace("'We sell lamps'", "'Welcome in'")
    .replace('alt="A lamp" ', "")
    .replace("<h1>Shop</h1>", '<h1>Shop</h1><button>Share</button><div id="spin" style="height:9000px">tall</div>')
    .replace("<script>", "<script>fetch('prices.json'); fetch('https://outside.example/a').catch(() => 0);"
             "setInterval(() => { document.querySelector('h1').style.marginLeft = Math.random() * 99 + 'px' }, 50);", 1)
)  # fmt: skip


@dataclass
class Both:
    start: AppBrowser
    submission: AppBrowser
    start_seen: StartReplays


@dataclass
class Looked:
    results: Path
    folder: Path
    recon: Recon
    both: Both

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    root = tmp_path_factory.mktemp("looked")
    for name, page in (("one", START), ("two", SUBMISSION)):
        (root / name).mkdir()
        (root / name / "index.html").write_text(page)
        Image.new("RGB", (40, 40), "orange").save(root / name / "lamp.png")
    results = root / "results"
    folder = results / "evidence" / "shop"
    with serve(root / "one") as first, serve(root / "two") as second, local_browser(first) as start:
        both = Both(start, AppBrowser(start.browser, second), StartReplays(root / "seen", "key"))
        recon = look(cast(Applications, both), results, folder, [], "full")
        keep_evidence(results, "shop", "full")
        yield Looked(results, folder, recon, both)


@pytest.mark.browser
def test_the_closer_look_says_what_differs(looked: Looked) -> None:
    found = Differences.model_validate(looked.json("differences.json"))
    assert found.new_controls == ["button “Share”"]
    assert found.lost_controls == []
    assert "GET /prices.json: 404" in found.new_failed_requests
    assert any(rule.startswith("image-alt (critical)") for rule in found.new_violations)
    assert '- button "Share"' in found.only_submission
    assert found.regions and found.share
    with Image.open(looked.folder / str(found.pair)) as pair:
        assert pair.width <= 2_000
    assert looked.recon.new_hosts == ["outside.example"]


@pytest.mark.browser
def test_flows_of_the_start_are_preservation_witnesses_and_a_lost_one_is_named(looked: Looked) -> None:
    flows = {flow.name: flow for flow in map(Flow.model_validate, looked.json("flows.json"))}
    assert set(flows) == {
        "click link “About”",
        "click link “Nowhere”",
        "click button “Cart”",
        "fill searchbox “Search”",
    }
    lost = flows["click link “About”"]
    assert lost.lost and [r.outcome for r in lost.submission] == ["failed", "failed"]
    assert [r.outcome for r in flows["fill searchbox “Search”"].submission] == ["held"]
    assert looked.recon.flows_lost == ["click link “About”"]
    assert all((looked.folder / flow.witness).is_file() for flow in flows.values())


@pytest.mark.browser
def test_facts_of_the_submission_are_whole(looked: Looked) -> None:
    page = ClosePage.model_validate(looked.json("submission.facts.json"))
    assert (page.title, page.error, page.states_cut) == ("Shop", "", False)
    assert [moment.at_s for moment in page.moments] == [0.0, 1.0, 3.0] and page.moments[1].changed > 0
    assert len(page.tiles) >= 6 and page.whole == "submission-whole.jpg"
    assert page.accessibility is not None and page.accessibility.axe == axe_version()
    assert any("outside.example" in url for url in page.refused)
    shown = {state.action["target"]["name"]: state for state in page.states}
    assert not shown["Nothing"].changed and shown["Cart"].shows[0].startswith('- heading "Your cart"')
    assert len(page.frames) > 2
    assert "[box=" in (looked.folder / "submission-boxes.snapshot.txt").read_text()


@pytest.mark.browser
def test_full_keeps_har_and_trace_and_bodies_only_where_they_are_small(looked: Looked) -> None:
    visit = looked.folder / "submission-visit"
    har = json.loads((visit / "har" / "visit.har").read_text())
    urls = [entry["request"]["url"].rpartition("/")[2] for entry in har["log"]["entries"]]
    assert {"", "lamp.png", "prices.json"} <= set(urls)
    assert (visit / "trace.zip").stat().st_size > 10_000
    assert json.loads((visit / "end.json").read_text())["refused_requests"] == ["https://outside.example/a"]


@pytest.mark.browser
def test_a_second_judging_takes_the_look_at_the_start_over(looked: Looked, tmp_path: Path) -> None:
    seen = looked.both.start_seen
    assert seen.look(tmp_path, "look-full") and not seen.look(tmp_path, "look-standard")
    assert (tmp_path / "start.facts.json").read_bytes() == (looked.folder / "start.facts.json").read_bytes()
    assert (tmp_path / "start-visit" / "trace.zip").is_file() and (tmp_path / "flows" / "01.witness.json").is_file()


@pytest.mark.browser
def test_every_file_is_in_the_manifest_and_a_blob_and_a_change_is_found(looked: Looked, tmp_path: Path) -> None:
    manifest = Manifest.model_validate(looked.json("manifest.json"))
    kinds = {one.kind for one in manifest.files}
    assert kinds >= {"picture", "pair", "frame", "snapshot", "witness", "facts", "har", "body", "trace"}
    assert check_evidence(looked.results, "shop") == []
    copy = tmp_path / "results"
    shutil.copytree(looked.results, copy)
    (copy / "evidence/shop/start.facts.json").write_text("{}")
    (copy / "evidence/shop/differences.json").unlink()
    (copy / "evidence/shop/more.txt").write_text("x")
    assert sorted(check_evidence(copy, "shop")) == [
        "differences.json is gone", "more.txt was added", "start.facts.json was changed",
    ]  # fmt: skip


def test_equal_files_take_their_room_once_and_a_new_look_writes_into_no_blob(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / "a"
    (folder / "01" / "judge").mkdir(parents=True)
    for name in ("start-desktop.jpg", "01/start.jpg"):
        (folder / name).write_bytes(b"picture")
    (folder / "01/judge/conversation.jsonl").write_text("{}\n")
    assert keep_evidence(tmp_path, "a", "standard") == keep_evidence(tmp_path, "a", "standard")
    assert (folder / "start-desktop.jpg").samefile(folder / "01/start.jpg")
    assert (folder / "01/judge/conversation.jsonl").stat().st_nlink == 1  # may be appended to
    assert len([path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]) == 1
    assert [
        one.criterion for one in Manifest.model_validate(json.loads((folder / "manifest.json").read_text())).files
    ] == [1, 1, None]
    assert keep_evidence(tmp_path, "b", "standard") is None


def test_minimal_keeps_no_blobs_but_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "evidence" / "a").mkdir(parents=True)
    (tmp_path / "evidence/a/start.json").write_text("{}")
    assert keep_evidence(tmp_path, "a", "minimal")
    assert not (tmp_path / "blobs").exists() and check_evidence(tmp_path, "a") == []
    assert depth_of("minimal") is None and depth_of("full") == FULL
    with pytest.raises(UsageError, match="minimal, standard, full"):
        level_named("all")


def test_a_file_system_without_hard_links_only_shares_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evidence" / "a").mkdir(parents=True)
    (tmp_path / "evidence/a/start.json").write_text("{}")

    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "link", refuse)
    keep_evidence(tmp_path, "a", "full")
    assert check_evidence(tmp_path, "a") == []


def test_a_pair_is_made_above_minimal(tmp_path: Path) -> None:
    for name in ("one.jpg", "two.jpg"):
        Image.new("RGB", (1280, 800), "red").save(tmp_path / name)
    keep_pair(tmp_path, tmp_path / "01", "one.jpg", "two.jpg", "minimal")
    keep_pair(tmp_path, tmp_path / "02", "one.jpg", None, "full")
    assert not (tmp_path / "01").exists() and not (tmp_path / "02").exists()
    keep_pair(tmp_path, tmp_path / "03", "one.jpg", "two.jpg", "standard")
    with Image.open(tmp_path / "03" / "pair.jpg") as pair:
        assert pair.size == (2_000, 622)


def test_large_bodies_of_a_har_are_cut_and_said_to_be(tmp_path: Path) -> None:
    har = tmp_path / "visit.har"
    entries = []
    for name, size in (("small.js", 10), ("large.mp4", MAX_BODY_BYTES + 1)):
        (tmp_path / name).write_bytes(b"x" * size)
        entries.append({"request": {}, "response": {"content": {"size": size, "_file": name}}})
    (tmp_path / "stray.bin").write_bytes(b"x")
    har.write_text(json.dumps({"log": {"entries": entries}}))
    assert cap_bodies(har) == 1
    kept = [entry["response"]["content"] for entry in json.loads(har.read_text())["log"]["entries"]]
    assert kept == [{"size": 10, "_file": "small.js"}, {"size": MAX_BODY_BYTES + 1, "_cut_bytes": MAX_BODY_BYTES + 1}]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.js", "visit.har"]


def test_controls_are_those_a_target_can_name_without_doubt() -> None:
    tree = """- link "About \\"us\\""
- button "Buy"
- button "Buy"
- heading "Shop" [level=1]
- tab "Reviews" [selected]
- searchbox "Search"
- button
- textbox "${name}"
"""
    assert controls(tree) == [
        {"do": "click", "target": {"role": "link", "name": 'About "us"'}},
        {"do": "click", "target": {"role": "tab", "name": "Reviews"}},
        {"do": "fill", "target": {"role": "searchbox", "name": "Search"}, "text": "cdb probe"},
    ]


def test_a_state_becomes_a_witness_only_where_something_can_be_checked() -> None:
    action = {"do": "click", "target": {"role": "button", "name": "Cart"}}
    bare = State(action=action, path="/", changed=True, shows=["- button [disabled]", "- text: ab"])
    assert witness_of(bare) is None
    told = bare.model_copy(
        update={"path": "/cart?x=1", "shows": ['- heading "Your cart" [level=2]', "- paragraph: Nothing in it"]}
    )
    witness = witness_of(told)
    assert witness is not None
    steps = [step.model_dump(mode="json", exclude_defaults=True) for step in witness.steps]
    assert [step.get("expect") for step in steps] == [None, "url", "visible", "visible"]
    assert steps[1]["contains"] == "/cart?x=1" and steps[3]["target"] == {"text": "Nothing in it", "exact": True}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("start-desktop.jpg", "picture"), ("pair-desktop.jpg", "pair"), ("01/pair.jpg", "pair"), ("submission-frame-01-0.00s.jpg", "frame"),
        ("01/a.witness.json", "witness"), ("01/a.counter.json", "witness"), ("start-visit/har/visit.har", "har"),
        ("start-visit/har/ab.html", "body"), ("01/a-propose-visit/trace.zip", "trace"), ("start-phone.snapshot.txt", "snapshot"),
        ("build-start/install.txt", "log"), ("01/judge/E1.txt", "conversation"), ("start.facts.json", "facts"),
    ],
)  # fmt: skip
def test_what_a_file_is_is_told_by_its_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_every_field_of_what_is_kept_is_explained() -> None:
    docs = Path(__file__).parent.parent.parent / "docs"
    explained = (docs / "evidence.md").read_text() + (docs / "records.md").read_text()
    fields = {name for model in (ClosePage, Flow, Differences, Manifest, Kept) for name in model.model_fields}
    assert sorted(name for name in fields if f"`{name.removesuffix('_')}`" not in explained) == []
