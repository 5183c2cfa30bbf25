import { useEffect, useState } from "preact/hooks";
import { ExpenseForm } from "./ExpenseForm";
import { ExpenseTable } from "./ExpenseTable";
import { REPORT, type Expense } from "./model";
import { loadExpenses, saveExpenses } from "./storage";
import { Summary } from "./Summary";
import { Toolbar, matches, type Filter } from "./Toolbar";

export function App() {
  const [expenses, setExpenses] = useState<Expense[]>(loadExpenses);
  const [filter, setFilter] = useState<Filter>({ text: "", category: "all" });
  const [adding, setAdding] = useState(false);

  useEffect(() => saveExpenses(expenses), [expenses]);

  const shown = expenses
    .filter((expense) => matches(expense, filter))
    .sort((a, b) => a.date.localeCompare(b.date));

  function add(expense: Expense) {
    setExpenses([...expenses, expense]);
    setAdding(false);
  }

  return (
    <>
      <header class="top">
        <span class="brand">
          <img src="/tally.svg" alt="" width="30" height="30" /> Tally
        </span>
        <span class="who">
          {REPORT.traveller} <span class="avatar" aria-hidden="true">MR</span>
        </span>
      </header>
      <main>
        <div class="title-row">
          <div>
            <p class="eyebrow">Expense report · Draft</p>
            <h1>{REPORT.title}</h1>
            <p class="period">{REPORT.period}</p>
          </div>
          <button class="primary" type="button" onClick={() => setAdding(true)}>
            Add expense
          </button>
        </div>
        <div class="columns">
          <section class="panel" aria-label="Expenses">
            <Toolbar filter={filter} onChange={setFilter} />
            <ExpenseTable
              expenses={shown}
              onDelete={(id) => setExpenses(expenses.filter((expense) => expense.id !== id))}
            />
          </section>
          <Summary expenses={expenses} />
        </div>
      </main>
      {adding && <ExpenseForm onSave={add} onCancel={() => setAdding(false)} />}
    </>
  );
}
