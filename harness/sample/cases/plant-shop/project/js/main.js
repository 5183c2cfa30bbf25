import { startCart } from "./cart.js";
import { startCatalogue } from "./catalogue.js";

startCatalogue();
startCart();
