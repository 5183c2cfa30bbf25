"""A drawing of a few kinds of shapes, as SVG (for pages and to download) and as PNG, from the same list.

Why not a plotting library: the same plot has to follow the page's light or dark colours, to be readable text for
search and screen readers, and to come out byte for byte the same again; a few shapes do all of it.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, Literal

from markupsafe import Markup, escape

from evaluator.report.visible import visible

COLOURS = {
    "paper": "#ffffff", "ink": "#1a1d21", "soft": "#59616b", "line": "#dfddd7", "pass": "#17609c", "span": "#a3c0d8",
    "partial": "#f2b632", "fail": "#f7d3c5", "fail-ink": "#a5320a", "none": "#e9e8e4",
}  # fmt: skip
"""Role → colour on paper. Pages give the same roles their own colours by class."""
FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
SCALE = 2
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class _Shape:
    kind: Literal["line", "rect", "circle", "text"]
    at: tuple[float, ...]
    role: str
    words: str = ""
    size: float = 1.0
    anchor: Anchor = "start"
    bold: bool = False


@dataclass
class Drawing:
    """Shapes in pixels; `title` and `about` say in words what is drawn."""

    width: int
    height: int
    title: str
    about: str
    _shapes: list[_Shape] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, role: str = "line", size: float = 1.0) -> None:
        self._shapes.append(_Shape("line", (x1, y1, x2, y2), role, size=size))

    def rect(self, x: float, y: float, width: float, height: float, role: str) -> None:
        self._shapes.append(_Shape("rect", (x, y, width, height), role))

    def circle(self, x: float, y: float, radius: float, role: str) -> None:
        self._shapes.append(_Shape("circle", (x, y, radius), role))

    def text(
        self, x: float, y: float, words: str, role: str = "ink", *, size: float = 13, anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:  # fmt: skip
        """`y` is the base line."""
        self._shapes.append(_Shape("text", (x, y), role, visible(words), size, anchor, bold))

    def svg(self, *, alone: bool) -> Markup:
        """`alone`: a file of its own, on white paper; else a part of a page that gives the roles their colours."""
        space = Markup(' xmlns="http://www.w3.org/2000/svg"') if alone else Markup("")
        head = Markup(
            '<svg class="plot"{} viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}"'
            ' font-family="{}">'
        ).format(
            space, self.width, self.height, self.width, self.height, visible(f"{self.title}. {self.about}"), FONT
        )
        paper = [_Shape("rect", (0, 0, self.width, self.height), "paper")] if alone else []
        return head + Markup("").join(_as_svg(shape) for shape in [*paper, *self._shapes]) + Markup("</svg>")

    def png(self) -> bytes:
        """At twice the size, on white paper."""
        from PIL import Image, ImageDraw

        image = Image.new("RGB", (self.width * SCALE, self.height * SCALE), COLOURS["paper"])
        canvas = ImageDraw.Draw(image)
        for shape in self._shapes:
            _paint(canvas, shape)
        stream = io.BytesIO()
        image.save(stream, "PNG")
        return stream.getvalue()


def _as_svg(shape: _Shape) -> Markup:
    at, role, colour = [f"{value:.1f}".removesuffix(".0") for value in shape.at], shape.role, COLOURS[shape.role]
    if shape.kind == "line":
        form = '<line class="s-{}" x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="{}"/>'
        return Markup(form).format(role, *at, colour, shape.size)
    if shape.kind == "rect":
        form = '<rect class="f-{}" x="{}" y="{}" width="{}" height="{}" fill="{}"/>'
        return Markup(form).format(role, *at, colour)
    if shape.kind == "circle":
        return Markup('<circle class="f-{}" cx="{}" cy="{}" r="{}" fill="{}"/>').format(role, *at, colour)
    weight = Markup(' font-weight="600"') if shape.bold else Markup("")
    form = '<text class="f-{}" x="{}" y="{}" font-size="{}" text-anchor="{}" fill="{}"{}>{}</text>'
    return Markup(form).format(role, *at, shape.size, shape.anchor, colour, weight, escape(shape.words))


def _paint(canvas: Any, shape: _Shape) -> None:
    at, colour = [value * SCALE for value in shape.at], COLOURS[shape.role]
    if shape.kind == "line":
        canvas.line(at, fill=colour, width=max(1, round(shape.size * SCALE)))
    elif shape.kind == "rect":
        x, y, width, height = at
        canvas.rectangle((x, y, x + max(width - 1, 0), y + max(height - 1, 0)), fill=colour)
    elif shape.kind == "circle":
        x, y, radius = at
        canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
    else:
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
        canvas.text(at, shape.words, fill=colour, font=_font(shape.size * SCALE, shape.bold), anchor=anchor)


def _font(size: float, bold: bool) -> Any:
    """DejaVu where it is installed, for the alphabets it has; else the face that comes with Pillow."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf", round(size * 0.95))
    except OSError:
        return ImageFont.load_default(size)
