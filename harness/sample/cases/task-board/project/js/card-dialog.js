// The dialog in which a card is written, changed, moved without a mouse, or deleted.
import { COLUMNS, KINDS, PEOPLE } from "./data.js";
import { deleteCard, findCard, moveCard, saveCard } from "./store.js";

const $ = (id) => document.getElementById(id);
let openId = null;

function fillSelect(id, entries) {
  $(id).replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
}

/** Opens the dialog for a card, or for a new one in the given column. */
export function openCard(id, column = "backlog") {
  const card = findCard(id) ?? { title: "", kind: "design", who: "mina", due: "", column };
  openId = id;
  $("card-dialog-title").textContent = id ? "Edit card" : "New card";
  $("card-title").value = card.title;
  $("card-kind").value = card.kind;
  $("card-who").value = card.who;
  $("card-due").value = card.due;
  $("card-column").value = card.column;
  $("card-title-error").textContent = "";
  $("card-delete").hidden = !id;
  $("card-dialog").showModal();
  $("card-title").focus();
}

/** Wires the dialog once; `onChange(message)` is called after each change. */
export function startCardDialog(onChange) {
  fillSelect("card-kind", Object.entries(KINDS).map(([id, kind]) => [id, kind.title]));
  fillSelect("card-who", Object.entries(PEOPLE).map(([id, person]) => [id, person.name]));
  fillSelect("card-column", COLUMNS.map(({ id, title }) => [id, title]));

  $("card-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const title = $("card-title").value.trim();
    if (!title) {
      $("card-title-error").textContent = "A card needs a title";
      return;
    }
    const column = $("card-column").value;
    const before = findCard(openId)?.column;
    saveCard({
      id: openId,
      title,
      kind: $("card-kind").value,
      who: $("card-who").value,
      due: $("card-due").value,
      column: before ?? column,
    });
    if (before && before !== column) moveCard(openId, column);
    $("card-dialog").close();
    onChange(`Saved: ${title}`);
  });
  $("card-cancel").addEventListener("click", () => $("card-dialog").close());
  $("card-delete").addEventListener("click", () => {
    deleteCard(openId);
    $("card-dialog").close();
    onChange("Card deleted");
  });
}
