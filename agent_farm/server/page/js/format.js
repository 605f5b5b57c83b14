// @ts-check
/* Times, sizes and money for people. */

/** @type {[number, string][]} */
const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "m"],
];

export function age(at, now = Date.now() / 1000) {
  if (!at) return "";
  const seconds = Math.max(0, now - at);
  for (const [size, unit] of UNITS) {
    if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  }
  return `${Math.floor(seconds)}s`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

export function moment(at) {
  if (!at) return "–";
  const date = new Date(at * 1000);
  return Math.abs(Date.now() - date.getTime()) < 43200e3 ? clock.format(date) : day.format(date);
}

export function iso(at) {
  return new Date(at * 1000).toISOString();
}

export function count(number) {
  if (number === null || number === undefined) return "–";
  if (number < 1000) return String(Math.round(number));
  if (number < 1e6) return `${(number / 1000).toFixed(number < 1e4 ? 1 : 0)}k`;
  return `${(number / 1e6).toFixed(1)}M`;
}

export function money(number) {
  if (number === null || number === undefined) return "–";
  return number > 0 && number < 0.005 ? "<$0.01" : `$${number.toFixed(2)}`;
}

export function seconds(number) {
  if (number === null || number === undefined) return "–";
  return number < 100 ? `${number.toFixed(1)} s` : `${Math.round(number / 60)} min`;
}
