import { SEED, type Expense } from "./model";

const KEY = "tally.expenses";

export function loadExpenses(): Expense[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "null") ?? SEED;
  } catch {
    return SEED; // unreadable data must not lock the traveller out
  }
}

export function saveExpenses(expenses: Expense[]): void {
  localStorage.setItem(KEY, JSON.stringify(expenses));
}
