// What is for sale. Prices are whole cents, so that sums stay exact.

export const LIGHT = { low: "Low light", medium: "Medium light", bright: "Bright light" };

export const plants = [
  { id: "monstera", name: "Monstera", latin: "Monstera deliciosa", price: 3800, light: "medium", petSafe: false, stock: 6 },
  { id: "snake-plant", name: "Snake plant", latin: "Dracaena trifasciata", price: 2400, light: "low", petSafe: false, stock: 9 },
  { id: "calathea", name: "Calathea", latin: "Goeppertia insignis", price: 2950, light: "medium", petSafe: true, stock: 3 },
  { id: "boston-fern", name: "Boston fern", latin: "Nephrolepis exaltata", price: 1850, light: "low", petSafe: true, stock: 7 },
  { id: "barrel-cactus", name: "Barrel cactus", latin: "Kroenleinia grusonii", price: 2150, light: "bright", petSafe: true, stock: 5 },
  { id: "rubber-plant", name: "Rubber plant", latin: "Ficus elastica", price: 3600, light: "bright", petSafe: false, stock: 4 },
  { id: "golden-pothos", name: "Golden pothos", latin: "Epipremnum aureum", price: 1600, light: "low", petSafe: false, stock: 12 },
  { id: "aloe-vera", name: "Aloe vera", latin: "Aloe barbadensis", price: 1450, light: "bright", petSafe: false, stock: 8 },
];

export const plantById = (id) => plants.find((plant) => plant.id === id);

/** Cents as a price in euros: 3800 → "€38.00". */
export const euros = (cents) => `€${(cents / 100).toFixed(2)}`;
