import { CATEGORIES, type Category, type Expense } from "./model";

export interface Filter {
  text: string;
  category: Category | "all";
}

export function matches(expense: Expense, { text, category }: Filter): boolean {
  const wanted = text.trim().toLowerCase();
  return (
    (category === "all" || expense.category === category) &&
    `${expense.merchant} ${expense.category}`.toLowerCase().includes(wanted)
  );
}

interface Props {
  filter: Filter;
  onChange: (filter: Filter) => void;
}

export function Toolbar({ filter, onChange }: Props) {
  return (
    <div class="toolbar">
      <input
        type="search"
        aria-label="Search expenses"
        placeholder="Search expenses"
        value={filter.text}
        onInput={(event) => onChange({ ...filter, text: event.currentTarget.value })}
      />
      <select
        aria-label="Show category"
        value={filter.category}
        onChange={(event) => onChange({ ...filter, category: event.currentTarget.value as Filter["category"] })}
      >
        <option value="all">All categories</option>
        {CATEGORIES.map((category) => (
          <option key={category}>{category}</option>
        ))}
      </select>
    </div>
  );
}
