"""opencode has no hook commands but plugins; ours hands its events to the report command."""

from __future__ import annotations

import json

# Only the main session counts: sub-agents are sessions with a parent.
_PLUGIN = """\
const argv = %s;
const told = new Set([
  "session.created", "session.status", "session.idle", "session.error",
  "permission.asked", "permission.replied", "question.asked", "question.replied",
]);
const children = new Set();

const report = async (payload) => {
  const child = Bun.spawn(argv, { stdin: "pipe", stdout: "ignore", stderr: "ignore" });
  child.stdin.write(JSON.stringify(payload));
  child.stdin.end();
  await child.exited;
};

export const AgentFarm = async () => ({
  "chat.message": async (input) => {
    if (children.has(input.sessionID)) return;
    await report({ hook_event_name: "chat.message", session_id: input.sessionID });
  },
  event: async ({ event }) => {
    const facts = event.properties ?? {};
    const session = facts.sessionID ?? facts.info?.id;
    if (event.type === "session.created" && facts.info?.parentID) children.add(session);
    if (!told.has(event.type)) return;
    const asks = event.type.endsWith(".asked") || event.type.endsWith(".replied");
    if (children.has(session) && !asks) return;
    const error = facts.error?.data?.message ?? facts.error?.name;
    if (event.type === "session.error" && facts.error?.name === "MessageAbortedError") return;
    await report({
      hook_event_name: event.type,
      session_id: children.has(session) ? undefined : session,
      subtype: facts.status?.type,
      message: error ?? facts.permission ?? facts.title,
    });
  },
});
"""


def report_plugin(argv: tuple[str, ...]) -> str:
    return _PLUGIN % json.dumps(argv)
