(() => {
  "use strict";
  // Asks the server for this page every few seconds; what changed is put in place, and the reader's place is kept.
  const EVERY_MS = 3000;
  let tag = null;

  const keep = () => ({
    y: scrollY,
    open: new Map([...document.querySelectorAll("main details")].map((box, at) => [box.id || at, box.open])),
    inputs: [...document.querySelectorAll("main input")].map((box) => [box.value, box.checked]),
    focus: document.activeElement?.closest("main [id]")?.id || "",
    beside: [...document.querySelectorAll("main .compare")].map((box) => box.classList.contains("beside")),
  });
  const restore = (kept) => {
    [...document.querySelectorAll("main details")].forEach((box, at) => {
      const was = kept.open.get(box.id || at);
      if (was !== undefined) box.open = was;
    });
    [...document.querySelectorAll("main input")].forEach((box, at) => {
      if (kept.inputs[at]) [box.value, box.checked] = kept.inputs[at];
    });
    [...document.querySelectorAll("main .compare")].forEach((box, at) => box.classList.toggle("beside", kept.beside[at] === true));
    dispatchEvent(new Event("cdb-content"));
    if (kept.focus) document.getElementById(kept.focus)?.focus({ preventScroll: true });
    scrollTo({ top: kept.y, behavior: "instant" });
  };
  // This script runs before the other one changes anything, so this is the content as the server sent it.
  let drawn = document.querySelector("main").innerHTML;
  const playing = () => [...document.querySelectorAll("audio, video")].some((media) => !media.paused);
  const look = async () => {
    try {
      const address = new URL(location.href);
      address.hash = "";
      const answer = await fetch(address, { headers: tag ? { "If-None-Match": tag } : {} });
      if (answer.status !== 200 || playing()) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      tag = answer.headers.get("ETag");
      if (!fresh || fresh.innerHTML === drawn) return;
      const kept = keep();
      drawn = fresh.innerHTML;
      document.querySelector("main").replaceChildren(...document.adoptNode(fresh).childNodes);
      restore(kept);
    } catch { /* the server has ended or is busy: the page stays as it is */ }
  };
  setInterval(look, EVERY_MS);
})();
