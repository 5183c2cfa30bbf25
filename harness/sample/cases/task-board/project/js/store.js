// The cards, kept in this browser. Their order in the list is their order on the board.
import { SEED_CARDS } from "./data.js";

const KEY = "fernway.cards.v1";

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    if (Array.isArray(kept)) return kept;
  } catch {
    // A damaged entry must not keep the board from opening.
  }
  return SEED_CARDS.map((card) => ({ ...card }));
}

let cards = read();

function write() {
  localStorage.setItem(KEY, JSON.stringify(cards));
}

export const allCards = () => cards;
export const cardsIn = (column) => cards.filter((card) => card.column === column);
export const findCard = (id) => cards.find((card) => card.id === id);

/** Adds a card, or changes the one with the same id. */
export function saveCard(card) {
  const known = findCard(card.id);
  if (known) Object.assign(known, card);
  else cards.push({ ...card, id: `n${Date.now()}` });
  write();
}

export function deleteCard(id) {
  cards = cards.filter((card) => card.id !== id);
  write();
}

/** Moves a card to a column, before another card or (null) to the end. */
export function moveCard(id, column, beforeId = null) {
  const card = findCard(id);
  if (!card || beforeId === id) return;
  cards = cards.filter((other) => other !== card);
  card.column = column;
  const at = beforeId ? cards.findIndex((other) => other.id === beforeId) : -1;
  if (at < 0) cards.push(card);
  else cards.splice(at, 0, card);
  write();
}
