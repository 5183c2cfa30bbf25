// The list of episodes, and the search over it.
import { cover } from "./art.js";
import { EPISODES } from "./data.js";
import { clock } from "./format.js";
import { ICONS } from "./icons.js";
import { remembered } from "./store.js";

const $ = (id) => document.getElementById(id);
const element = (tag, className, text = "") =>
  Object.assign(document.createElement(tag), { className, textContent: text });

// Rows are made once and then only brought up to date: drawing covers every second would be waste.
const rows = new Map();

function makeRow(episode, index, onChoose) {
  const li = element("li", "episode");
  const art = element("div", "episode__art");
  art.append(cover(episode));
  const middle = element("div", "episode__text");
  const heard = element("div", "episode__heard");
  heard.append(document.createElement("span"));
  middle.append(
    element("p", "episode__number", `Episode ${index + 1} · ${clock(episode.seconds)}`),
    element("h3", "", episode.title),
    element("p", "episode__about", episode.about),
    heard,
  );
  const button = element("button", "round");
  button.type = "button";
  button.addEventListener("click", () => onChoose(episode.id));
  li.append(art, middle, button);
  rows.set(episode.id, { li, button, heard });
  return li;
}

/** Wires list and search; `onChoose(id)` is called when an episode's button is pressed. */
export function startList(onChoose) {
  $("episodes").replaceChildren(...EPISODES.map((episode, index) => makeRow(episode, index, onChoose)));
  $("search").addEventListener("input", () => {
    const query = $("search").value.trim().toLowerCase();
    let found = 0;
    for (const { id, title, about } of EPISODES) {
      const hit = `${title} ${about}`.toLowerCase().includes(query);
      rows.get(id).li.hidden = !hit;
      found += hit;
    }
    $("none").hidden = found > 0;
  });
}

/** Shows which episode is in the player, whether it plays, and how far each was heard. */
export function drawList(playing) {
  const { current, positions } = remembered();
  for (const episode of EPISODES) {
    const { li, button, heard } = rows.get(episode.id);
    const active = episode.id === current;
    li.classList.toggle("episode--current", active);
    button.innerHTML = active && playing ? ICONS.pause : ICONS.play;
    button.setAttribute("aria-label", `${active && playing ? "Pause" : "Play"} ${episode.title}`);
    const share = (positions[episode.id] ?? 0) / episode.seconds;
    heard.hidden = share < 0.01;
    heard.firstChild.style.width = `${Math.min(100, share * 100)}%`;
  }
}
