// @ts-check
/* The builders as they are now: one stream of events, begun anew with a snapshot after every break. */
import { EventStream } from "./event_stream.js";
import { leaveToLogin, login, noteProof } from "./login_store.js";

export const builders = new Map();
export const farm = { name: "agent-farm", root: "", version: "", terminal: "screen" };
let isLoaded = false;

const listeners = new Set();
const sessionListeners = new Set();
const landingListeners = new Set();
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

export function followLanding(listener) {
  landingListeners.add(listener);
  return () => landingListeners.delete(listener);
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

const told = {
  connection({ state }) {
    if (state === "unknown") return begin(shown);
    noteProof(state === "ours");
    if (state !== "ours") say(state);
  },
  snapshot(data) {
    builders.clear();
    for (const builder of data.builders) builders.set(builder.id, builder);
    Object.assign(farm, data.farm);
    isLoaded = true;
    say("live", data.problem);
    tell([...builders.keys()], [], true);
    for (const listener of [...sessionListeners, ...landingListeners]) listener();
  },
  change(data) {
    for (const builder of data.builders) builders.set(builder.id, builder);
    for (const id of data.removed) builders.delete(id);
    const changed = data.builders.map((builder) => builder.id);
    tell(changed, data.removed, false);
  },
  sessions() {
    for (const listener of [...sessionListeners]) listener();
  },
  landing() {
    for (const listener of [...landingListeners]) listener();
  },
  problem(data) {
    say("live", data.what ? data : null);
  },
};

const hear = (event, data) => told[event]?.(data);

/** The login that the stream was begun with.
 * @type {string | null} */
let shown = null;
/** @type {(login: string) => void} */
let start;

export function connect() {
  const alone = (login) => new EventStream(login, hear);
  try {
    const worker = new SharedWorker("/static/js/live_worker.js", { type: "module", name: "agent-farm live 1" });
    start = share(worker.port);
    worker.addEventListener("error", () => {
      start = alone; // a browser that shares no modules between its tabs has a stream for each
      begin(null);
    });
  } catch {
    start = alone;
  }
  begin(null);
}

/** Somebody may have logged in anew in another tab since the `refused` login was shown.
 * @param {string | null} refused */
function begin(refused) {
  shown = login();
  if (!shown || shown === refused) return leaveToLogin();
  start(shown);
}

/** @param {MessagePort} port */
function share(port) {
  port.addEventListener("message", ({ data }) => hear(data.event, data.data));
  port.start();
  addEventListener("pagehide", () => port.postMessage({ leaves: true }));
  addEventListener("pageshow", (event) => event.persisted && begin(null));
  return (login) => port.postMessage({ login });
}
