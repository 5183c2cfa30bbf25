import { draw, start } from "./form.js";
import { drawUpcoming } from "./appointments.js";

// Booking and cancelling both change what is free, so both sides are drawn again and the desk is told.
function refresh(message = "") {
  draw();
  drawUpcoming(refresh);
  document.getElementById("confirmation").textContent = message;
}

start(refresh);
refresh();
