"""Text that is in the page's tree but that no user can see: off screen, transparent, tiny, clipped or camouflaged."""

from __future__ import annotations

from evaluator.browser import AppPage

MARK = "  [a user cannot see this]"
_LIST = """() => {
  const found = [];
  const opaque = colour => !/^(transparent|rgba\\(.*,\\s*0\\))$/.test(colour);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== 'none') return null;
      if (opaque(style.backgroundColor)) return style.backgroundColor;
    }
    return 'rgb(255, 255, 255)';
  };
  const clipped = element => {
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (/inset\\((50|100)%/.test(style.clipPath)) return true;
      if (style.position === 'absolute' && /^rect\\(/.test(style.clip)) return true;
      if (style.overflow !== 'visible' && at.clientWidth * at.clientHeight <= 4) return true;
    }
    return false;
  };
  const width = Math.max(document.documentElement.scrollWidth, innerWidth);
  const unseen = (element, box) => {
    const style = getComputedStyle(element);
    return !element.checkVisibility({opacityProperty: true, visibilityProperty: true})
      || box.width * box.height <= 1
      || box.right + scrollX <= 0 || box.bottom + scrollY <= 0 || box.left + scrollX >= width
      || parseFloat(style.fontSize) < 4 || !opaque(style.color) || style.color === ground(element)
      || clipped(element);
  };
  const walker = document.createTreeWalker(document.body || document.documentElement, NodeFilter.SHOW_TEXT);
  for (let looked = 0; looked < 20000 && found.length < 100 && walker.nextNode(); looked++) {
    const text = walker.currentNode.textContent.replace(/\\s+/g, ' ').trim();
    const element = walker.currentNode.parentElement;
    if (text.length < 3 || !element || element.closest('script, style, noscript, template, option, svg')) continue;
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    if (unseen(element, range.getBoundingClientRect())) found.push(text.slice(0, 300));
  }
  for (const element of document.querySelectorAll('[aria-label], img[alt]')) {
    const text = (element.getAttribute('aria-label') || element.getAttribute('alt') || '').trim();
    if (found.length >= 120 || text.length < 3) continue;
    const box = element.getBoundingClientRect();
    if (box.right + scrollX <= 0 || box.bottom + scrollY <= 0 || box.left + scrollX >= width) {
      found.push(text.slice(0, 300));
    }
  }
  return found;
}"""


def unseen_texts(visit: AppPage) -> list[str]:
    """Texts of the page no user can see, in document order, 120 at most. Read in the page's own world."""
    found = visit.page.evaluate(_LIST)
    return [str(text) for text in found] if isinstance(found, list) else []


def mark_unseen(snapshot: str, unseen: list[str]) -> str:
    """The snapshot with every line marked that holds such a text."""
    beginnings = [text[:60] for text in unseen]
    lines = []
    for line in snapshot.splitlines():
        folded = " ".join(line.replace('\\"', '"').split())
        lines.append(line + MARK if any(text in folded for text in beginnings) else line)
    return "\n".join(lines)
