const lamps: string[] = ['paper', 'brass'];

document.querySelector('#app')!.innerHTML =
  `<h1>${import.meta.env.VITE_TITLE}</h1><ul>${lamps.map((lamp) => `<li>${lamp}</li>`).join('')}</ul>`;
import('./more').then(({ more }) => document.querySelector('ul')!.append(more()));
