// @ts-check
/* The builders as they are now: one stream of events, begun anew with a snapshot after every break. */
import { askWhoAnswers, leaveToLogin, login, noteBreak, openSocket } from "./login_store.js";

export const builders = new Map();
export const farm = { name: "agent-farm", root: "", version: "", terminal: "screen" };
let isLoaded = false;

const listeners = new Set();
const sessionListeners = new Set();
const connectionListeners = new Set();

/* `listener(changed ids, removed ids, all)`; the answer ends it. */
export function follow(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function followSessions(listener) {
  sessionListeners.add(listener);
  return () => sessionListeners.delete(listener);
}

export function followConnection(listener) {
  connectionListeners.add(listener);
}

export const hasLoaded = () => isLoaded;

function tell(changed, removed, all) {
  for (const listener of [...listeners]) listener(changed, removed, all);
}

function say(state, problem) {
  for (const listener of connectionListeners) listener(state, problem);
}

/** @type {number | null} */
let since = null;

const told = {
  snapshot(data) {
    builders.clear();
    for (const builder of data.builders) builders.set(builder.id, builder);
    Object.assign(farm, data.farm);
    isLoaded = true;
    since = null;
    say("live", data.problem);
    tell([...builders.keys()], [], true);
    for (const listener of [...sessionListeners]) listener();
  },
  change(data) {
    for (const builder of data.builders) builders.set(builder.id, builder);
    for (const id of data.removed) builders.delete(id);
    tell(
      data.builders.map((builder) => builder.id),
      data.removed,
      false,
    );
  },
  sessions() {
    for (const listener of [...sessionListeners]) listener();
  },
  problem(data) {
    say("live", data.what ? data : null);
  },
};

export async function connect() {
  if (!login()) return leaveToLogin();
  const who = await askWhoAnswers();
  if (who === "unknown") return leaveToLogin();
  if (who === "gone") return comeAgain();
  const socket = openSocket("/api/events");
  socket.addEventListener("message", (message) => {
    const { event, data } = JSON.parse(message.data);
    told[event]?.(data);
  });
  socket.addEventListener("close", comeAgain);
}

function comeAgain() {
  noteBreak();
  since ??= Date.now();
  say(Date.now() - since > 8000 ? "gone" : "connecting");
  setTimeout(connect, 1000);
}
