import { pillClass } from "./ExpenseTable";
import { CATEGORIES, RATES_OF, money, totalOf, type Expense } from "./model";

export function Summary({ expenses }: { expenses: Expense[] }) {
  const total = totalOf(expenses);
  const parts = CATEGORIES.map((category) => ({
    category,
    sum: totalOf(expenses.filter((expense) => expense.category === category)),
  }));
  return (
    <aside class="panel summary" aria-label="Summary">
      <p class="total-label">Report total</p>
      <p class="total">{money(total)}</p>
      <h2>By category</h2>
      <ul class="parts">
        {parts.map(({ category, sum }) => (
          <li key={category}>
            <span>{category}</span>
            <span>{money(sum)}</span>
            <span class="bar">
              <span class={pillClass(category)} style={{ width: `${total ? (sum / total) * 100 : 0}%` }} />
            </span>
          </li>
        ))}
      </ul>
      <p class="small">Foreign amounts at the rates of {RATES_OF}.</p>
    </aside>
  );
}
