// @ts-check
/* The words of design: types, states, and who needs a person first. */
import { h, icon } from "./dom.js";

export const TYPES = [
  ["spec", "Specs"],
  ["task", "Tasks"],
  ["protocol", "Protocols"],
  ["shell", "Shells"],
];

export const STATES = [
  "waiting",
  "interrupted",
  "failed",
  "lost",
  "unknown",
  "idle",
  "limited",
  "working",
  "preparing",
  "creating",
  "queued",
  "exited",
  "stopped",
];
export const FINISHED = new Set(["exited", "failed", "stopped", "lost"]);

/* Where nothing goes on until a person has looked. */
const NEEDS_PERSON = new Set(["waiting", "failed", "interrupted", "lost", "unknown"]);
export const needsPerson = (builder) => NEEDS_PERSON.has(builder.status.state);

export function urgency(builder) {
  const place = STATES.indexOf(builder.status.state);
  return place < 0 ? STATES.length : place;
}

export function byUrgency(a, b) {
  return urgency(a) - urgency(b) || (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : 0);
}

const ICONS = {
  creating: "preparing",
  limited: "preparing",
  queued: "preparing",
  running: "working",
  completed: "exited",
  cancelled: "stopped",
  interrupted: "failed",
};

export function pill(state) {
  return h("span.pill", { "data-state": state }, icon(ICONS[state] || state), state);
}
