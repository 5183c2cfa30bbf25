"""Boxes, styles and distances of elements."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator

from evaluator.browser_tools.call import tool_call
from evaluator.browser_tools.results import Box, Distance, Measured, Measurement
from evaluator.replay.inside import READ_MS, is_seen
from evaluator.replay.stage import Stage
from evaluator.witness import Target

_MEASURE = """element => {
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  const pen = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const rgba = colour => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3])).concat(1);
  const layers = [];
  let picture = false;
  for (let at = element; at; at = at.parentElement || (at.getRootNode() || {}).host) {
    const own = getComputedStyle(at);
    if (own.backgroundImage !== 'none') { picture = true; break; }
    const colour = rgba(own.backgroundColor);
    layers.push(colour);
    if (colour[3] === 1) break;
  }
  const ground = layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  const light = colour => colour.slice(0, 3).map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light(over(rgba(style.color), ground)), light(ground)];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const middle = [box.x + box.width / 2, box.y + box.height / 2];
  const inWindow = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
  const top = inWindow ? element.getRootNode().elementFromPoint(...middle) : null;
  const free = !top || top === element || element.contains(top) || top.contains(element);
  const name = e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + [...e.classList].map(c => '.' + c).join('');
  return {
    text: (element.innerText || element.value || element.getAttribute('aria-label') || '').slice(0, 200),
    box: {x: Math.round(box.x), y: Math.round(box.y),
          width: Math.round(box.width), height: Math.round(box.height)},
    in_window: inWindow,
    cut: element.clientWidth > 0 && (element.scrollWidth > element.clientWidth + 1
      || element.scrollHeight > element.clientHeight + 1) && style.overflow !== 'visible',
    covered_by: free ? null : name(top).slice(0, 200),
    look: {
      color: style.color, background: style.backgroundColor,
      contrast: picture ? null : Math.round(contrast * 100) / 100,
      font_family: style.fontFamily, font_size: style.fontSize, font_weight: style.fontWeight,
      border: style.border, radius: style.borderRadius, opacity: style.opacity, display: style.display,
      position: style.position, cursor: style.cursor, overflow: style.overflow,
    },
  };
}"""


@tool_call()
def measure(stage: Stage, first: Target, second: Target | None = None) -> Measurement:
    """One element's box and look; of two, also how they lie to each other. Raises NotShown."""
    one = _measured(stage.present(first), first)
    if second is None:
        return Measurement(first=one)
    other = _measured(stage.present(second), second)
    return Measurement(first=one, second=other, distance=distance(one.box, other.box))


def _measured(found: Locator, target: Target) -> Measured:
    seen: dict[str, Any] = found.evaluate(_MEASURE, timeout=READ_MS)
    wanted = target.model_dump_json(exclude_defaults=True)
    return Measured(target=wanted, visible=is_seen(found), **seen)


def distance(first: Box, second: Box) -> Distance:
    """How the second box lies to the first."""
    gap_x = max(first.x, second.x) - min(first.right, second.right)
    gap_y = max(first.y, second.y) - min(first.bottom, second.bottom)
    return Distance(
        gap_x=gap_x,
        gap_y=gap_y,
        left_edges=second.x - first.x,
        top_edges=second.y - first.y,
        centres_x=round(second.x + second.width / 2 - first.x - first.width / 2),
        centres_y=round(second.y + second.height / 2 - first.y - first.height / 2),
        overlap=gap_x < 0 and gap_y < 0,
        inside=first.x <= second.x
        and first.y <= second.y
        and first.right >= second.right
        and first.bottom >= second.bottom,
    )
