// opencode has no hook commands but plugins; this one hands its events to the report command of `af`.
// What differs from start to start lies beside it: the command, the message to go on with, whether a prompt follows.
// Only the main session counts: sub-agents are sessions with a parent.
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";

const { argv, resumed, prompted, door } = await Bun.file(new URL("report.json", import.meta.url)).json();
const told = new Set([
  "session.created", "session.status", "session.idle", "session.error",
  "permission.asked", "permission.replied", "question.asked", "question.replied",
]);
const answers = new Set(["text", "reasoning", "tool"]);
const children = new Set();
let failing = false; // a request failed, and it tries again
let failed = false; // it has given up: the session is idle then, and yet nothing is done

// "bash: touch out.txt": a permission's name alone says too little to answer it.
const asked = (facts) => [facts.permission, (facts.patterns ?? []).join(" ")].filter(Boolean).join(": ");

const send = async (payload) => {
  const child = Bun.spawn(argv, { stdin: "pipe", stdout: "ignore", stderr: "ignore" });
  child.stdin.write(JSON.stringify(payload));
  child.stdin.end();
  await child.exited;
};

// One after the other: two reports at once could arrive in the wrong order, and an ended turn seem to run.
let last = Promise.resolve();
const report = (payload) => {
  last = last.then(() => send(payload)).catch(() => {});
  return last;
};

// `--prompt` does nothing when a session is resumed, so the message is sent from here.
const resume = async (client) => {
  const text = await Bun.file(resumed.file).text();
  await client.session.promptAsync({
    path: { id: resumed.session },
    body: { parts: [{ type: "text", text }] },
  });
};

// Messages of `af send` lie in `door` as ID.json, until one of two renames or removes the file: this, which takes
// it, or `af`, which then types it. ID.done says what came of one that was taken.
let main = resumed?.session; // the session that was spoken in last
let busy = false; // a turn was reported that has not ended
const passed = []; // on their way: ID.done is written when the session has said that it has the text
const HEARD_MS = 30_000;
const taken = async (client, name) => {
  const id = name.slice(0, -".json".length);
  try {
    renameSync(join(door, name), join(door, `${id}.taken`));
  } catch {
    return; // it was taken back
  }
  let error = null;
  try {
    const { text } = JSON.parse(readFileSync(join(door, `${id}.taken`), "utf8"));
    const heard = new Promise((said, never) => {
      passed.push({ text, said });
      setTimeout(never, HEARD_MS, new Error("the session did not say that it has the message"));
    });
    heard.catch(() => {});
    const answer = await client.session.promptAsync({ path: { id: main }, body: { parts: [{ type: "text", text }] } });
    if (answer?.error) error = JSON.stringify(answer.error);
    else await heard;
  } catch (problem) {
    error = String(problem);
  }
  writeFileSync(join(door, `${id}.tmp`), JSON.stringify({ error }));
  renameSync(join(door, `${id}.tmp`), join(door, `${id}.done`));
};

// In the order of their names, one after the other.
let passing = Promise.resolve();
const open = (client) => {
  if (watching || !main || !door) return;
  watching = true;
  rmSync(door, { recursive: true, force: true }); // of a run before
  mkdirSync(door, { mode: 0o700 });
  const look = () => {
    passing = passing.then(async () => {
      for (const name of readdirSync(door).filter((one) => one.endsWith(".json")).sort()) await taken(client, name);
    }).catch(() => {});
  };
  watch(door, look);
  setInterval(look, 1000); // a change that the watch has missed
  writeFileSync(join(door, "open"), String(process.pid));
  look();
};
let watching = false;
let ours;

export const AgentFarm = async ({ client }) => {
  ours = client;
  if (resumed) setTimeout(() => resume(client), 1000);
  else if (!prompted) await report({ hook_event_name: "ready" });
  return hooks;
};

const hooks = {
  "chat.message": async (input, output) => {
    if (children.has(input.sessionID)) return;
    failing = failed = false;
    main = input.sessionID;
    open(ours);
    const said = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic);
    const prompt = said.map((part) => part.text).join("");
    const place = passed.findIndex((one) => one.text === prompt);
    const [own] = place < 0 ? [] : passed.splice(place, 1);
    if (!own || !busy) { // else nothing new, and a report takes longer than a message
      busy = true;
      await report({ hook_event_name: "chat.message", session_id: input.sessionID, prompt });
    }
    own?.said();
  },
  event: async ({ event }) => {
    const facts = event.properties ?? {};
    const session = facts.sessionID ?? facts.info?.id;
    if (event.type === "session.created" && facts.info?.parentID) children.add(session);
    if (failing && event.type === "message.part.updated" && answers.has(facts.part?.type)) {
      failing = false; // the model answers after all
      await report({ hook_event_name: "session.status", session_id: facts.part.sessionID, subtype: "busy" });
    }
    if (!told.has(event.type)) return;
    const asks = event.type.endsWith(".asked") || event.type.endsWith(".replied");
    if (children.has(session) && !asks) return;
    const error = facts.error?.data?.message ?? facts.error?.name ?? facts.status?.message;
    if (event.type === "session.error") {
      if (facts.error?.name === "MessageAbortedError") return;
      failed = true;
    }
    if (event.type === "session.idle" && !children.has(session)) busy = false;
    if (event.type === "session.idle" && failed) return;
    if (event.type === "session.status") {
      const again = failing;
      failing = facts.status?.type === "retry" || (failing && facts.status?.type === "busy");
      if (again && failing) return; // it is busy for a moment with each new try
    }
    await report({
      hook_event_name: event.type,
      session_id: children.has(session) ? undefined : session,
      subtype: facts.status?.type,
      message: error ?? (facts.permission ? asked(facts) : facts.title),
    });
  },
};
