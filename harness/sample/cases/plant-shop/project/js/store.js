// The cart: plant id → quantity, kept in the browser so that it survives a reload.

import { plantById } from "./plants.js";

const KEY = "fern-and-fable.cart";
const listeners = new Set();
let quantities = read();

function read() {
  try {
    const saved = JSON.parse(localStorage.getItem(KEY)) ?? {};
    // A plant that is no longer sold must not break the sums.
    return Object.fromEntries(Object.entries(saved).filter(([id, n]) => plantById(id) && n > 0));
  } catch {
    return {};
  }
}

function write() {
  localStorage.setItem(KEY, JSON.stringify(quantities));
  for (const listener of listeners) listener();
}

export const onCartChange = (listener) => listeners.add(listener);

export const lines = () =>
  Object.entries(quantities).map(([id, quantity]) => ({ plant: plantById(id), quantity }));

export const quantityOf = (id) => quantities[id] ?? 0;

export const itemCount = () => Object.values(quantities).reduce((sum, n) => sum + n, 0);

export const subtotal = () => lines().reduce((sum, { plant, quantity }) => sum + plant.price * quantity, 0);

export function setQuantity(id, quantity) {
  if (quantity > 0) quantities[id] = quantity;
  else delete quantities[id];
  write();
}

export function emptyCart() {
  quantities = {};
  write();
}
