// Appointments live in this browser; the demo starts from the seeds the first time.
import { SEED_APPOINTMENTS } from "./data.js";

const KEY = "harbour.appointments.v1";

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    if (Array.isArray(kept)) return kept;
  } catch {
    // A damaged entry is worth less than a working desk: fall back to the seeds.
  }
  return SEED_APPOINTMENTS.slice();
}

let appointments = read();

function write() {
  localStorage.setItem(KEY, JSON.stringify(appointments));
}

/** All upcoming appointments, soonest first. */
export function upcoming() {
  return appointments.slice().sort((a, b) => `${a.day} ${a.time}`.localeCompare(`${b.day} ${b.time}`));
}

export function add(appointment) {
  appointments.push({ ...appointment, id: `a-${Date.now()}-${appointments.length}` });
  write();
}

export function cancel(id) {
  appointments = appointments.filter((appointment) => appointment.id !== id);
  write();
}
