// @ts-check
/* One stream of events for all tabs of a browser. A tab says with which login it comes, and that it leaves. */
import { EventStream } from "./event_stream.js";

/** @type {Set<MessagePort>} */
const tabs = new Set();
const builders = new Map();
/** @type {EventStream | null} */
let stream = null;
/** What a tab that comes later has missed.
 * @type {{ connection: any, snapshot: any, problem: any }} */
let last = { connection: null, snapshot: null, problem: null };

const note = {
  connection(data) {
    if (data.state !== "ours") last.snapshot = null;
    if (data.state === "unknown") stream = null;
    last.connection = data;
  },
  snapshot(data) {
    builders.clear();
    for (const builder of data.builders) builders.set(builder.id, builder);
    last.snapshot = data;
    last.problem = data.problem;
  },
  change(data) {
    for (const builder of data.builders) builders.set(builder.id, builder);
    for (const id of data.removed) builders.delete(id);
  },
  problem(data) {
    last.problem = data.what ? data : null;
  },
};

function tell(event, data) {
  note[event]?.(data);
  for (const tab of tabs) tab.postMessage({ event, data });
}

function begin(login) {
  stream?.end();
  last = { connection: null, snapshot: null, problem: null };
  stream = new EventStream(login, (event, data) => stream?.login === login && tell(event, data));
}

function join(tab, login) {
  tabs.add(tab);
  if (stream?.login !== login) return begin(login);
  if (last.connection) tab.postMessage({ event: "connection", data: last.connection });
  if (!last.snapshot) return;
  const data = { ...last.snapshot, builders: [...builders.values()], problem: last.problem };
  tab.postMessage({ event: "snapshot", data });
}

function leave(tab) {
  tabs.delete(tab);
  if (tabs.size) return;
  stream?.end();
  stream = null;
}

/** @type {any} */ (self).addEventListener("connect", ({ ports: [tab] }) => {
  tab.addEventListener("message", ({ data }) => (data.login ? join(tab, data.login) : leave(tab)));
  tab.start();
});
