"""A page may redefine what its elements answer: a check reads them in a world of its own and is not deceived."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

LIES = [
    {"expect": "visible", "target": {"css": "#hidden"}},
    {"expect": "text", "target": {"css": "#hidden"}, "contains": "Nobody"},
    {"expect": "text", "target": {"css": "#plain"}, "equals": "Fancy words"},
    {"expect": "each", "target": {"css": "#plain"}, "what": "text", "equals": "Fancy words"},
    {"expect": "style", "target": {"css": "#plain"}, "property": "color", "equals": "red"},
    {"expect": "each", "target": {"css": "#plain"}, "what": "style", "property": "color", "equals": "rgb(255, 0, 0)"},
    {"expect": "each", "target": {"css": "#plain"}, "what": "attribute", "attribute": "title", "equals": "yes"},
    {"expect": "each", "target": {"css": "#plain"}, "what": "width", "number": {"equals": 400}},
    {"expect": "box", "target": {"css": "#plain"}, "width": {"equals": 400}},
    {"expect": "contrast", "target": {"css": "#plain"}, "at_least": 4.5},
    {"expect": "fits_width", "target": {"css": "body"}},
    {"expect": "media", "target": {"css": "#player"}, "rate": {"equals": 2}},
    {"expect": "media", "target": {"css": "#player"}, "muted": True},
    {"expect": "media", "target": {"css": "#player"}, "loop": True},
    {"expect": "value", "target": {"css": "#choice"}, "equals": "Pears"},
    {"expect": "storage", "area": "local", "key": "cart", "contains": "kept"},
    {"expect": "attribute", "target": {"css": "#plain"}, "attribute": "title", "equals": "yes"},
    {"expect": "contrast", "target": {"css": "#pale"}, "at_least": 4.5},
    {"expect": "contrast", "target": {"css": "#faint"}, "at_least": 4.5},
    {"expect": "contrast", "target": {"css": "#filled"}, "at_least": 4.5},
    {"expect": "fits_width", "target": {"css": "#search"}},
    {"expect": "visible", "target": {"text": "Fern plant"}},
    {"expect": "style", "target": {"css": "#filled"}, "property": "color", "equals": "var(--nothing)"},
]
TRUTHS = [
    {"expect": "hidden", "target": {"text": "Fern plant"}},
    {"expect": "text", "target": {"css": "#label"}, "equals": "Sales 42"},
    {"expect": "visible", "target": {"css": "#search"}},
    {"expect": "each", "target": {"css": "#search"}, "what": "text", "contains": "wide form content"},
    {"expect": "style", "target": {"css": "#filled"}, "property": "color", "equals": "#000"},
    {"expect": "hidden", "target": {"css": "#hidden"}},
    {"expect": "text", "target": {"css": "#plain"}, "equals": "Plain words"},
    {"expect": "style", "target": {"css": "#plain"}, "property": "color", "equals": "rgb(120, 120, 120)"},
    {"expect": "each", "target": {"css": "#plain"}, "what": "width", "number": {"equals": 200}},
    {
        "expect": "media",
        "target": {"css": "#player"},
        "state": "paused",
        "rate": {"equals": 1},
        "muted": False,
        "loop": False,
    },
    {"expect": "value", "target": {"css": "#choice"}, "equals": "Apples"},
    {"expect": "storage", "area": "local", "key": "cart", "absent": True},
]


@pytest.mark.parametrize("helpers", ["", "?helpers"], ids=["built-ins", "and helpers"])
@pytest.mark.parametrize("check", LIES, ids=lambda check: f"{check['expect']}-{check.get('what', '')}")
def test_what_the_page_says_of_itself_is_not_believed(run, check, helpers):
    replay = run(f"lies.html{helpers}", [check], patience=0.2)
    assert (replay.outcome, replay.failed_step) == ("failed", 1), replay.reason
    assert "the page changing" not in replay.reason  # that would be a reading that broke, not one that sees the truth


@pytest.mark.parametrize("check", TRUTHS, ids=lambda check: f"{check['expect']}-{check.get('what', '')}")
def test_what_is_so_is_still_seen(run, check):
    replay = run("lies.html?helpers", [check], patience=0.2)
    assert replay.outcome == "held", replay.reason
