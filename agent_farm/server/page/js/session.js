// @ts-check
/* One session whole: stopped while it runs, gone on with once it has ended. */
import { act } from "./api.js";
import { drawnOnce, h, icon, plain, replace } from "./dom.js";
import { dropDraft, withDraft } from "./drafts.js";
import { count, moment, money, seconds } from "./format.js";
import { followSessions } from "./live.js";
import { errorBox, toast } from "./messages.js";
import { pill } from "./states.js";

export function sessionView(view, id) {
  const read = view.newest();
  const differs = drawnOnce();
  /** @type {any} */
  let form = null; // made once: what is being written or clicked is not replaced
  const goingOn = (session) => (form ??= goOn(view, session));
  async function load() {
    try {
      const { session } = await read("sessions_get", { session_id: id });
      if (differs("session", session)) draw(view, session, goingOn);
    } catch (error) {
      view.show(errorBox(error));
    }
  }
  view.show(h("p.loading", "Loading …"));
  load();
  view.onLeave(followSessions(view.rarely(500, load)));
}

const RUNS = new Set(["queued", "running"]);

function draw(view, one, goingOn) {
  const failed = h("div");
  const fact = (name, value) =>
    value === null || value === undefined || value === "" ? null : [h("dt", name), h("dd", value)];
  const text = (title, value) =>
    value ? [h("h2", title), h("div.card.prose.isolate", { tabindex: "0" }, plain(value))] : null;
  const calls = Array.isArray(one.tool_calls) ? one.tool_calls : [];
  view.show(
    h(
      "div.builder-view.panel",
      h(
        "div.builder-head",
        h(
          "div.line",
          h("a.button.quiet.back", { href: "#/sessions" }, icon("back"), "Sessions"),
          pill(one.state),
          h("code", one.id),
          RUNS.has(one.state) ? h("div.actions", stopButton(one, failed)) : null,
        ),
        h("h1.visually-hidden", "Session"),
      ),
      failed,
      one.error ? errorBox({ what: one.error }) : null,
      h(
        "dl.whole.card.box",
        fact("source", plain(one.trigger_source)),
        fact("butler", plain(one.butler)),
        fact("runtime", plain(one.runtime)),
        fact("model", one.model && plain(one.model)),
        fact("created", moment(one.created_at)),
        fact("took", one.duration === null ? null : seconds(one.duration)),
        fact(
          "tokens in / out",
          one.input_tokens === null ? null : `${count(one.input_tokens)} / ${count(one.output_tokens)}`,
        ),
        fact("cost", one.cost === null ? null : money(one.cost)),
        fact("conversation", one.conversation_id && plain(one.conversation_id)),
        fact("directory", one.cwd && plain(one.cwd)),
        fact("trace", one.trace_id && plain(one.trace_id)),
      ),
      text("Context", one.context),
      text("Prompt", one.prompt),
      text("Output", one.output),
      one.conversation_id && !RUNS.has(one.state) ? goingOn(one) : null,
      h("h2", `Tool calls (${calls.length})`),
      calls.length
        ? h(
            "div.card.box",
            calls.map((call) =>
              h(
                "div.call",
                h("strong.mono", plain(call.name)),
                call.is_error ? h("span.failure", " failed") : null,
                h(
                  "pre.mono",
                  { tabindex: "0" },
                  plain(JSON.stringify(call.input, null, 1) ?? "").replaceAll("\u240a", "\n"),
                ),
              ),
            ),
          )
        : h("p.dim", "None."),
    ),
  );
}

function stopButton(one, failed) {
  return h(
    "button",
    {
      type: "button",
      class: "danger",
      "data-action": "stop",
      onclick: async (event) => {
        const button = event.currentTarget;
        button.disabled = true;
        try {
          await act("sessions_stop", { session_ids: [one.id] });
          toast(`session ${one.id.slice(0, 8)} stopped`);
        } catch (error) {
          replace(failed, errorBox(error));
          button.disabled = false;
        }
      },
    },
    "Stop",
  );
}

/* The same conversation, with another prompt: a session of its own. */
function goOn(view, one) {
  const prompt = h("textarea", {
    rows: "2",
    "aria-label": "Continue this conversation",
    placeholder: "Continue this conversation",
  });
  const draft = `prompt ${one.id}`;
  withDraft(draft, prompt);
  const button = h("button", { type: "submit", class: "primary" }, "Go on");
  const failed = h("div");
  const form = h("form.card.box", prompt, failed, h("div.row-end", button));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled || !prompt.value.trim()) return;
    button.disabled = true;
    try {
      const { session_id: id } = await act("trigger", {
        prompt: prompt.value,
        resume: one.id,
        wait: false,
      });
      dropDraft(draft);
      if (!view.isOver) location.hash = `#/session/${encodeURIComponent(id)}`;
    } catch (error) {
      replace(failed, errorBox(error));
    }
    button.disabled = false;
  });
  return [h("h2", "Go on"), form];
}
