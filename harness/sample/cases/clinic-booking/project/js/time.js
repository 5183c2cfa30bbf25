// Times are "HH:MM" and days "YYYY-MM-DD" throughout: they sort as text and need no time zone.

export const toMinutes = (time) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

export const toTime = (minutes) =>
  `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;

export const addMinutes = (time, minutes) => toTime(toMinutes(time) + minutes);

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** "2026-09-15" → "Tue 15 Sep". */
export function dayLabel(day) {
  const [year, month, date] = day.split("-").map(Number);
  return `${WEEKDAYS[new Date(year, month - 1, date).getDay()]} ${date} ${MONTHS[month - 1]}`;
}
