// The booking form: what is chosen, how it is drawn, and what happens on Confirm.
import { PRACTITIONERS, SERVICES, WEEKS } from "./data.js";
import { addMinutes, dayLabel } from "./time.js";
import { isFree, startTimes } from "./schedule.js";
import { add } from "./store.js";

const $ = (id) => document.getElementById(id);

const choice = { service: "general", practitioner: "osei", week: 0, slot: null };

const service = () => SERVICES.find(({ id }) => id === choice.service);
const practitioner = () => PRACTITIONERS.find(({ id }) => id === choice.practitioner);

function tile(group, value, title, text, checked) {
  const label = document.createElement("label");
  label.className = "tile";
  const input = Object.assign(document.createElement("input"), { type: "radio", name: group, value, checked });
  input.setAttribute("aria-label", title);
  const face = document.createElement("span");
  face.className = "tile__face";
  const heading = Object.assign(document.createElement("span"), { className: "tile__title", textContent: title });
  face.append(heading);
  if (text) face.append(Object.assign(document.createElement("span"), { className: "tile__text", textContent: text }));
  label.append(input, face);
  return label;
}

function drawServices() {
  $("services").replaceChildren(...SERVICES.map(({ id, title, minutes, price }) =>
    tile("service", id, title, `${minutes} min · £${price}`, id === choice.service)));
}

function drawPractitioners() {
  const able = PRACTITIONERS.filter(({ services }) => services.includes(choice.service));
  if (!able.some(({ id }) => id === choice.practitioner)) choice.practitioner = able[0].id;
  $("practitioners").replaceChildren(...able.map(({ id, name }) =>
    tile("practitioner", id, name, "", id === choice.practitioner)));
}

function slotButton(day, time) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "slot";
  button.textContent = time;
  button.dataset.day = day;
  button.dataset.time = time;
  const free = isFree(choice.practitioner, day, time);
  button.disabled = !free;
  button.setAttribute("aria-label", `${dayLabel(day)}, ${time}`);
  button.setAttribute("aria-pressed", String(choice.slot?.day === day && choice.slot?.time === time));
  return button;
}

function drawSlots() {
  const { title, days } = WEEKS[choice.week];
  $("week-title").textContent = title;
  $("previous-week").disabled = choice.week === 0;
  $("next-week").disabled = choice.week === WEEKS.length - 1;
  const parts = days.map((day) =>
    Object.assign(document.createElement("div"), { className: "slots__day", textContent: dayLabel(day) }));
  startTimes().forEach((times, session) => {
    if (session > 0) {
      parts.push(Object.assign(document.createElement("div"), { className: "slots__lunch", textContent: "Lunch" }));
    }
    for (const time of times) for (const day of days) parts.push(slotButton(day, time));
  });
  $("slots").replaceChildren(...parts);
}

function row(term, value, modifier = "") {
  const div = Object.assign(document.createElement("div"), { className: `summary__row ${modifier}`.trim() });
  div.append(
    Object.assign(document.createElement("dt"), { textContent: term }),
    Object.assign(document.createElement("dd"), { textContent: value }),
  );
  return div;
}

function drawSummary() {
  const { title, minutes, price } = service();
  const when = choice.slot
    ? `${dayLabel(choice.slot.day)}, ${choice.slot.time}–${addMinutes(choice.slot.time, minutes)}`
    : "Choose a time";
  $("summary").replaceChildren(
    row("Service", title),
    row("With", practitioner().name),
    row("When", when),
    row("Length", `${minutes} min`),
    row("Price", `£${price}`),
    row("Total", `£${price}`, "summary__row--total"),
  );
}

/** Redraws everything that follows from the choice. A chosen time that is no longer free is let go. */
export function draw() {
  drawServices();
  drawPractitioners();
  if (choice.slot && !isFree(choice.practitioner, choice.slot.day, choice.slot.time)) choice.slot = null;
  drawSlots();
  drawSummary();
}

function showFieldError(field, message) {
  document.querySelector(`[data-error-for="${field}"]`).textContent = message;
  $(field).setAttribute("aria-invalid", String(Boolean(message)));
}

/** Checks the patient's fields, marks what is wrong, and says whether all is well. */
function patientIsComplete() {
  const problems = {
    name: $("name").value.trim() ? "" : "Please enter the patient's name",
    email: /^\S+@\S+\.\S+$/.test($("email").value.trim()) ? "" : "Please enter a valid e-mail address",
  };
  for (const [field, message] of Object.entries(problems)) showFieldError(field, message);
  return Object.values(problems).every((message) => !message);
}

function confirm(onBooked) {
  $("form-error").textContent = "";
  const complete = patientIsComplete();
  if (!choice.slot) {
    $("form-error").textContent = "Please choose a time first";
    return;
  }
  if (!complete) return;
  const { minutes, price } = service();
  add({
    day: choice.slot.day,
    time: choice.slot.time,
    minutes,
    service: choice.service,
    practitioner: choice.practitioner,
    name: $("name").value.trim(),
    email: $("email").value.trim(),
    notes: $("notes").value.trim(),
    price,
  });
  const said = `Booked: ${$("name").value.trim()}, ${dayLabel(choice.slot.day)} at ${choice.slot.time}`;
  $("booking-form").reset();
  choice.slot = null;
  onBooked(said);
}

/** Wires the form once; `onBooked(message)` is called after each booking. */
export function start(onBooked) {
  $("services").addEventListener("change", (event) => {
    choice.service = event.target.value;
    draw();
    document.querySelector("#services input:checked").focus();
  });
  $("practitioners").addEventListener("change", (event) => {
    choice.practitioner = event.target.value;
    draw();
    document.querySelector("#practitioners input:checked").focus();
  });
  $("slots").addEventListener("click", (event) => {
    const button = event.target.closest(".slot");
    if (!button) return;
    choice.slot = { day: button.dataset.day, time: button.dataset.time };
    $("form-error").textContent = "";
    draw();
  });
  $("previous-week").addEventListener("click", () => { choice.week -= 1; draw(); });
  $("next-week").addEventListener("click", () => { choice.week += 1; draw(); });
  $("booking-form").addEventListener("submit", (event) => {
    event.preventDefault();
    confirm(onBooked);
  });
}
