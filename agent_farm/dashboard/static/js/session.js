/* One session whole. */
import { drawnOnce, h, icon, plain, replace } from "./dom.js";
import { count, moment, money, seconds } from "./format.js";
import { followSessions } from "./live.js";
import { errorBox } from "./messages.js";
import { pill } from "./states.js";

export function sessionView(view, id) {
  const read = view.newest();
  const differs = drawnOnce();
  async function load() {
    try {
      const { session } = await read(`/api/sessions/${encodeURIComponent(id)}`);
      if (differs("session", session)) draw(view.place, session);
    } catch (error) {
      view.show(errorBox(error));
    }
  }
  view.show(h("p", { class: "loading" }, "Loading …"));
  load();
  view.onLeave(followSessions(view.rarely(500, load)));
}

function draw(main, one) {
  const fact = (name, value) => value === null || value === undefined || value === "" ? null : [h("dt", null, name), h("dd", null, value)];
  const text = (title, value) => value ? [h("h2", null, title), h("div", { class: "card prose isolate", tabindex: "0" }, plain(value))] : null;
  const calls = Array.isArray(one.tool_calls) ? one.tool_calls : [];
  replace(main, h("div", { class: "builder-view panel" },
    h("div", { class: "builder-head" }, h("div", { class: "line" }, h("a", { class: "button quiet back", href: "#/sessions" }, icon("back"), "Sessions"), pill(one.state), h("code", null, one.id)), h("h1", { class: "visually-hidden" }, "Session")),
    one.error ? errorBox({ what: one.error }) : null,
    h("dl", { class: "whole card box" },
      fact("source", plain(one.trigger_source)), fact("butler", plain(one.butler)), fact("runtime", plain(one.runtime)), fact("model", one.model && plain(one.model)),
      fact("created", moment(one.created_at)), fact("took", one.duration === null ? null : seconds(one.duration)), fact("tokens in / out", one.input_tokens === null ? null : `${count(one.input_tokens)} / ${count(one.output_tokens)}`),
      fact("cost", one.cost === null ? null : money(one.cost)), fact("conversation", one.conversation_id && plain(one.conversation_id)), fact("directory", one.cwd && plain(one.cwd)), fact("trace", one.trace_id && plain(one.trace_id))),
    text("Prompt", one.prompt), text("Output", one.output),
    h("h2", null, `Tool calls (${calls.length})`),
    calls.length ? h("div", { class: "card box" }, calls.map((call) => h("div", { class: "call" }, h("strong", { class: "mono" }, plain(call.name)), call.is_error ? h("span", { class: "failure" }, " failed") : null,
      h("pre", { class: "mono", tabindex: "0" }, plain(JSON.stringify(call.input, null, 1) ?? "").replaceAll("\u240a", "\n"))))) : h("p", { class: "dim" }, "None.")));
}
