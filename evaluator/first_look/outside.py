"""Ways out of an application that leave no request to refuse: seen in the page, since nothing of them arrives.

The network is what keeps them in: neither application nor browser has one. Here they are only listed.
"""

from __future__ import annotations

from typing import Any

from evaluator.browser import AppPage
from evaluator.browser_tools.call import tool_call
from evaluator.first_look.facts import OutsideAsk
from evaluator.replay.stage import Stage

_KEPT = "__cdb_outside"
_NOTE = f"""(() => {{
  const asked = [];
  Object.defineProperty(window, '{_KEPT}', {{value: asked, enumerable: false}});
  const note = (kind, address) => {{ if (asked.length < 100) asked.push([kind, String(address).slice(0, 300)]); }};
  const wrap = (owner, name, look) => {{
    if (!owner || !owner[name]) return;
    owner[name] = new Proxy(owner[name], {{
      construct(target, given, self) {{ look(given); return Reflect.construct(target, given, self); }},
      apply(target, self, given) {{ look(given); return Reflect.apply(target, self, given); }},
    }});
  }};
  wrap(window, 'RTCPeerConnection', ([settings]) => {{
    const servers = (settings && settings.iceServers || []).flatMap(one => one.urls || one.url || []);
    for (const address of servers.length ? servers : ['no server']) note('webrtc', address);
  }});
  if (navigator.serviceWorker) {{
    wrap(navigator.serviceWorker, 'register', ([script]) => note('service_worker', script));
  }}
}})();"""
_READ = f"""() => {{
  const asked = [...(window.{_KEPT} || [])];
  for (const link of document.querySelectorAll('link[rel]')) {{
    for (const kind of ['dns-prefetch', 'preconnect', 'prefetch', 'prerender']) {{
      if (link.relList.contains(kind)) asked.push([kind, link.href.slice(0, 300)]);
    }}
  }}
  for (const link of document.querySelectorAll('a[ping]')) asked.push(['ping', link.ping.slice(0, 300)]);
  return asked.slice(0, 200);
}}"""


def watch_outside(visit: AppPage) -> None:
    """Begin to note; before the first page opens. A page can find out, so only visits of a first look do it."""
    visit.context.add_init_script(_NOTE)


@tool_call()
def outside(stage: Stage) -> list[OutsideAsk]:
    """What was asked for so far, each once, but for addresses of the application itself."""
    asked: Any = stage.page.evaluate(_READ)
    seen = {(str(kind), str(address)) for kind, address in asked}
    kept = [one for one in sorted(seen) if one[0] == "service_worker" or not stage.visit.is_own(one[1])]
    return [OutsideAsk.model_validate({"kind": kind, "address": address}) for kind, address in kept]
