// Which start times a practitioner can offer.
import { SESSIONS, TAKEN_ELSEWHERE } from "./data.js";
import { toMinutes, toTime } from "./time.js";
import { upcoming } from "./store.js";

const GRID = 30;

/** The clinic's start times of a day, as lists of "HH:MM", one list for each session. */
export function startTimes() {
  return SESSIONS.map(({ from, to }) => {
    const times = [];
    for (let at = from; at < to; at += GRID) times.push(toTime(at));
    return times;
  });
}

/** Busy stretches of a practitioner's day as [from, to) in minutes. */
function busy(practitioner, day) {
  const elsewhere = (TAKEN_ELSEWHERE[practitioner] ?? [])
    .filter((entry) => entry.startsWith(day))
    .map((entry) => [toMinutes(entry.slice(11)), toMinutes(entry.slice(11)) + GRID]);
  const here = upcoming()
    .filter((booked) => booked.practitioner === practitioner && booked.day === day)
    // A short visit still takes its whole place on the grid: the room has to be made ready.
    .map((booked) => [toMinutes(booked.time), toMinutes(booked.time) + Math.max(GRID, booked.minutes)]);
  return [...elsewhere, ...here];
}

/** Whether a visit can start at this time: nothing else is going on then. */
export function isFree(practitioner, day, time) {
  const from = toMinutes(time);
  const to = from + GRID;
  return busy(practitioner, day).every(([start, end]) => to <= start || from >= end);
}
