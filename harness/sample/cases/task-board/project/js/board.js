// Draws the columns and their cards.
import { COLUMNS, KINDS, PEOPLE } from "./data.js";
import { allCards, cardsIn } from "./store.js";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function element(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

function avatar(person) {
  const disc = element("span", "avatar", person.initials);
  disc.style.background = person.colour;
  disc.title = person.name;
  return disc;
}

/** "2026-10-09" → "9 Oct"; nothing for a card without a date. */
function dueText(due) {
  if (!due) return "";
  const [, month, day] = due.split("-").map(Number);
  return `Due ${day} ${MONTHS[month - 1]}`;
}

function drawCard(card) {
  const li = element("li", "card");
  li.draggable = true;
  li.dataset.id = card.id;
  const kind = element("span", "card__kind", KINDS[card.kind].title);
  kind.style.color = KINDS[card.kind].ink;
  kind.style.background = KINDS[card.kind].paper;
  const title = element("button", "card__title", card.title);
  title.type = "button";
  const foot = element("div", "card__foot");
  foot.append(element("span", "card__due", dueText(card.due)), avatar(PEOPLE[card.who]));
  li.append(kind, title, foot);
  return li;
}

/** Whether a card answers to the search: its title, its kind and who does it are looked at. */
function matches(card, query) {
  const text = [card.title, KINDS[card.kind].title, PEOPLE[card.who].name].join(" ").toLowerCase();
  return text.includes(query);
}

function drawColumn({ id, title, colour }, query) {
  const cards = cardsIn(id);
  const shown = cards.filter((card) => matches(card, query));
  const section = element("section", "column");
  section.dataset.column = id;
  section.setAttribute("aria-label", title);

  const head = element("header", "column__head");
  const dot = element("span", "column__dot");
  dot.style.background = colour;
  head.append(dot, element("h2", "", title), element("span", "column__count", String(cards.length)));

  const list = element("ul", "column__cards");
  list.append(...shown.map(drawCard));

  const add = element("button", "column__add", "Add card");
  add.type = "button";
  add.setAttribute("aria-label", `Add card to ${title}`);
  section.append(head, list);
  if (!shown.length) section.append(element("p", "column__empty", query ? "Nothing found here" : "Drop a card here"));
  section.append(add);
  return section;
}

/** Draws the whole board; `query` hides the cards that do not answer to it. */
export function drawBoard(query = "") {
  const wanted = query.trim().toLowerCase();
  document.getElementById("board").replaceChildren(...COLUMNS.map((column) => drawColumn(column, wanted)));
}

export function drawTeam() {
  const busy = Object.entries(PEOPLE).filter(([id]) => allCards().some((card) => card.who === id));
  document.getElementById("team").replaceChildren(...busy.map(([, person]) => avatar(person)));
}
