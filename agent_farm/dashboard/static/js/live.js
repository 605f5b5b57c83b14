/* The builders as they are now: one stream of events, begun anew with a snapshot after every break. */

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

export function connect() {
  const source = new EventSource("/api/events");
  let since = null;
  source.addEventListener("snapshot", (event) => {
    const data = JSON.parse(event.data);
    builders.clear();
    for (const builder of data.builders) builders.set(builder.id, builder);
    Object.assign(farm, data.farm);
    isLoaded = true;
    since = null;
    say("live", data.problem);
    tell([...builders.keys()], [], true);
    for (const listener of [...sessionListeners]) listener();
  });
  source.addEventListener("change", (event) => {
    const data = JSON.parse(event.data);
    for (const builder of data.builders) builders.set(builder.id, builder);
    for (const id of data.removed) builders.delete(id);
    tell(data.builders.map((builder) => builder.id), data.removed, false);
  });
  source.addEventListener("sessions", () => {
    for (const listener of [...sessionListeners]) listener();
  });
  source.addEventListener("problem", (event) => {
    const data = JSON.parse(event.data);
    say("live", data.what ? data : null);
  });
  source.addEventListener("error", async () => {
    since ??= Date.now();
    say(Date.now() - since > 8000 ? "gone" : "connecting");
    if (source.readyState !== EventSource.CLOSED) return;
    /* The browser gives up on an answer that is no stream: logged out, or the server is coming up. */
    const session = await fetch("/api/session").then((answer) => answer.json()).catch(() => null);
    if (session && !session.logged_in) location.assign("/login");
    else setTimeout(connect, 1000);
  });
  addEventListener("pagehide", () => source.close(), { once: true });
}
