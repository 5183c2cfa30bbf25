"""Media of `plant-shop`: the owner's notes, drawn on pictures of the shop and of its cart drawer."""

from __future__ import annotations

import base64

from harness.sample.media.studio import Studio

DRAWER_WIDTH = 410

NOTES = """
<style>
  body { margin: 0; width: 1790px; height: 860px; background: #d9d6cf; position: relative;
         font: 600 18px/1.3 "Comic Neue", "Liberation Sans", Arial, sans-serif; color: #3a2a10; }
  img { position: absolute; top: 30px; border-radius: 6px; box-shadow: 0 4px 18px #0003; }
  svg { position: absolute; inset: 0; }
  .note { position: absolute; padding: 13px 16px; background: #ffe98a; box-shadow: 2px 5px 12px #0004; }
  .note b { color: #b3241f; }
</style>
<img src="{shop}" style="left:30px" width="1280"><img src="{drawer}" style="left:1350px" width="410">
<svg width="1790" height="860" fill="none" stroke="#d6302b" stroke-width="4.5" stroke-linecap="round"
  stroke-linejoin="round">
  <path d="M309 336c14-18 48-19 56 2 7 22-14 40-34 38-24-2-38-22-24-42" />
  <path d="M327 346c-6-8 6-15 9-4 3-11 16-5 10 4l-10 12Z" stroke-width="3" fill="#d6302b" />
  <path d="M432 414C404 404 388 388 372 368" /><path d="M390 370l-19-4 4 20" />
  <path d="M985 37h128c18 0 18 44 0 44H985c-18 0-18-44 0-44Z" stroke-dasharray="13 9" />
  <path d="M1006 186C1010 150 1024 122 1040 92" /><path d="M1024 103l17-13 6 20" />
  <path d="M1368 97c120-8 280-8 376 0" stroke-dasharray="13 9" />
  <path d="M1606 262C1620 214 1618 160 1604 106" /><path d="M1595 124l9-19 16 13" />
  <path d="M1372 562h366c9 0 9 54 0 54h-366c-9 0-9-54 0-54Z" stroke-dasharray="13 9" />
  <path d="M1560 516c6 14 6 26 2 40" /><path d="M1549 543l12 15 14-12" />
</svg>
<div class="note" style="left:436px;top:392px;width:238px;transform:rotate(-1.5deg)">
  <b>1</b> heart here, top right of <u>every</u> picture. Filled when saved.</div>
<div class="note" style="left:874px;top:188px;width:276px;transform:rotate(1deg)">
  <b>2</b> “Saved” button goes here, left of the cart, with how many are saved</div>
<div class="note" style="left:1395px;top:246px;width:318px;transform:rotate(-1deg)">
  <b>3</b> bar on top of the cart: how much is still missing. Delivery is free from <u>€60.00</u> of plants
  (exactly €60.00 counts!)</div>
<div class="note" style="left:1395px;top:412px;width:318px;transform:rotate(1deg)">
  <b>4</b> promo code field + “Apply” here. Code is <u>GREEN15</u>: 15 % off the plants,
  <u>not</u> off the delivery</div>
"""


def make(studio: Studio) -> None:
    """Write the annotated screenshot: the shop as it opens and, beside it, the cart with one plant in it."""
    with studio.page() as page:
        page.goto(studio.url)
        shop = page.screenshot()
        page.get_by_role("button", name="Add Monstera to cart").click()
        page.get_by_role("button", name="Cart 1").click()
        drawer = page.screenshot(clip={"x": 1280 - DRAWER_WIDTH, "y": 0, "width": DRAWER_WIDTH, "height": 800})
    with studio.page(1790, 860) as page:
        page.set_content(NOTES.replace("{shop}", _inline(shop)).replace("{drawer}", _inline(drawer)))
        raw = studio.scratch / "board.png"
        page.screenshot(path=str(raw))
    studio.shrink(raw, studio.annotations / "shop-annotated.png")


def _inline(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()
