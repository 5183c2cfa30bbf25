export function more(): HTMLLIElement {
  const item = document.createElement('li');
  item.textContent = 'glass';
  return item;
}
