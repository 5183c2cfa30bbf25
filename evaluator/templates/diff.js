"use strict";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !["j", "k", "z"].includes(event.key)) return;
  if (event.key === "z") {
    document.body.classList.toggle("large");
    return;
  }
  const heads = [...document.querySelectorAll("section.flip > h2")];
  const at = heads.indexOf(document.activeElement);
  heads[Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), heads.length - 1)]?.focus();
});
