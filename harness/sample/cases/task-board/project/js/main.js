import { drawBoard, drawTeam } from "./board.js";
import { openCard, startCardDialog } from "./card-dialog.js";
import { startDragging } from "./drag.js";
import { moveCard } from "./store.js";

const board = document.getElementById("board");
const search = document.getElementById("search");

function refresh(message = "") {
  drawBoard(search.value);
  drawTeam();
  document.getElementById("status").textContent = message;
}

board.addEventListener("click", (event) => {
  const title = event.target.closest(".card__title");
  const add = event.target.closest(".column__add");
  if (title) openCard(title.closest(".card").dataset.id);
  if (add) openCard(null, add.closest(".column").dataset.column);
});
search.addEventListener("input", () => refresh());
startCardDialog(refresh);
startDragging(board, (id, column, beforeId) => {
  moveCard(id, column, beforeId);
  refresh("Card moved");
});
refresh();
