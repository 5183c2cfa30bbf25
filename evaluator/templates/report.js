(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Pictures wait in JSON blocks and are shown when they come near the window, so that the page opens at once.
  const show = (image) => {
    const block = document.getElementById("picture-" + image.dataset.picture);
    if (block && !image.getAttribute("src")) image.src = JSON.parse(block.textContent);
  };
  const near = new IntersectionObserver((seen) => {
    for (const entry of seen) {
      if (!entry.isIntersecting) continue;
      show(entry.target);
      near.unobserve(entry.target);
    }
  }, { rootMargin: "600px" });
  all("img[data-picture]").forEach((image) => near.observe(image));
  addEventListener("beforeprint", () => {
    all("img[data-picture]").filter((image) => !image.closest("details:not([open])")).forEach(show);
  });

  // The contents list marks where the reader is.
  const links = new Map(all(".contents a").map((link) => [link.hash.slice(1), link]));
  const here = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(target.id)?.setAttribute("aria-current", "location");
    }
  }, { rootMargin: "-20% 0px -75% 0px" });
  all("main > section").forEach((section) => here.observe(section));

  // An address of a finding opens it.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    target.scrollIntoView({ block: "start" });
    (target.querySelector(":scope > summary") || target).focus({ preventScroll: true });
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();

  const toggleAll = (box) => {
    const findings = all("details.finding", box);
    const open = !findings.every((finding) => finding.open);
    findings.forEach((finding) => { finding.open = open; });
    return open;
  };

  const large = document.getElementById("large");
  const keys = document.getElementById("keys");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) {
      if (event.target === large || event.target === keys) event.target.close();
      return;
    }
    if (button.dataset.act === "keys") keys.showModal();
    if (button.dataset.act === "all") button.firstChild.textContent = toggleAll(button.closest(".case")) ? "Close" : "Open";
    const image = button.matches(".picture") && button.querySelector("img");
    if (!image) return;
    show(image);
    const picture = document.getElementById("large-picture");
    picture.src = image.src;
    picture.alt = image.alt;
    document.getElementById("large-caption").textContent = image.alt;
    large.showModal();
  });

  // Single-letter keys, which can be switched off in the list of keys.
  const step = (selector, by) => {
    const stops = all(selector);
    const held = document.activeElement.closest(selector);
    let at = stops.indexOf(held);
    if (at < 0) {
      at = stops.findIndex((stop) => stop.getBoundingClientRect().top > 60);
      if (at < 0) at = stops.length;
      if (by > 0) at -= 1;
    }
    const next = stops[Math.max(0, Math.min(stops.length - 1, at + by))];
    if (!next) return;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "start", behavior: "instant" });
  };
  const column = (name) => document.getElementById("column-" + name).click();
  const acts = {
    j: () => step(".criterion", 1),
    k: () => step(".criterion", -1),
    n: () => step(".case", 1),
    p: () => step(".case", -1),
    o: () => { const held = document.activeElement.closest(".criterion"); if (held) toggleAll(held); },
    v: () => document.getElementById("verdicts").scrollIntoView(),
    1: () => column("judge"),
    2: () => column("card"),
    3: () => column("witnessed"),
    "?": () => keys.showModal(),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (!document.getElementById("keys-on").checked || event.target.matches("input[type=text], textarea, select")) return;
    const act = Object.hasOwn(acts, event.key) && acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
