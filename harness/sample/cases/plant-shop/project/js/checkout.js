// The order form. There is no server yet: an order ends in a confirmation and an empty cart.

import { euros } from "./plants.js";
import { emptyCart } from "./store.js";

const fields = [
  { name: "name", label: "Full name", type: "text", autocomplete: "name" },
  { name: "email", label: "Email", type: "email", autocomplete: "email" },
  { name: "address", label: "Delivery address", type: "text", autocomplete: "street-address" },
];

/** The form for an order of these sums; `onClose` is called when the customer is done. */
export function checkoutForm({ total }, onClose) {
  const form = document.createElement("form");
  form.className = "checkout";
  form.innerHTML = `
    <h3>Delivery details</h3>
    ${fields
      .map(
        ({ name, label, type, autocomplete }) =>
          `<label>${label}<input name="${name}" type="${type}" autocomplete="${autocomplete}" required /></label>`,
      )
      .join("")}
    <p class="to-pay">To pay on delivery <strong>${euros(total)}</strong></p>
    <button class="primary" type="submit">Place order</button>`;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const customer = new FormData(form).get("name");
    emptyCart();
    showThanks(customer, total, onClose);
  });
  return form;
}

function showThanks(customer, total, onClose) {
  const body = document.querySelector(".cart-body");
  const box = document.createElement("div");
  box.className = "thanks";
  const title = document.createElement("h3");
  title.textContent = `Thank you, ${customer}!`;
  const text = document.createElement("p");
  text.textContent = `Your order of ${euros(total)} leaves the greenhouse with the next delivery.`;
  const done = document.createElement("button");
  done.type = "button";
  done.className = "primary";
  done.textContent = "Back to the shop";
  done.addEventListener("click", onClose);
  box.append(title, text, done);
  body.replaceChildren(box);
}
