// The rota as the practice manager publishes it. Dates are fixed: the form covers these two weeks only.

export const SERVICES = [
  { id: "general", title: "General consultation", minutes: 30, price: 42 },
  { id: "physio", title: "Physiotherapy", minutes: 30, price: 55 },
  { id: "skin", title: "Skin check", minutes: 30, price: 64 },
  { id: "vaccination", title: "Vaccination", minutes: 15, price: 20 },
];

export const PRACTITIONERS = [
  { id: "osei", name: "Dr Amara Osei", services: ["general", "skin"] },
  { id: "fischer", name: "Dr Lena Fischer", services: ["general", "skin"] },
  { id: "whitaker", name: "Tom Whitaker", services: ["physio"] },
  { id: "adeyemi", name: "Nurse Joy Adeyemi", services: ["vaccination", "general"] },
];

export const WEEKS = [
  { title: "14–18 September", days: ["2026-09-14", "2026-09-15", "2026-09-16", "2026-09-17", "2026-09-18"] },
  { title: "21–25 September", days: ["2026-09-21", "2026-09-22", "2026-09-23", "2026-09-24", "2026-09-25"] },
];

// Working hours in minutes after midnight. A visit starts on the half hour and may not run past the end.
export const SESSIONS = [
  { from: 9 * 60, to: 12 * 60 },
  { from: 13 * 60 + 30, to: 16 * 60 + 30 },
];

// Times taken by the other branch's desk, which keeps its own list: practitioner → "day time".
export const TAKEN_ELSEWHERE = {
  osei: ["2026-09-14 09:00", "2026-09-14 10:30", "2026-09-15 14:30", "2026-09-16 11:00", "2026-09-17 09:30",
    "2026-09-17 15:00", "2026-09-18 13:30", "2026-09-22 10:00"],
  fischer: ["2026-09-14 13:30", "2026-09-15 09:30", "2026-09-15 11:00", "2026-09-17 14:00", "2026-09-18 10:00"],
  whitaker: ["2026-09-14 11:00", "2026-09-15 10:00", "2026-09-16 09:00", "2026-09-16 15:00", "2026-09-18 09:30"],
  adeyemi: ["2026-09-14 09:30", "2026-09-15 15:30", "2026-09-16 10:30", "2026-09-17 11:00"],
};

const seed = (day, time, service, practitioner, name, email, price) =>
  ({ id: `seed-${day}-${time}-${practitioner}`, day, time, minutes: 30, service, practitioner, name, email, price, notes: "" });

export const SEED_APPOINTMENTS = [
  seed("2026-09-14", "10:00", "general", "osei", "Jonas Weber", "jonas.weber@example.org", 42),
  seed("2026-09-14", "14:00", "physio", "whitaker", "Priya Nair", "priya.nair@example.org", 55),
  seed("2026-09-15", "10:30", "general", "osei", "Ana Ruiz", "ana.ruiz@example.org", 42),
  seed("2026-09-16", "14:00", "skin", "fischer", "Jonas Weber", "jonas.weber@example.org", 64),
  seed("2026-09-17", "10:30", "physio", "whitaker", "Priya Nair", "priya.nair@example.org", 55),
  seed("2026-09-21", "09:30", "general", "osei", "Jonas Weber", "jonas.weber@example.org", 42),
  seed("2026-09-24", "14:00", "physio", "whitaker", "Priya Nair", "priya.nair@example.org", 55),
];
