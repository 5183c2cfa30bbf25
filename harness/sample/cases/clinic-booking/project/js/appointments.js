// The list of upcoming appointments beside the form.
import { PRACTITIONERS, SERVICES } from "./data.js";
import { addMinutes, dayLabel } from "./time.js";
import { cancel, upcoming } from "./store.js";

const text = (tag, className, content) =>
  Object.assign(document.createElement(tag), { className, textContent: content });

function item(booked, onCancelled) {
  const { title } = SERVICES.find(({ id }) => id === booked.service);
  const { name } = PRACTITIONERS.find(({ id }) => id === booked.practitioner);
  const when = `${dayLabel(booked.day)}, ${booked.time}–${addMinutes(booked.time, booked.minutes)}`;
  const li = text("li", "appointment", "");
  const button = text("button", "appointment__cancel", "Cancel");
  button.type = "button";
  button.setAttribute("aria-label", `Cancel ${booked.name}, ${dayLabel(booked.day)}, ${booked.time}`);
  button.addEventListener("click", () => {
    cancel(booked.id);
    onCancelled(`Cancelled: ${booked.name}, ${dayLabel(booked.day)} at ${booked.time}`);
  });
  li.append(
    text("p", "appointment__when", when),
    text("p", "appointment__price", `£${booked.price}`),
    text("p", "appointment__who", `${booked.name} · ${booked.email}`),
    text("p", "appointment__what", `${title} · ${name}`),
    button,
  );
  return li;
}

export function drawUpcoming(onCancelled) {
  const all = upcoming();
  document.getElementById("upcoming-count").textContent = all.length;
  document.getElementById("upcoming").replaceChildren(...all.map((booked) => item(booked, onCancelled)));
}
