import { inEuros, money, shortDate, totalOf, type Expense } from "./model";

interface Props {
  expenses: Expense[];
  onDelete: (id: string) => void;
}

export function ExpenseTable({ expenses, onDelete }: Props) {
  if (!expenses.length) return <p class="nothing">No expense fits the filter.</p>;
  return (
    <table class="expenses">
      <thead>
        <tr>
          <th scope="col">Date</th>
          <th scope="col">Expense</th>
          <th scope="col" class="number">Amount</th>
          <th scope="col" class="number">In euros</th>
          <th scope="col">Receipt</th>
          <th scope="col"><span class="visually-hidden">Actions</span></th>
        </tr>
      </thead>
      <tbody>
        {expenses.map((expense) => (
          <Row key={expense.id} expense={expense} onDelete={onDelete} />
        ))}
      </tbody>
      <tfoot>
        <tr>
          <td colSpan={3}>{expenses.length === 1 ? "1 expense shown" : `${expenses.length} expenses shown`}</td>
          <td class="number">{money(totalOf(expenses))}</td>
          <td colSpan={2} />
        </tr>
      </tfoot>
    </table>
  );
}

function Row({ expense, onDelete }: { expense: Expense; onDelete: Props["onDelete"] }) {
  return (
    <tr>
      <td class="date">{shortDate(expense.date)}</td>
      <td class="what">
        <strong>{expense.merchant}</strong>
        <span class="marks">
          <span class={`pill ${pillClass(expense.category)}`}>{expense.category}</span>
        </span>
      </td>
      <td class="number amount">{money(expense.amount, expense.currency)}</td>
      <td class="number euros">{money(inEuros(expense))}</td>
      <td class="receipt">{expense.receipt ? <span class="yes">✓ Yes</span> : <span class="no">–</span>}</td>
      <td class="actions">
        <button type="button" aria-label={`Delete ${expense.merchant}`} onClick={() => onDelete(expense.id)}>
          ×
        </button>
      </td>
    </tr>
  );
}

export function pillClass(category: string): string {
  return `cat-${category.toLowerCase().replace(/[^a-z]+/g, "-")}`;
}
