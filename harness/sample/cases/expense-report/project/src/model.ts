// Expenses, categories, exchange rates and sums. Amounts are numbers with at most two decimals.

export const CATEGORIES = ["Meals", "Lodging", "Local transport", "Flights & rail", "Other"] as const;
export type Category = (typeof CATEGORIES)[number];

/** How many euros one unit of a currency is worth; finance sets the rates once a month. */
export const RATES = { EUR: 1, GBP: 1.17, USD: 0.92, CHF: 1.04 } as const;
export type Currency = keyof typeof RATES;
export const RATES_OF = "1 May 2026";

export interface Expense {
  id: string;
  date: string; // YYYY-MM-DD
  merchant: string;
  category: Category;
  amount: number;
  currency: Currency;
  receipt: boolean;
}

export interface Report {
  title: string;
  traveller: string;
  period: string;
}

export const REPORT: Report = {
  title: "Lisbon client visit",
  traveller: "Mara Reiter",
  period: "11 – 14 May 2026",
};

export const SEED: Expense[] = [
  { id: "e1", date: "2026-05-11", merchant: "Air Atlantico", category: "Flights & rail", amount: 284.6, currency: "EUR", receipt: true },
  { id: "e2", date: "2026-05-11", merchant: "Taxi to the hotel", category: "Local transport", amount: 22.4, currency: "EUR", receipt: false },
  { id: "e3", date: "2026-05-11", merchant: "Hotel Mirante", category: "Lodging", amount: 142, currency: "EUR", receipt: true },
  { id: "e4", date: "2026-05-12", merchant: "Hotel Mirante, river view", category: "Lodging", amount: 189, currency: "EUR", receipt: true },
  { id: "e5", date: "2026-05-12", merchant: "Cantina do Cais", category: "Meals", amount: 19.8, currency: "EUR", receipt: true },
  { id: "e6", date: "2026-05-12", merchant: "Tasca da Bica", category: "Meals", amount: 38.5, currency: "EUR", receipt: true },
  { id: "e7", date: "2026-05-13", merchant: "Metro day pass", category: "Local transport", amount: 6.8, currency: "EUR", receipt: false },
  { id: "e8", date: "2026-05-13", merchant: "Print shop Rossio", category: "Other", amount: 31.2, currency: "EUR", receipt: false },
  { id: "e9", date: "2026-05-14", merchant: "Airport coffee bar", category: "Meals", amount: 11.8, currency: "GBP", receipt: true },
];

/** What an expense is worth in euros, to the cent. */
export function inEuros({ amount, currency }: Pick<Expense, "amount" | "currency">): number {
  return Math.round(amount * RATES[currency] * 100) / 100;
}

export function totalOf(expenses: Expense[]): number {
  // Cents are whole numbers, so adding them up loses nothing.
  return expenses.reduce((cents, expense) => cents + Math.round(inEuros(expense) * 100), 0) / 100;
}

export function money(amount: number, currency: Currency = "EUR"): string {
  const sign = { EUR: "€", GBP: "£", USD: "$", CHF: "CHF " }[currency];
  return sign + amount.toLocaleString("en-GB", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

export function shortDate(date: string): string {
  return new Date(`${date}T12:00:00`).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short" });
}
