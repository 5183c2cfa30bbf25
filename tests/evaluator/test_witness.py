"""The witness language: what is refused and how, descriptions, inputs, digests, the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import jsonschema
import pytest

from evaluator.witness import (
    Action,
    Check,
    Target,
    Viewport,
    Witness,
    WitnessError,
    checks,
    describe,
    load_witness,
    parts,
    witness_schema,
)

PROMPT = Path(__file__).parents[2] / "evaluator/prompts/witness.md"
DOCS = Path(__file__).parents[2] / "docs" / "witness.md"
SEEN = {"expect": "visible", "target": {"css": "main"}}


def witness(*steps, **more):
    return load_witness({"schema": "cdb.witness/1", "steps": [*steps], **more})


def words(union, key):
    return [word for model in get_args(get_args(union)[0]) for word in get_args(model.model_fields[key].annotation)]


@pytest.mark.parametrize(
    "steps, message",
    [
        ([{"do": "clik", "target": {"css": "a"}}], r'step 1 \(clik\): unknown "do": \'clik\'; allowed: open, click,'),
        ([{"expect": "txt"}], r'unknown "expect": \'txt\'; allowed: text, value, count,'),
        ([{"target": {"css": "a"}}], 'step 1: a step has exactly one of "do" and "expect"'),
        ([{"do": "reload", "expect": "visible"}], 'exactly one of "do" and "expect"'),
        ([SEEN, {"do": "click", "target": {"rol": "a"}}], r"step 2 \(click\), field target.rol: unknown field; allowed: role,"),
        ([{"do": "click"}], r"step 1 \(click\), field target: is missing; the fields are: do, target, at"),
        ([{"do": "click", "target": {"css": "a", "text": "b"}}], "exactly one of role, label.*got css and text|got text and css"),
        ([{"do": "click", "target": {"css": "a", "name": "b"}}], "name and name_matches go with role only"),
        ([{"expect": "text", "target": {"css": "a"}}], "at least one of equals, contains, matches, not_contains, number"),
        ([{"expect": "text", "target": {"css": "a"}, "matches": "("}], "is no regular expression"),
        ([{"expect": "text", "target": {"css": "a"}, "number": {"equal": 3}}], "field number.equal: unknown field; allowed: equals,"),
        ([{"expect": "count", "target": {"css": "a"}, "equals": "many"}], "must be a number, or numbers and"),
        ([{"expect": "visible", "target": {"css": "a"}, "within_ms": 10_001}], "within_ms: .*10000"),
        ([{"expect": "download", "after": {"do": "klick"}}], 'field after: unknown "do": \'klick\''),
        ([{"expect": "download", "after": {"do": "click", "target": {"x": 1}}}], "field after.target.x: unknown field; allowed: role,"),
        ([{"expect": "box", "target": {"css": "a"}, "relation": "above"}], "relation and of go together"),
        ([{"do": "open", "path": "https://example.invalid/"}], "a path inside the application"),
        ([{"do": "open", "path": "//example.invalid/"}], "a path inside the application"),
        ([{"do": "wait", "ms": 3001}], "field ms: .*3000"),
        ([{"do": "upload", "target": {"css": "a"}, "content": "x"}], "content needs a name"),
        ([{"do": "evaluate", "script": "1"}], 'unknown "do"'),
        ([{"do": "reload"}], 'needs at least one check'),
        ([SEEN] * 41, "steps: has 41 steps; at most 40 are allowed"),
        ([{"do": "press", "key": "${key}"}], "step 1"),
        ([SEEN | {"target": {"css": "${a}"}}], r"step 1: \$\{a\} is neither an input nor remembered.*known here: none"),
    ],
)  # fmt: skip
def test_a_bad_witness_is_refused_with_step_field_and_what_is_allowed(steps, message):
    with pytest.raises(WitnessError, match=message):
        witness(*steps)


@pytest.mark.parametrize(
    "more, message",
    [
        ({"vary": [{"nome": "x"}], "inputs": {"name": "y"}}, r"vary 1 must give new values .*\(name\)"),
        ({"inputs": {"a": "${b}"}}, "may not hold a"),
        ({"script": "x"}, "script"),
        ({"viewport": {"width": 9999}}, "viewport.width"),
        ({"schema": "cdb.witness/2"}, "schema"),
    ],
)
def test_a_bad_frame_is_refused_too(more, message):
    with pytest.raises(WitnessError, match=message):
        witness(SEEN, **more)


@pytest.mark.parametrize("source", ["[]", "{", b"\xff", Path("/nowhere.json"), "null"])
def test_what_is_no_json_object_is_refused(source):
    with pytest.raises(WitnessError, match="a witness is"):
        load_witness(source)


def test_inputs_are_put_in_place_everywhere_and_literally_in_patterns():
    made = witness(
        {"do": "fill", "target": {"label": "${field}"}, "text": "Hi ${name}"},
        {"expect": "text", "target": {"role": "row", "name_matches": "^${name}$"}, "matches": "${name}\\d"},
        path="/?q=${field}",
        inputs={"name": "A.B", "field": "Name"},
        vary=[{"name": "C+"}],
    ).with_inputs({"name": "C+"})
    assert (made.path, made.inputs, made.vary) == ("/?q=Name", {"name": "C+", "field": "Name"}, [])
    assert made.steps[0].target.label == "Name"
    assert made.steps[0].text == "Hi C+"
    assert (made.steps[1].target.name_matches, made.steps[1].matches) == ("^C\\+$", "C\\+\\d")


def test_remembered_values_may_be_used_only_after_they_are_remembered():
    remember = {"do": "remember", "target": {"css": "a"}, "as": "n", "what": "count"}
    count = {"expect": "count", "target": {"css": "a"}, "equals": "${n} + 1"}
    assert witness(remember, count).with_inputs().steps[1].equals == "${n} + 1"
    with pytest.raises(WitnessError, match=r"step 1: .*n.* is neither"):
        witness(count, remember)
    box = {"do": "remember", "target": {"css": "a"}, "as": "b", "what": "box"}
    assert witness(box, {"expect": "compare", "left": "${b.width}", "relation": "greater", "right": 3})
    with pytest.raises(WitnessError, match=r"known here: b\.height, b\.width, b\.x, b\.y"):
        witness(box, {"expect": "compare", "left": "${b}", "relation": "greater", "right": 3})


def test_the_digest_depends_on_meaning_and_not_on_how_it_is_written():
    plain = witness({"do": "click", "target": {"role": "button", "name": "Add"}}, SEEN)
    spelled = load_witness(
        '{"steps":[{"target":{"name":"Add","role":"button","nth":null},"do":"click"},'
        '{"expect":"visible","within_ms":2000,"target":{"css":"main"}}],'
        '"path":"/","vary":[],"schema":"cdb.witness/1"}'
    )
    assert plain.digest() == spelled.digest()
    assert plain.digest() == "adadfc4199e14fcb3bf0dfa80d1a45ae9c8edbd3d936a6cf7e677e135b8783ca"
    assert witness(SEEN).digest() != plain.digest()


@pytest.mark.parametrize(
    "step, sentence",
    [
        ({"do": "click", "target": {"role": "button", "name": "Add"}}, "Click the button “Add”"),
        ({"do": "fill", "target": {"label": "Name"}, "text": ""}, "Empty the field “Name”"),
        (
            {"do": "hover", "target": {"css": ".row", "nth": 1, "within": {"text": "List"}}},
            "Point at the 2nd element matching “.row” inside the text “List”",
        ),
        ({"do": "clock", "advance_ms": 7_200_000}, "Let the clock run on by 2 hours"),
        (
            {"expect": "text", "target": {"css": "#t", "nth": -1}, "contains": "a", "number": {"at_least": 3}},
            "See that the text of the last element matching “#t” contains “a” and has a number that is at least 3",
        ),
        (
            {"expect": "box", "target": {"css": "a"}, "relation": "left_of", "of": {"css": "b"}, "width": {"at_most": 9}},
            "See that the element matching “a” is left of the element matching “b” and has a width that is at most 9",
        ),
        (
            {"expect": "download", "after": {"do": "press", "key": "Enter"}, "name_matches": "csv$"},
            "Press Enter and see that a file is downloaded whose name matches “csv$”",
        ),
        ({"expect": "media", "target": {"css": "video"}, "state": "playing"}, "See that the element matching “video” is playing"),
    ],
)  # fmt: skip
def test_a_step_is_described_in_a_sentence(step, sentence):
    assert describe(witness(step, SEEN).steps[0]) == sentence


def examples():
    return [json.loads(text) for text in re.findall(r"`(\{\"(?:do|expect)\".*?\})`(?: \|)", DOCS.read_text())]


def test_the_reference_has_a_valid_described_example_of_every_word():
    remembered = [
        {"do": "remember", "target": {"css": "a"}, "as": name, "what": "count"} for name in ("before", "after")
    ]
    shown = set()
    for step in examples():
        made = witness(*remembered, step, SEEN)
        assert re.match(r"[A-Z].*[^ ]$", describe(made.steps[2]))
        shown.add(step.get("do") or step.get("expect"))
        shown.update(re.findall(r"`(\w+)`", DOCS.read_text()))
    assert set(words(Action, "do")) | set(words(Check, "expect")) <= shown


def parts_of_the_language():
    """Every model of the language with the names of its fields as a witness writes them."""
    models = [model for union in (Action, Check) for model in get_args(get_args(union)[0])]
    models += [Witness, Target, Viewport, parts.NumberCheck, parts.Point, parts.Region]
    models += [checks.CsvContent, checks.JsonContent]
    return {model: [field.alias or name for name, field in model.model_fields.items()] for model in models}


def choices_of(model):
    """The words a model's fields may hold."""
    kinds = [
        kind for field in model.model_fields.values() for kind in (field.annotation, *get_args(field.annotation))
    ]
    values = [value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
    return {value for value in values if isinstance(value, str) and re.fullmatch(r"\w+", value)}


@pytest.mark.parametrize("page", [DOCS, PROMPT], ids=["reference", "prompt"])
def test_reference_and_prompt_name_every_word_field_and_choice_of_the_language(page):
    said = set(re.findall(r"\w+", page.read_text()))
    language = set(parts.MADE)
    for model, fields in parts_of_the_language().items():
        language |= set(fields) | choices_of(model)
    assert len(language) > 150
    assert language - said == set()


def test_the_schema_file_is_the_language():
    kept = json.loads((DOCS.parent / "witness.schema.json").read_text())
    assert kept == witness_schema(), "run: python -m evaluator.witness.schema > docs/witness.schema.json"


def test_the_json_schema_takes_what_the_language_takes():
    schema = witness_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for step in examples():
        assert validator.is_valid({"schema": "cdb.witness/1", "steps": [step]}), step
    assert not validator.is_valid({"schema": "cdb.witness/1", "steps": [{"do": "evaluate"}]})
