import { useEffect, useRef, useState } from "preact/hooks";
import { CATEGORIES, RATES, inEuros, money, type Category, type Currency, type Expense } from "./model";

interface Props {
  onSave: (expense: Expense) => void;
  onCancel: () => void;
}

const EMPTY = {
  date: "2026-05-14",
  merchant: "",
  category: "Meals" as Category,
  amount: "",
  currency: "EUR" as Currency,
  receipt: false,
};

export function ExpenseForm({ onSave, onCancel }: Props) {
  const [draft, setDraft] = useState(EMPTY);
  const [problem, setProblem] = useState("");
  const first = useRef<HTMLInputElement>(null);
  const amount = Number(draft.amount);

  useEffect(() => first.current?.focus(), []);

  function set(part: Partial<typeof EMPTY>) {
    setDraft({ ...draft, ...part });
  }

  function submit(event: Event) {
    event.preventDefault();
    if (!draft.merchant.trim()) return setProblem("Say where the money went.");
    if (!(amount > 0)) return setProblem("Give an amount above zero.");
    onSave({ ...draft, id: `e${Date.now()}`, merchant: draft.merchant.trim(), amount });
  }

  return (
    <div class="veil" onKeyDown={(event) => event.key === "Escape" && onCancel()}>
      <form class="dialog" role="dialog" aria-label="Add expense" noValidate onSubmit={submit}>
        <h2>Add expense</h2>
        <label class="wide">
          Merchant
          <input
            ref={first}
            value={draft.merchant}
            onInput={(event) => set({ merchant: event.currentTarget.value })}
          />
        </label>
        <label>
          Date
          <input type="date" value={draft.date} onInput={(event) => set({ date: event.currentTarget.value })} />
        </label>
        <label>
          Category
          <select
            value={draft.category}
            onChange={(event) => set({ category: event.currentTarget.value as Category })}
          >
            {CATEGORIES.map((category) => (
              <option key={category}>{category}</option>
            ))}
          </select>
        </label>
        <label>
          Amount
          <input
            type="number"
            min="0"
            step="0.01"
            value={draft.amount}
            onInput={(event) => set({ amount: event.currentTarget.value })}
          />
        </label>
        <label>
          Currency
          <select
            value={draft.currency}
            onChange={(event) => set({ currency: event.currentTarget.value as Currency })}
          >
            {Object.keys(RATES).map((currency) => (
              <option key={currency}>{currency}</option>
            ))}
          </select>
        </label>
        <label class="tick wide">
          <input
            type="checkbox"
            checked={draft.receipt}
            onChange={(event) => set({ receipt: event.currentTarget.checked })}
          />
          I have the receipt
        </label>
        {draft.currency !== "EUR" && amount > 0 && (
          <p class="converted wide">That is {money(inEuros({ amount, currency: draft.currency }))} in euros.</p>
        )}
        <p class="problem wide" role="alert">{problem}</p>
        <div class="buttons wide">
          <button type="button" class="quiet" onClick={onCancel}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Save expense
          </button>
        </div>
      </form>
    </div>
  );
}
