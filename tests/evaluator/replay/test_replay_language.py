"""Each action and each check holds on an application that is right and fails on one that is wrong.

The fixture pages are right as they are and wrong with `?wrong` behind their address."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

IMPATIENT = 0.15


def css(selector, **more):
    return {"css": selector, **more}


def button(name):
    return {"role": "button", "name": name}


def click(name):
    return {"do": "click", "target": button(name)}


def text(selector, **wanted):
    return {"expect": "text", "target": css(selector), **wanted}


SAYS = {"expect": "text", "target": {"testid": "event"}}
ADD_BO = [{"do": "fill", "target": {"label": "Guest"}, "text": "Bo Li"}, click("Add guest")]
CLIP = {"css": "#clip"}
PLAY = click("Play")

ACTIONS = {
    "open goes to another page": (
        "looks.html",
        [{"do": "open", "path": "/forms.html${query}"}, *ADD_BO, text("#list", contains="Bo Li")],
    ),
    "click and fill": ("forms.html", [*ADD_BO, text("#list li", equals="Bo Li")]),
    "click at a place inside": (
        "forms.html",
        [{"do": "click", "target": {"role": "slider"}, "at": {"x": 0.75, "y": 0.5}}, SAYS | {"equals": "at 75 %"}],
    ),
    "dblclick": ("forms.html", [{"do": "dblclick", "target": button("Open twice")}, SAYS | {"equals": "opened"}]),
    "right_click": (
        "forms.html",
        [{"do": "right_click", "target": button("Options here")}, SAYS | {"equals": "context menu"}],
    ),
    "hover": (
        "forms.html",
        [{"do": "hover", "target": css("#more")}, {"expect": "visible", "target": {"text": "Hidden menu"}}],
    ),
    "type into a field": (
        "forms.html",
        [{"do": "type", "target": {"label": "Notes"}, "text": "hello"}, text("#length", number={"equals": 5})],
    ),
    "type where the focus is": (
        "forms.html",
        [{"do": "click", "target": css("#notes")}, {"do": "type", "text": "hey"}, text("#length", equals="3")],
    ),
    "press in a field": (
        "forms.html",
        [{"do": "press", "target": {"label": "Notes"}, "key": "Control+Enter"}, SAYS | {"equals": "sent by key"}],
    ),
    "press anywhere": ("forms.html", [{"do": "press", "key": "Escape"}, SAYS | {"equals": "escaped"}]),
    "select by label": (
        "forms.html",
        [
            {"do": "select", "target": {"label": "Room"}, "option": "Large room"},
            {"expect": "value", "target": {"label": "Room"}, "equals": "l"},
        ],
    ),
    "select by value": (
        "forms.html",
        [
            {"do": "select", "target": css("#room"), "option": "l"},
            {"expect": "value", "target": css("#room"), "equals": "Large room"},
        ],
    ),
    "check": (
        "forms.html",
        [
            {"do": "check", "target": {"role": "checkbox", "name": "I agree"}},
            {"expect": "enabled", "target": button("Send")},
        ],
    ),
    "uncheck a box hidden behind its label": (
        "forms.html",
        [
            {"do": "check", "target": {"label": "Dark mode"}},
            {"expect": "checked", "target": css("#dark")},
            {"do": "uncheck", "target": {"label": "Dark mode"}},
            {"expect": "unchecked", "target": css("#dark")},
        ],
    ),
    "drag": (
        "forms.html",
        [
            {"do": "drag", "target": css("#card"), "to": css("#done")},
            {"expect": "count", "target": css("#done #card"), "equals": 1},
        ],
    ),
    "upload of content": (
        "forms.html",
        [
            {"do": "upload", "target": {"label": "Attach"}, "name": "a.csv", "content": "x,y"},
            text("#attached", equals="a.csv text/csv x,y"),
        ],
    ),
    "upload of media through a chooser": (
        "forms.html",
        [
            {"do": "upload", "target": button("Choose picture"), "media": "png"},
            text("#attached", equals="sample.png image/png true"),
        ],
    ),
    "scroll the page down": (
        "looks.html",
        [{"do": "scroll", "to": "bottom"}, {"expect": "in_viewport", "target": css("#far")}],
    ),
    "scroll by px": (
        "looks.html",
        [{"do": "scroll", "by": 1800}, {"expect": "in_viewport", "target": {"text": "Far below"}}],
    ),
    "scroll inside an element": (
        "looks.html",
        [
            {"do": "scroll", "target": css("#scroller"), "to": "bottom"},
            {
                "expect": "box",
                "target": css("#end"),
                "relation": "inside",
                "of": css("#scroller"),
                "tolerance_px": 40,
            },
        ],
    ),
    "scroll into view": (
        "looks.html",
        [{"do": "scroll", "target": css("#far")}, {"expect": "in_viewport", "target": css("#far")}],
    ),
    "viewport": (
        "looks.html",
        [{"do": "viewport", "width": 390, "height": 800}, {"expect": "visible", "target": {"text": "Phone menu"}}],
    ),
    "reload": ("effects.html", [click("Save draft"), {"do": "reload"}, text("#saved", equals="Plan A")]),
    "back": (
        "effects.html",
        [
            {"do": "click", "target": {"role": "link", "name": "Settings"}},
            text("#view", equals="Settings"),
            {"do": "back"},
            text("#view", equals="Home"),
        ],
    ),
    "clear_storage": (
        "effects.html",
        [
            click("Save draft"),
            text("#saved", equals="Plan A"),
            {"do": "clear_storage"},
            {"do": "reload"},
            text("#saved", equals="nothing saved"),
        ],
    ),
    "wait": ("forms.html", [*ADD_BO, {"do": "wait", "ms": 300}, text("#list li", equals="Bo Li", within_ms=1)]),
    "answer_dialogs": (
        "effects.html",
        [{"do": "answer_dialogs", "accept": False}, click("Delete"), text("#answer", equals="kept")],
    ),
    "answer_dialogs with text": (
        "effects.html",
        [{"do": "answer_dialogs", "accept": True, "text": "Neo"}, click("Rename"), text("#named", equals="Neo")],
    ),
    "dialogs are accepted by default": ("effects.html", [click("Delete"), text("#answer", equals="deleted")]),
    "clock": ("effects.html", [{"do": "clock", "advance_ms": 300_000}, text("#clock", number={"equals": 5})]),
    "remember a count": (
        "forms.html",
        [
            {"do": "remember", "target": css("#list li"), "as": "n", "what": "count"},
            *ADD_BO,
            {"expect": "count", "target": css("#list li", has_text="Bo Li"), "equals": "${n} + 1"},
        ],
    ),
    "remember a number and compare": (
        "forms.html",
        [
            {"do": "remember", "target": css("#length"), "as": "old", "what": "number"},
            {"do": "type", "target": css("#notes"), "text": "ab"},
            {"do": "remember", "target": css("#length"), "as": "new", "what": "number"},
            {"expect": "compare", "left": "${old}", "plus": 2, "relation": "equals", "right": "${new}"},
        ],
    ),
    "remember a text": (
        "looks.html",
        [
            {"do": "remember", "target": css("#total"), "as": "t", "what": "text"},
            {"expect": "compare", "left": "${t}", "relation": "equals", "right": "Total: $1,234.50 for 3 guests"},
        ],
    ),
    "remember a value": (
        "forms.html",
        [
            {"do": "select", "target": css("#room"), "option": "l"},
            {"do": "remember", "target": css("#room"), "as": "v", "what": "value"},
            {"expect": "compare", "left": "${v}", "relation": "equals", "right": "l"},
        ],
    ),
    "remember an attribute": (
        "looks.html",
        [
            {"do": "remember", "target": css("#link"), "as": "a", "what": "attribute", "attribute": "href"},
            {"expect": "compare", "left": "${a}", "relation": "not_equals", "right": "/"},
        ],
    ),
    "remember a box": (
        "looks.html",
        [
            {"do": "remember", "target": css("#two"), "as": "b", "what": "box"},
            {"expect": "compare", "left": "${b.width}", "relation": "greater", "right": 250},
        ],
    ),
    "remember a time": (
        "effects.html",
        [
            {"do": "remember", "target": CLIP, "as": "t", "what": "time"},
            PLAY,
            {"expect": "media", "target": CLIP, "time": {"at_least": "${t} + 0.2"}},
        ],
    ),
    "a covered button cannot be clicked": ("forms.html", [click("Covered"), SAYS | {"equals": "uncovered"}]),
}

CHECKS = {
    "text equals": ("looks.html", [text("#total", equals="Total: $1,234.50   for 3 guests")]),
    "text matches": ("looks.html", [text("#total", matches=r"\$[\d,]+\.\d\d")]),
    "text not_contains": ("looks.html", [text("#total", not_contains="draft")]),
    "text number": ("looks.html", [text("#total", number={"equals": 1234, "tolerance": 1})]),
    "value": ("forms.html", [{"do": "select", "target": css("#room"), "option": "l"}, {"expect": "value", "target": {"label": "Room"}, "contains": "Large"}]),
    "count": ("forms.html", [*ADD_BO, *ADD_BO, {"expect": "count", "target": {"role": "listitem", "has_text": "Bo Li", "within": {"role": "list", "name": "Guests"}}, "equals": 2}]),
    "visible": ("looks.html", [{"expect": "visible", "target": css("#fade")}]),
    "hidden": ("forms.html", [click("Covered"), {"expect": "hidden", "target": css(".cover")}]),
    "enabled": ("forms.html", [{"do": "check", "target": css("#terms")}, {"expect": "enabled", "target": css("#send")}]),
    "disabled": ("forms.html", [{"expect": "disabled", "target": css("#send")}, {"do": "check", "target": css("#terms")}, {"expect": "enabled", "target": css("#send")}]),
    "focused": ("forms.html", [*ADD_BO, {"expect": "focused", "target": {"placeholder": "Full name"}}]),
    "checked": ("forms.html", [click("Bold"), {"expect": "checked", "target": button("Bold")}]),
    "unchecked": ("forms.html", [{"expect": "unchecked", "target": css("#terms")}, {"expect": "hidden", "target": css(".cover")}]),
    "in_viewport": ("looks.html", [{"do": "scroll", "to": "bottom"}, {"expect": "in_viewport", "target": css("#far")}]),
    "url": ("effects.html", [{"expect": "url", "equals": "/effects.html"}]),
    "url matches": ("effects.html", [{"do": "click", "target": {"text": "Settings"}}, {"expect": "url", "matches": "html#settings$"}]),
    "attribute": ("looks.html", [{"expect": "attribute", "target": css("#link"), "attribute": "href", "contains": "guide"}]),
    "attribute is there": ("looks.html", [{"expect": "attribute", "target": css("#link"), "attribute": "title"}]),
    "style as a colour": ("looks.html", [{"expect": "style", "target": css("#badge"), "property": "background-color", "equals": "#00aa55"}]),
    "style as a number": ("looks.html", [{"expect": "style", "target": css("#badge"), "property": "border-top-left-radius", "number": {"at_least": 6}}]),
    "box left_of": ("looks.html", [{"expect": "box", "target": css("#one"), "relation": "left_of", "of": css("#two")}]),
    "box right_of": ("looks.html", [{"expect": "box", "target": css("#two"), "relation": "right_of", "of": css("#one")}]),
    "box above": ("looks.html", [{"expect": "box", "target": css("#one"), "relation": "above", "of": css("#three")}, {"expect": "box", "target": css("#one"), "relation": "aligned_top", "of": css("#two")}]),
    "box below and aligned_left": ("looks.html", [{"expect": "box", "target": css("#three"), "relation": "below", "of": css("#two")}, {"expect": "box", "target": css("#three"), "relation": "aligned_left", "of": css("#one")}, {"expect": "box", "target": css("#two"), "width": {"equals": 300}}]),
    "box inside": ("looks.html", [{"expect": "box", "target": css("#chip"), "relation": "inside", "of": css("#frame")}]),
    "box overlaps": ("looks.html", [{"expect": "box", "target": css("#chip"), "relation": "overlaps", "of": css("#frame")}]),
    "box same_size": ("looks.html", [{"expect": "box", "target": css("#one"), "relation": "same_size", "of": css("#three")}, {"expect": "box", "target": css("#two"), "height": {"at_least": 80}}]),
    "box wider_than": ("looks.html", [{"expect": "box", "target": css("#two"), "relation": "wider_than", "of": css("#one")}]),
    "box taller_than": ("looks.html", [{"expect": "box", "target": css("#two"), "relation": "taller_than", "of": css("#three")}]),
    "order by text": ("looks.html", [{"expect": "order", "target": css("#names li"), "by": "text", "direction": "ascending"}]),
    "order by number": ("looks.html", [{"expect": "order", "target": css("#prices li"), "by": "number", "direction": "descending"}]),
    "order by date": ("looks.html", [{"expect": "order", "target": css("#days li"), "by": "date", "direction": "ascending"}]),
    "each": ("looks.html", [{"expect": "each", "target": css("#names li"), "matches": "^[A-Za-z]{2,3}$"}]),
    "storage": ("effects.html", [click("Save draft"), {"expect": "storage", "area": "local", "key": "draft", "contains": "Plan"}]),
    "storage of the session": ("effects.html", [click("Save draft"), {"expect": "storage", "area": "session", "key": "tab"}, {"expect": "storage", "area": "local", "key": "tab", "absent": True}]),
    "download": ("effects.html", [{"expect": "download", "after": click("Export"), "name_matches": r"\.csv$", "content_contains": "Ana,31"}]),
    "download before": ("effects.html", [click("Export"), {"expect": "download", "content_matches": r"(?m)^Ana,\d+$"}]),
    "dialog": ("effects.html", [click("Delete"), {"expect": "dialog", "contains": "3 guests"}]),
    "console_clean": ("effects.html", [click("Break"), {"do": "wait", "ms": 50}, {"expect": "console_clean"}]),
    "media playing": ("effects.html", [PLAY, {"expect": "media", "target": CLIP, "state": "playing"}]),
    "media paused": ("effects.html", [PLAY, {"expect": "media", "target": CLIP, "time": {"at_least": 0.1}}, click("Pause"), {"expect": "media", "target": CLIP, "state": "paused"}]),
    "media ended": ("effects.html", [click("To the end"), {"expect": "media", "target": CLIP, "state": "ended", "within_ms": 5000}]),
    "media shows frames": ("effects.html", [PLAY, {"expect": "media", "target": CLIP, "state": "has_frames"}]),
    "media has audio": ("effects.html", [PLAY, {"expect": "media", "target": CLIP, "state": "has_audio"}]),
    "media facts": ("effects.html", [{"expect": "media", "target": CLIP, "duration": {"equals": 2, "tolerance": 0.2}, "source_contains": "clip.mp4"}]),
    "media volume": ("effects.html", [click("Half volume"), {"expect": "media", "target": CLIP, "volume": {"equals": 0.5}, "muted": True}]),
    "media rate": ("effects.html", [click("Fast"), {"expect": "media", "target": CLIP, "rate": {"equals": 2}}]),
    "canvas_changed": ("looks.html", [{"expect": "canvas_changed", "target": css("#art"), "during": click("Paint")}]),
    "contrast": ("looks.html", [{"expect": "contrast", "target": css("#badge"), "at_least": 3}]),
    "compare": ("looks.html", [{"do": "remember", "target": css("#total"), "as": "t", "what": "number"}, {"expect": "compare", "left": "${t}", "relation": "greater", "right": 1200}]),
    "request": ("effects.html", [click("Load more"), {"expect": "request", "url_contains": "more.json", "method": "GET"}]),
}  # fmt: skip


@pytest.mark.parametrize("page, steps", [*ACTIONS.values(), *CHECKS.values()], ids=[*ACTIONS, *CHECKS])
def test_holds_on_the_right_application_and_fails_on_the_wrong_one(run, page, steps):
    right = run(page, steps, inputs={"query": ""} if "${query}" in str(steps) else None)
    assert (right.outcome, right.reason) == ("held", "")
    inputs = {"query": "?wrong"} if "${query}" in str(steps) else None
    wrong = run(f"{page}?wrong", steps, inputs=inputs, patience=IMPATIENT)
    assert wrong.outcome == "failed", wrong
    assert wrong.reason.startswith(f"Step {wrong.failed_step}, ")
    assert [step.ok for step in wrong.steps] == [True] * wrong.failed_step + [False]
