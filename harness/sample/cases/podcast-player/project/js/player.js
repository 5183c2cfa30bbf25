// The player: one audio element, its buttons and its two sliders.
import { cover } from "./art.js";
import { findEpisode } from "./data.js";
import { clock } from "./format.js";
import { ICONS } from "./icons.js";
import { remember, remembered, rememberPosition } from "./store.js";

const $ = (id) => document.getElementById(id);
const audio = $("audio");

/** Length of what is loaded; the season's own figure until the file's header is here. */
function length() {
  return Number.isFinite(audio.duration) ? audio.duration : findEpisode(remembered().current).seconds;
}

function drawProgress() {
  $("position").max = Math.floor(length());
  $("position").value = audio.currentTime;
  $("position").setAttribute("aria-valuetext", `${clock(audio.currentTime)} of ${clock(length())}`);
  $("elapsed").textContent = clock(audio.currentTime);
  $("remaining").textContent = `-${clock(length() - audio.currentTime)}`;
}

function drawToggle() {
  $("toggle").innerHTML = audio.paused ? ICONS.play : ICONS.pause;
  $("toggle").setAttribute("aria-label", audio.paused ? "Play" : "Pause");
}

/** Puts an episode into the player where the listener left it; a heard-out one starts again. */
export function load(id) {
  const episode = findEpisode(id);
  const left = remembered().positions[id] ?? 0;
  remember({ current: id });
  audio.src = episode.file;
  audio.currentTime = left < episode.seconds - 2 ? left : 0;
  $("player-art").replaceChildren(cover(episode));
  $("player-title").textContent = episode.title;
  $("player-about").textContent = episode.about;
  drawProgress();
}

export function play() {
  // The browser may refuse to start without a click; the button then simply stays on Play.
  audio.play().catch(drawToggle);
}

export const pause = () => audio.pause();
export const isPlaying = () => !audio.paused;

/** Wires the player once; `onChange()` is called when it starts, stops or gets on by a second. */
export function startPlayer(onChange) {
  let shown = -1;
  audio.addEventListener("timeupdate", () => {
    drawProgress();
    const second = Math.floor(audio.currentTime);
    if (second === shown) return;
    shown = second;
    rememberPosition(remembered().current, audio.currentTime);
    onChange();
  });
  for (const event of ["play", "pause", "ended"]) {
    audio.addEventListener(event, () => {
      drawToggle();
      onChange();
    });
  }
  audio.addEventListener("loadedmetadata", drawProgress);
  $("toggle").addEventListener("click", () => (audio.paused ? play() : pause()));
  $("position").addEventListener("input", () => { audio.currentTime = Number($("position").value); });
  $("volume").value = remembered().volume;
  audio.volume = remembered().volume;
  $("volume").addEventListener("input", () => {
    audio.volume = Number($("volume").value);
    remember({ volume: audio.volume });
  });
  drawToggle();
}
