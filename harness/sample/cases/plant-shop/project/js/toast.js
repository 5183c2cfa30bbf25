// A short notice at the bottom of the page; the newest one replaces the last.

let timer;

export function toast(message) {
  const box = document.querySelector(".toast") ?? document.body.appendChild(document.createElement("div"));
  box.className = "toast shown";
  box.setAttribute("role", "status");
  box.textContent = message;
  clearTimeout(timer);
  timer = setTimeout(() => box.classList.remove("shown"), 2200);
}
