"""What a user can see, asked in a world of its own: a page that redefines what its elements answer deceives nobody.

It is a selector engine of ours, since Playwright runs those (with `content_script`) beside its own and outside the
page's world; `Locator.evaluate` would run among the page's own, possibly changed, built-ins.
"""

from __future__ import annotations

from playwright.sync_api import Locator, Playwright

_ENGINE = "cdb-seen"
_SCRIPT = """(() => {
  const seen = element => {
    if (['OPTION', 'OPTGROUP', 'TITLE'].includes(element.tagName)) return true;
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) return false;
    const box = element.getBoundingClientRect();
    if (box.width * box.height <= 1) return false;
    return box.right + scrollX > 0 && box.bottom + scrollY > 0;
  };
  return {
    query: root => seen(root) ? root : null,
    queryAll: root => seen(root) ? [root] : [],
  };
})()"""


def teach(driver: Playwright) -> None:
    """Make `only_seen` known to every context that browsers of this driver open from now on. Once for each driver."""
    driver.selectors.register(_ENGINE, _SCRIPT, content_script=True)


def only_seen(found: Locator) -> Locator:
    """Those of the matches that a user could see, scrolling if need be: with a box larger than 1 px, not transparent
    or hidden by themselves or an ancestor, and not left of or above the page."""
    return found.locator(f"{_ENGINE}=now")


def is_seen(found: Locator) -> bool:
    """Whether a user could see the one element that `found` stands for; False when it is gone."""
    return only_seen(found).count() > 0
