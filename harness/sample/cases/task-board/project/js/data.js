// What the board is made of. Cards below are the first ones; later ones live in the browser's storage.

export const COLUMNS = [
  { id: "backlog", title: "Backlog", colour: "#94a3b8" },
  { id: "progress", title: "In progress", colour: "#f59e0b" },
  { id: "review", title: "Review", colour: "#6366f1" },
  { id: "done", title: "Done", colour: "#10b981" },
];

export const KINDS = {
  design: { title: "Design", ink: "#86198f", paper: "#fae8ff" },
  text: { title: "Text", ink: "#1e40af", paper: "#dbeafe" },
  photo: { title: "Photo", ink: "#92400e", paper: "#fef3c7" },
  print: { title: "Print", ink: "#166534", paper: "#dcfce7" },
};

export const PEOPLE = {
  mina: { name: "Mina Park", initials: "MP", colour: "#be185d" },
  olu: { name: "Olu Adebayo", initials: "OA", colour: "#0f766e" },
  rosa: { name: "Rosa Conti", initials: "RC", colour: "#c2410c" },
  jens: { name: "Jens Dahl", initials: "JD", colour: "#4338ca" },
};

const card = (id, column, title, kind, who, due) => ({ id, column, title, kind, who, due });

export const SEED_CARDS = [
  card("c1", "backlog", "Choose paper for the cover", "print", "jens", "2026-10-12"),
  card("c2", "backlog", "Order proofs from two printers", "print", "jens", "2026-10-19"),
  card("c3", "backlog", "Write the editor's letter", "text", "olu", "2026-10-14"),
  card("c4", "backlog", "Portraits of the three poets", "photo", "rosa", "2026-10-16"),
  card("c5", "progress", "Lay out the poetry pages", "design", "mina", "2026-10-09"),
  card("c6", "progress", "Check every ISBN and price", "text", "olu", "2026-10-08"),
  card("c7", "review", "Cover illustration", "design", "mina", "2026-10-06"),
  card("c8", "done", "Collect titles from all editors", "text", "olu", "2026-09-28"),
  card("c9", "done", "Book the photo studio", "photo", "rosa", "2026-09-30"),
];
