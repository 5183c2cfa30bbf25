// Dragging cards between columns and within one.

/** Wires the board once; `onDrop(cardId, columnId, beforeId)` is called when a card is let go over a column. */
export function startDragging(board, onDrop) {
  let lifted = null;

  const clearTarget = () => board.querySelector(".column--target")?.classList.remove("column--target");

  board.addEventListener("dragstart", (event) => {
    const card = event.target.closest(".card");
    if (!card) return;
    lifted = card.dataset.id;
    event.dataTransfer.effectAllowed = "move";
    // Firefox starts no drag without data.
    event.dataTransfer.setData("text/plain", lifted);
    // On the next frame, so that the picture under the pointer is still the full card.
    requestAnimationFrame(() => card.classList.add("card--lifted"));
  });

  board.addEventListener("dragover", (event) => {
    const column = event.target.closest(".column");
    if (!lifted || !column) return;
    event.preventDefault();
    if (!column.classList.contains("column--target")) {
      clearTarget();
      column.classList.add("column--target");
    }
  });

  board.addEventListener("drop", (event) => {
    const column = event.target.closest(".column");
    if (!lifted || !column) return;
    event.preventDefault();
    const over = event.target.closest(".card");
    const id = lifted;
    lifted = null;
    clearTarget();
    onDrop(id, column.dataset.column, over?.dataset.id ?? null);
  });

  board.addEventListener("dragend", () => {
    lifted = null;
    clearTarget();
    board.querySelector(".card--lifted")?.classList.remove("card--lifted");
  });
}
