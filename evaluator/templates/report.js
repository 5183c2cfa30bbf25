(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector, within = document) => within.querySelector(selector);

  // What a reader chose on one page holds on the next; where the browser keeps nothing, each page starts anew.
  const memory = {
    get(name) { try { return localStorage.getItem("cdb-report-" + name); } catch { return null; } },
    set(name, value) { try { localStorage.setItem("cdb-report-" + name, value); } catch { /* not kept */ } },
  };
  const chosen = ["judge", "card", "witnessed"].includes(memory.get("column")) && memory.get("column");
  if (chosen) one("#column-" + chosen).checked = true;
  if (memory.get("keys") === "off") one("#keys-on").checked = false;
  document.addEventListener("change", (event) => {
    if (event.target.name === "column") memory.set("column", event.target.value);
    if (event.target.id === "keys-on") memory.set("keys", event.target.checked ? "on" : "off");
    if (event.target.id === "differ") filter();
  });

  // An address of a part opens what it lies in.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || target === document.body) return;
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    target.scrollIntoView({ block: "start" });
    target.focus({ preventScroll: true });
  };
  addEventListener("hashchange", reveal);

  // Start and submission: the slider cuts the upper picture.
  const cut = (range) => range.closest(".compare").style.setProperty("--cut", range.value + "%");
  document.addEventListener("input", (event) => {
    if (event.target.matches(".compare input")) cut(event.target);
    if (event.target.id === "filter") filter();
  });

  // The table of verdicts: one tab stop, arrows inside; rows can be filtered.
  const cells = () => all("tr:not([hidden]) .strip a");
  const filter = () => {
    const box = one("#filter");
    if (!box) return;
    const words = box.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const differ = one("#differ")?.checked;
    let shown = 0;
    const rows = all("tr[data-words]");
    for (const row of rows) {
      const text = row.dataset.words.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) || (differ && !("differs" in row.dataset));
      if (!row.hidden) shown += 1;
    }
    one("#filter-count").textContent = shown === rows.length ? "" : `${shown} of ${rows.length} cases`;
    rove();
  };
  const rove = (to) => {
    const list = cells();
    const at = to || list.find((cell) => cell.tabIndex === 0 && cell.hasAttribute("tabindex")) || list[0];
    for (const cell of list) if (cell !== at) cell.tabIndex = -1;
    if (at) at.tabIndex = 0;
  };
  const walk = (cell, key) => {
    const row = cell.closest("tr");
    const line = all(".strip a", row);
    const at = line.indexOf(cell);
    if (key === "ArrowRight") return line[at + 1];
    if (key === "ArrowLeft") return line[at - 1];
    if (key === "Home") return line[0];
    if (key === "End") return line.at(-1);
    const rows = all("tr:not([hidden])", row.parentElement);
    const next = rows[rows.indexOf(row) + (key === "ArrowDown" ? 1 : -1)];
    if (!next) return null;
    const column = cell.closest("td").cellIndex;
    const place = all("a", cell.parentElement).indexOf(cell);
    const beside = all(".strip a", next.cells[column]);
    return beside[Math.min(place, beside.length - 1)];
  };

  const large = one("#large");
  const keys = one("#keys");
  const openAll = () => {
    const boxes = all("main details.run, main details.file, main .moments details, main details.raw");
    const open = !boxes.every((box) => box.open);
    boxes.forEach((box) => { box.open = open; });
  };
  document.addEventListener("click", (event) => {
    if (event.target === large || event.target === keys) event.target.close();
    const button = event.target.closest("button");
    if (button?.dataset.act === "keys") keys.showModal();
    if (button?.dataset.act === "beside") {
      const on = button.closest(".compare").classList.toggle("beside");
      button.setAttribute("aria-pressed", String(on));
    }
    const link = event.target.closest("a.picture");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const picture = one("#large-picture");
    picture.src = link.href;
    picture.alt = one("img", link).alt;
    one("#large-caption").textContent = picture.alt;
    large.showModal();
  });

  // Single-letter keys, which can be switched off in the list of keys.
  const step = (by) => {
    const stops = all(".stop, #verdicts, #attachments, #cost");
    const held = document.activeElement.closest(".stop, #verdicts, #attachments, #cost");
    let at = stops.indexOf(held);
    if (at < 0) {
      at = stops.findIndex((stop) => stop.getBoundingClientRect().top > 60);
      if (at < 0) at = stops.length;
      if (by > 0) at -= 1;
    }
    const next = stops[Math.max(0, Math.min(stops.length - 1, at + by))];
    if (!next) return;
    if (!next.hasAttribute("tabindex")) next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "start", behavior: "instant" });
  };
  const follow = (rel) => one(`.steps-nav a[rel=${rel}]`)?.click();
  const column = (name) => one("#column-" + name).click();
  const acts = {
    j: () => step(1),
    k: () => step(-1),
    n: () => follow("next"),
    p: () => follow("prev"),
    u: () => follow("up"),
    o: openAll,
    1: () => column("judge"),
    2: () => column("card"),
    3: () => column("witnessed"),
    "/": () => one("#filter")?.focus(),
    "?": () => keys.showModal(),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
    const cell = event.target.closest?.(".strip a");
    if (cell && ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
      const next = walk(cell, event.key);
      if (next) { rove(next); next.focus(); }
      event.preventDefault();
      return;
    }
    if (!one("#keys-on").checked || event.target.matches("input:not([type=radio]):not([type=checkbox]), textarea, select")) return;
    const act = Object.hasOwn(acts, event.key) && acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // What only works with script is shown only with script. Again after a live page has brought a new content.
  const ready = () => {
    all(".compare").forEach((box) => {
      box.classList.add("ready");
      one(".compare-tools", box).hidden = false;
      cut(one("input", box));
    });
    all(".heat-tools").forEach((box) => { box.hidden = false; });
    rove();
    filter();
  };
  addEventListener("cdb-content", ready);
  ready();
  if (location.hash) reveal();
})();
