"use strict";
(() => {
  const data = JSON.parse(document.getElementById("audit-data").textContent);
  const items = [...document.querySelectorAll("section.item")];
  const who = document.getElementById("labeller");
  const progress = document.getElementById("progress");
  const store = `cdb-audit:${data.audit}`;
  const answers = read();
  let at = 0;
  let since = performance.now();

  function read() {
    try {
      const kept = JSON.parse(localStorage.getItem(store) || "{}");
      who.value = typeof kept.labeller === "string" ? kept.labeller : "";
      return kept.labels && typeof kept.labels === "object" ? kept.labels : {};
    } catch {
      return {};
    }
  }

  function keep() {
    try {
      localStorage.setItem(store, JSON.stringify({ labeller: who.value.trim(), labels: answers }));
    } catch {
      progress.textContent = "This browser keeps nothing: save often.";
    }
  }

  const name = (section) => section.dataset.item;

  function tell() {
    const done = items.filter((section) => answers[name(section)]).length;
    progress.textContent = `${done} of ${items.length} answered`;
  }

  function show(place) {
    items[at].hidden = true;
    at = Math.min(Math.max(place, 0), items.length - 1);
    const section = items[at];
    for (const image of section.querySelectorAll("img[data-picture]:not([src])")) {
      image.src = data.pictures[image.dataset.picture];
    }
    const answer = answers[name(section)];
    for (const radio of section.querySelectorAll("input[type=radio]")) radio.checked = answer?.verdict === radio.value;
    section.querySelector(".note input").value = answer?.note || "";
    section.hidden = false;
    since = performance.now();
    scrollTo(0, 0);
    section.querySelector("h2").focus({ preventScroll: true });
    tell();
  }

  function say(verdict) {
    const section = items[at];
    const before = answers[name(section)];
    const seconds = Math.round((performance.now() - since) / 100) / 10 + (before?.seconds || 0);
    since = performance.now();
    answers[name(section)] = { verdict, note: section.querySelector(".note input").value, seconds };
    for (const radio of section.querySelectorAll("input[type=radio]")) radio.checked = radio.value === verdict;
    keep();
    tell();
  }

  function nextOpen() {
    const order = [...items.keys()].map((step) => (at + 1 + step) % items.length);
    const open = order.find((place) => !answers[name(items[place])]);
    if (open === undefined) progress.textContent = "All answered: save the file and send it back.";
    else show(open);
  }

  function save() {
    const labeller = who.value.trim();
    if (!labeller) {
      progress.textContent = "Write your name first; the file carries it.";
      who.focus();
      return;
    }
    const told = { schema: "cdb.audit_labels/1", audit: data.audit, labeller, saved_at: new Date().toISOString(), labels: answers };
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(told, null, 1)], { type: "application/json" }));
    link.download = `labels-${labeller.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 60)}-${data.audit}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    progress.textContent = `Saved ${Object.keys(answers).length} answers as ${link.download}`;
  }

  const keys = { 1: "PASS", 2: "PARTIAL", 3: "FAIL", 0: "UNSURE" };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input:not([type=radio])");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing) {
      event.target.blur();
      return;
    }
    if (typing) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key in keys) {
      say(keys[key]);
      nextOpen();
    } else if (key === "ArrowRight") show(at + 1);
    else if (key === "ArrowLeft") show(at - 1);
    else if (key === "u") nextOpen();
    else if (key === "n") items[at].querySelector(".note input").focus();
    else if (key === "z") document.body.classList.toggle("large");
    else if (key === "s") save();
    else return;
    event.preventDefault();
  });
  document.getElementById("main").addEventListener("change", (event) => {
    if (event.target.matches("input[type=radio]")) say(event.target.value);
    else if (event.target.matches(".note input") && answers[name(items[at])]) say(answers[name(items[at])].verdict);
  });
  who.addEventListener("input", keep);
  document.getElementById("save").addEventListener("click", save);
  document.getElementById("next").addEventListener("click", () => show(at + 1));
  document.getElementById("previous").addEventListener("click", () => show(at - 1));
  addEventListener("beforeunload", keep);
  const first = items.findIndex((section) => !answers[name(section)]);
  show(first < 0 ? 0 : first);
})();
