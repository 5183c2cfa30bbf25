// The cart drawer: lines with quantities, the sums, and the way to the order form.

import { checkoutForm } from "./checkout.js";
import { euros } from "./plants.js";
import { itemCount, lines, onCartChange, setQuantity, subtotal } from "./store.js";

const DELIVERY = 690;

const drawer = document.querySelector("#cart");
const backdrop = document.querySelector("#backdrop");

/** What the order costs, in cents. */
export function sums() {
  const goods = subtotal();
  return { goods, delivery: DELIVERY, total: goods + DELIVERY };
}

function line({ plant, quantity }) {
  const row = document.createElement("li");
  row.className = "line";
  row.setAttribute("aria-label", plant.name);
  row.innerHTML = `
    <img src="img/${plant.id}.svg" alt="" width="72" height="72" />
    <div class="line-text">
      <strong>${plant.name}</strong>
      <span class="each">${euros(plant.price)} each</span>
      <div class="stepper">
        <button type="button" class="fewer" aria-label="One ${plant.name} fewer">−</button>
        <output aria-label="Quantity of ${plant.name}">${quantity}</output>
        <button type="button" class="more" aria-label="One ${plant.name} more">+</button>
      </div>
    </div>
    <div class="line-end">
      <span class="line-price">${euros(plant.price * quantity)}</span>
      <button type="button" class="remove" aria-label="Remove ${plant.name}">Remove</button>
    </div>`;
  row.querySelector(".fewer").addEventListener("click", () => setQuantity(plant.id, quantity - 1));
  row.querySelector(".more").addEventListener("click", () => setQuantity(plant.id, quantity + 1));
  row.querySelector(".remove").addEventListener("click", () => setQuantity(plant.id, 0));
  return row;
}

function summary() {
  const { goods, delivery, total } = sums();
  const box = document.createElement("div");
  box.className = "summary";
  box.innerHTML = `
    <dl>
      <div><dt>Subtotal</dt><dd id="sum-goods">${euros(goods)}</dd></div>
      <div><dt>Delivery</dt><dd id="sum-delivery">${euros(delivery)}</dd></div>
      <div class="total"><dt>Total</dt><dd id="sum-total">${euros(total)}</dd></div>
    </dl>
    <button type="button" class="primary" id="checkout">Go to checkout</button>`;
  box.querySelector("#checkout").addEventListener("click", () => {
    drawer.querySelector(".cart-body").replaceChildren(checkoutForm(sums(), closeCart));
  });
  return box;
}

export function renderCart() {
  document.querySelector("#cart-count").textContent = itemCount();
  const body = document.createElement("div");
  body.className = "cart-body";
  if (itemCount() === 0) {
    body.innerHTML = '<p class="empty">Your cart is empty. The plants are waiting on the left.</p>';
  } else {
    const list = document.createElement("ul");
    list.className = "lines";
    list.append(...lines().map(line));
    body.append(list, summary());
  }
  drawer.innerHTML = `
    <div class="cart-head">
      <h2>Your cart</h2>
      <button type="button" class="close" aria-label="Close cart">×</button>
    </div>`;
  drawer.append(body);
  drawer.querySelector(".close").addEventListener("click", closeCart);
}

function openCart() {
  renderCart();
  drawer.hidden = backdrop.hidden = false;
  drawer.querySelector(".close").focus();
}

function closeCart() {
  drawer.hidden = backdrop.hidden = true;
  document.querySelector("#open-cart").focus();
}

export function startCart() {
  onCartChange(renderCart);
  document.querySelector("#open-cart").addEventListener("click", openCart);
  backdrop.addEventListener("click", closeCart);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !drawer.hidden) closeCart();
  });
  renderCart();
}
