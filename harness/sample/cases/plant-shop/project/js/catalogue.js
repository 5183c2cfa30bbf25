// The catalogue: search, filters, sorting and the plant cards.

import { LIGHT, euros, plants } from "./plants.js";
import { quantityOf, setQuantity } from "./store.js";
import { toast } from "./toast.js";

const FEW = 4; // from here down the card says how many are left

const view = { text: "", light: "all", petSafe: false, sort: "featured" };

const orders = {
  featured: () => 0,
  name: (a, b) => a.name.localeCompare(b.name),
  "price-up": (a, b) => a.price - b.price,
  "price-down": (a, b) => b.price - a.price,
};

function visiblePlants() {
  const text = view.text.trim().toLowerCase();
  return plants
    .filter((plant) => view.light === "all" || plant.light === view.light)
    .filter((plant) => !view.petSafe || plant.petSafe)
    .filter((plant) => `${plant.name} ${plant.latin}`.toLowerCase().includes(text))
    .sort(orders[view.sort]);
}

function card(plant) {
  const article = document.createElement("article");
  article.className = "card";
  article.setAttribute("aria-label", plant.name);
  article.innerHTML = `
    <div class="picture"><img src="img/${plant.id}.svg" alt="" width="240" height="240" /></div>
    <div class="card-text">
      <h2>${plant.name}</h2>
      <p class="latin">${plant.latin}</p>
      <p class="tags">
        <span class="tag light-${plant.light}">${LIGHT[plant.light]}</span>
        ${plant.petSafe ? '<span class="tag pet">Pet safe</span>' : ""}
      </p>
      <p class="stock${plant.stock <= FEW ? " few" : ""}">
        ${plant.stock <= FEW ? `Only ${plant.stock} left` : `${plant.stock} in stock`}
      </p>
      <div class="buy">
        <span class="price">${euros(plant.price)}</span>
        <button class="add" type="button" aria-label="Add ${plant.name} to cart">Add to cart</button>
      </div>
    </div>`;
  article.querySelector(".add").addEventListener("click", () => {
    setQuantity(plant.id, quantityOf(plant.id) + 1);
    toast(`${plant.name} is in your cart`);
  });
  return article;
}

export function renderCatalogue() {
  const found = visiblePlants();
  const catalogue = document.querySelector("#catalogue");
  catalogue.replaceChildren(...found.map(card));
  if (!found.length) catalogue.innerHTML = '<p class="nothing">No plant fits. Try fewer filters.</p>';
  document.querySelector("#result-line").textContent =
    found.length === 1 ? "1 plant" : `${found.length} plants`;
}

function lightChip(value, label) {
  const chip = document.createElement("button");
  chip.type = "button";
  chip.className = "chip";
  chip.textContent = label;
  chip.setAttribute("aria-pressed", String(view.light === value));
  chip.addEventListener("click", () => {
    view.light = value;
    for (const other of chip.parentElement.children) {
      other.setAttribute("aria-pressed", String(other === chip));
    }
    renderCatalogue();
  });
  return chip;
}

export function startCatalogue() {
  const chips = [["all", "All plants"], ...Object.entries(LIGHT)];
  document.querySelector("#light-filter").append(...chips.map(([value, label]) => lightChip(value, label)));
  document.querySelector("#search").addEventListener("input", (event) => {
    view.text = event.target.value;
    renderCatalogue();
  });
  document.querySelector("#pet-safe").addEventListener("change", (event) => {
    view.petSafe = event.target.checked;
    renderCatalogue();
  });
  document.querySelector("#sort").addEventListener("change", (event) => {
    view.sort = event.target.value;
    renderCatalogue();
  });
  renderCatalogue();
}
