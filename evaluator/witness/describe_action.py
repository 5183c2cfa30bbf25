"""An action of a witness as an order to a person."""

from __future__ import annotations

from evaluator.witness import actions as a
from evaluator.witness.actions import Action
from evaluator.witness.nouns import describe_target, quoted, what_is_read


def describe_action(step: Action) -> str:  # noqa: PLR0911, PLR0912 - one line for each word of the language
    """What to do, as an order."""
    match step:
        case a.Open():
            return f"Open {step.path}"
        case a.Click():
            verb = {"click": "Click", "dblclick": "Double-click", "right_click": "Right-click"}
            spot = f" at {step.at.x:.0%} of its width and {step.at.y:.0%} of its height" if step.at else ""
            held = f" holding {' and '.join(step.holding)}" if step.holding else ""
            return f"{verb.get(step.do, 'Point at')} {describe_target(step.target)}{spot}{held}"
        case a.Fill():
            if not step.text:
                return f"Empty {describe_target(step.target)}"
            return f"Fill {describe_target(step.target)} with {quoted(step.text)}"
        case a.Type():
            return f"Type {quoted(step.text)}" + (f" into {describe_target(step.target)}" if step.target else "")
        case a.Press():
            often = f" {step.times} times" if step.times > 1 else ""
            return f"Press {step.key}{often}" + (f" in {describe_target(step.target)}" if step.target else "")
        case a.Select():
            return f"Choose {quoted(step.option)} in {describe_target(step.target)}"
        case a.SetChecked():
            return f"{'Check' if step.do == 'check' else 'Uncheck'} {describe_target(step.target)}"
        case a.Drag():
            return f"Drag {describe_target(step.target)} to {describe_target(step.to)}"
        case a.Upload():
            what = f"the file {quoted(step.name)}" if step.name else f"a sample {step.media} file"
            return f"Give {what} to {describe_target(step.target)}"
        case a.Scroll():
            what = describe_target(step.target) if step.target else "the page"
            if step.to is None and step.by is None:
                return f"Scroll {what} into view"
            return f"Scroll {what} " + (f"to the {step.to}" if step.to else f"by {step.by} px")
        case a.SetViewport():
            return f"Make the window {step.width} × {step.height}"
        case a.Simple():
            return _SIMPLE[step.do]
        case a.Wait():
            return f"Wait {step.ms} ms"
        case a.WaitFor():
            until = "appears" if step.state == "visible" else "is gone"
            return f"Wait until {describe_target(step.target)} {until}"
        case a.Emulate():
            return _emulated(step)
        case a.AnswerDialogs():
            how = "Accept" if step.accept else "Dismiss"
            return f"{how} dialogs from here on" + (f", answering {quoted(step.text)}" if step.text else "")
        case a.Clock():
            return f"Let the clock run on by {_span(step.advance_ms)}"
        case a.Remember():
            return f"Remember the {what_is_read(step)} of {describe_target(step.target)} as “{step.as_}”"


_SIMPLE = {
    "reload": "Reload the page",
    "back": "Go back",
    "forward": "Go forward",
    "clear_storage": "Clear the stored data",
}


def _emulated(step: a.Emulate) -> str:
    said = [f"a {step.color_scheme} colour scheme"] if step.color_scheme else []
    if step.reduced_motion is not None:
        said.append("reduced motion" if step.reduced_motion else "full motion")
    if step.media:
        said.append("paper" if step.media == "print" else "a screen")
    if step.offline is not None:
        said.append("no network" if step.offline else "a network again")
    return f"Show the page with {' and '.join(said)}"


def _span(ms: int) -> str:
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000)):
        if ms >= size and ms % size == 0:
            return f"{ms // size} {unit}"
    return f"{ms} ms"
