"""The case author's tool: runs witnesses on a copy of a folder and says by its exit code what came out."""

from __future__ import annotations

import json

import pytest

from evaluator.try_witness import main, read_entries
from evaluator.witness import WitnessError

PAGE = '<title>Shop</title><button onclick="this.nextElementSibling.textContent=`Added`">Add</button><p></p>'
PATCH = """--- a/index.html
+++ b/index.html
@@ -1 +1 @@
-<title>Shop</title><p>closed</p>
+{page}
"""
ADDS = {
    "schema": "cdb.witness/1",
    "steps": [
        {"do": "click", "target": {"role": "button", "name": "Add"}},
        {"expect": "text", "target": {"css": "p"}, "equals": "Added", "within_ms": 300},
    ],
}
SHOP = {
    "schema": "cdb.witness/1",
    "steps": [{"expect": "count", "target": {"css": "p"}, "equals": 1, "hidden_too": True}],
}


@pytest.fixture
def case(tmp_path):
    """A start application, a patch that puts the button in, and a file with two witnesses."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/index.html").write_text("<title>Shop</title><p>closed</p>\n")
    (tmp_path / "gold.patch").write_text(PATCH.format(page=PAGE))
    listed = [
        {"criterion_index": 1, "sub": "a", "witness": ADDS},
        {"criterion_index": 2, "sub": "a", "witness": SHOP},
    ]
    (tmp_path / "witnesses.json").write_text(json.dumps({"case": "shop", "witnesses": listed}))
    return tmp_path


@pytest.mark.browser
def test_witnesses_hold_on_the_patched_copy_and_the_folder_stays_as_it_is(case, capsys):
    arguments = [str(case / "project"), str(case / "witnesses.json"), "--patch", str(case / "gold.patch")]
    assert main(arguments) == 0
    assert "all as wanted" in capsys.readouterr().out
    assert "closed" in (case / "project/index.html").read_text()


@pytest.mark.browser
def test_the_exit_code_is_1_when_one_fails_and_0_when_that_was_wanted(case, capsys):
    arguments = [str(case / "project"), str(case / "witnesses.json")]
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert "1 not as wanted" in out
    assert "there is no such element on the page" in out
    assert main([*arguments, "--vacuity", "--criterion", "1"]) == 0
    assert main([*arguments, "--vacuity", "--criterion", "2"]) == 1


@pytest.mark.browser
def test_what_is_compared_with_the_start_is_compared_with_the_folder_unpatched(case):
    steps = [
        {"expect": "unchanged", "target": {"css": "title"}, "what": "text"},
        {"expect": "changed", "target": {"css": "button"}, "what": "text", "within_ms": 200},
    ]
    (case / "compares.json").write_text(json.dumps({"schema": "cdb.witness/1", "steps": steps}))
    arguments = [str(case / "project"), str(case / "compares.json")]
    assert main([*arguments, "--patch", str(case / "gold.patch")]) == 0
    assert main([*arguments, "--vacuity"]) == 0


@pytest.mark.parametrize(
    "change, said",
    [
        (["--criterion", "9"], "no witness for criterion 9"),
        (["--patch", "witnesses.json"], "git apply"),
    ],
)
def test_bad_arguments_are_explained_with_exit_code_2(case, capsys, change, said):
    change = [str(case / one) if one.endswith("json") else one for one in change]
    assert main([str(case / "project"), str(case / "witnesses.json"), *change]) == 2
    assert said in capsys.readouterr().err


def test_every_bad_witness_of_a_file_is_named(tmp_path):
    bad = {"schema": "cdb.witness/1", "steps": [{"do": "clik"}]}
    listed = [{"criterion_index": n, "sub": "b", "witness": bad} for n in (1, 4)]
    (tmp_path / "w.json").write_text(json.dumps({"witnesses": listed}))
    with pytest.raises(WitnessError, match=r"(?s)criterion 1b: .*clik.*criterion 4b: "):
        read_entries(tmp_path / "w.json")
