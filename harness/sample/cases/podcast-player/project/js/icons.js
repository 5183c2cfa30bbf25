// Icons of the buttons, as markup of our own (never of a listener's text).
export const ICONS = {
  play: '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M5 2.5v15l12.5-7.5z"/></svg>',
  pause: '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M4 2.5h4v15H4zM12 2.5h4v15h-4z"/></svg>',
};
