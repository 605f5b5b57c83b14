// @ts-check
/* Prompts that run at set times. */
import { agreeDialog } from "./agree_dialog.js";
import { act } from "./api.js";
import { h, line, plain, replace } from "./dom.js";
import { dropDraft, withDraft } from "./drafts.js";
import { moment } from "./format.js";
import { keyedList } from "./keyed_list.js";
import { ask, errorBox, toast } from "./messages.js";

export function schedulesBox(view) {
  const read = view.newest();
  const list = h("div.box-list");
  const says = h("div");
  const failed = h("div");
  const element = h(
    "section.card.box",
    { "aria-labelledby": "schedules-title" },
    h("h2", { id: "schedules-title" }, "Schedules"),
    failed,
    says,
    list,
    h("div.row-end", h("button", { type: "button", onclick: () => add(load) }, "Add …")),
  );
  const place = keyedList(
    list,
    (one) => schedule(one),
    (one) => `${one.butler}/${one.name}`,
  );
  async function load() {
    try {
      const { schedules } = await read("schedule_list");
      place(schedules);
      replace(
        says,
        schedules.length ? null : h("p.dim.small", "There are none. A schedule runs a prompt at set times."),
      );
    } catch (error) {
      replace(says, errorBox(error));
    }
  }
  const carryOut = async (button, action) => {
    button.disabled = true;
    replace(failed);
    try {
      await action();
    } catch (error) {
      replace(failed, errorBox(error));
    }
    load();
  };
  const named = ({ name, butler }) => ({ name, butler });
  const button = (one, text, action) =>
    h(
      "button",
      {
        type: "button",
        "aria-label": `${text} ${one.name}`,
        onclick: (event) => carryOut(event.currentTarget, action),
      },
      text,
    );
  const when = (one) =>
    !one.enabled
      ? "disabled"
      : one.agreed === false
        ? "not agreed to, so it does not fire"
        : one.next_due === null
          ? "over"
          : `next ${moment(one.next_due)}`;
  const schedule = (one) =>
    h(
      "div.schedule",
      h(
        "div.row",
        h("strong", plain(one.name)),
        h("code", plain(one.cron)),
        one.timezone ? h("span.small.dim", plain(one.timezone)) : null,
      ),
      h("p.small.isolate", line(one.prompt).slice(0, 200)),
      h(
        "p.small.dim",
        when(one),
        " · ",
        plain(one.butler),
        one.cwd ? ` · in ${plain(one.cwd)}` : "",
        one.origin === "file" ? " · from butler.toml" : "",
      ),
      h(
        "div.row",
        one.agreed === false ? button(one, "Read and agree …", agreeDialog) : null,
        button(one, "Run now", async () => {
          const { session_id: id } = await act("schedule_run", { ...named(one), wait: false });
          toast(`session ${id.slice(0, 8)} accepted`, `#/session/${id}`);
        }),
        button(one, one.enabled ? "Disable" : "Enable", () =>
          act("schedule_update", { ...named(one), enabled: !one.enabled }),
        ),
        one.origin === "file" ? null : button(one, "Remove", () => act("schedule_delete", named(one))),
      ),
    );
  load();
  return { element, load };
}

function add(done) {
  return ask("Add a schedule", (close) => {
    const draft = (name) => `schedule ${name}`;
    const field = (name, label, placeholder, hint) => {
      const look = { id: `add-${name}`, name, placeholder, autocomplete: "off" };
      const input = withDraft(draft(name), h(name === "prompt" ? "textarea" : "input", look));
      return h("div.field", h("label", { for: look.id }, label), input, hint ? h("span.hint", hint) : null);
    };
    const failed = h("div");
    const form = h(
      "form.stack",
      field("name", "Name", "daily_digest"),
      field("cron", "Cron", "0 8 * * 1-5", "minute hour day month weekday"),
      field("timezone", "Time zone (optional)", "Europe/Berlin"),
      field("prompt", "Prompt", "Write the digest of yesterday's commits"),
      failed,
      h(
        "div.row",
        h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
        h("button", { type: "submit", class: "primary" }, "Add"),
      ),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const given = Object.fromEntries(new FormData(form));
      try {
        await act("schedule_create", { ...given, timezone: given.timezone || null });
        for (const name of Object.keys(given)) dropDraft(draft(name));
        close(true);
        done();
      } catch (error) {
        replace(failed, errorBox(error));
      }
    });
    return form;
  });
}
