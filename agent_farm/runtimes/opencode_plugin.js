// opencode has no hook commands but plugins; this one hands its events to the report command of `af`.
// What differs from start to start lies beside it: the command, the message to go on with, whether a prompt follows.
// Only the main session counts: sub-agents are sessions with a parent.
const { argv, resumed, prompted } = await Bun.file(new URL("report.json", import.meta.url)).json();
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

export const AgentFarm = async ({ client }) => {
  if (resumed) setTimeout(() => resume(client), 1000);
  else if (!prompted) await report({ hook_event_name: "ready" });
  return hooks;
};

const hooks = {
  "chat.message": async (input, output) => {
    if (children.has(input.sessionID)) return;
    failing = failed = false;
    const said = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic);
    const prompt = said.map((part) => part.text).join("");
    await report({ hook_event_name: "chat.message", session_id: input.sessionID, prompt });
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
