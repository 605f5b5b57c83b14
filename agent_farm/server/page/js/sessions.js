// @ts-check
/* The butler's sessions: what they cost over time, one by one, on schedule, and a new one. */
import { act } from "./api.js";
import { byId, drawnOnce, h, line, replace } from "./dom.js";
import { count, iso, moment, money, seconds } from "./format.js";
import { keyedList } from "./keyed_list.js";
import { followSessions } from "./live.js";
import { errorBox, toast } from "./messages.js";
import { barPlot } from "./plot.js";
import { schedulesBox } from "./schedules.js";
import { pill } from "./states.js";

const SPANS = [
  ["3600", "last hour"],
  ["86400", "last day"],
  ["604800", "last week"],
  ["2592000", "last 30 days"],
];
const STATES = ["queued", "running", "completed", "failed", "cancelled", "interrupted"];
const PAGE = 100;
const RELOAD_MILLISECONDS = 1000;
const chosen = { span: "86400", state: "", source: "", prompt: "" };

export function sessionsView(view) {
  const choice = (id, label, options) => {
    const select = h(
      "select",
      { id },
      options.map(([value, text]) => h("option", { value }, text)),
    );
    select.value = chosen[id] ?? "";
    select.addEventListener("change", () => {
      chosen[id] = select.value;
      load();
    });
    return h("div.field", h("label", { for: id }, label), select);
  };
  const source = h("input", { id: "source", value: chosen.source, placeholder: "schedule:daily" });
  source.addEventListener("change", () => {
    chosen.source = source.value.trim();
    load();
  });
  const plots = h("div.plots");
  const says = h("div", h("p.loading", "Loading …"));
  const table = sessionTable(says);
  const older = h("button", { type: "button", hidden: true, onclick: showOlder }, "Show older ones");
  const schedules = schedulesBox(view);
  view.show(
    h(
      "div.sessions-head",
      h("h1", "Sessions"),
      choice("span", "Time", SPANS),
      choice("state", "State", [["", "all"], ...STATES.map((one) => [one, one])]),
      h("div.field", h("label", { for: "source" }, "Trigger source"), source),
    ),
    plots,
    h("div.two", h("div.stack", table.element, older, says), h("div.side", triggerBox(view, load), schedules.element)),
  );

  const [readSessions, readUsage] = [view.newest(), view.newest()];
  const drawn = drawnOnce();
  let most = PAGE;
  function showOlder() {
    most += PAGE;
    load();
  }
  async function load() {
    const since = Date.now() / 1000 - Number(chosen.span);
    const query = { since, limit: most, state: chosen.state, source: chosen.source };
    try {
      const [found, usage] = await Promise.all([
        readSessions("sessions_list", query),
        readUsage("usage", { seconds: chosen.span }),
      ]);
      const sums = usage.buckets.map((bucket) => ({ ...bucket, at: null }));
      if (drawn("plots", sums)) drawPlots(plots, usage.buckets);
      table.draw(found.sessions);
      older.hidden = found.sessions.length < most;
    } catch (error) {
      replace(says, errorBox(error));
    }
  }
  load();
  const reload = view.rarely(RELOAD_MILLISECONDS, load);
  const reloadSchedules = view.rarely(5 * RELOAD_MILLISECONDS, schedules.load);
  view.onLeave(
    followSessions(() => {
      reload();
      reloadSchedules();
    }),
  );
}

function drawPlots(place, buckets) {
  const sum = (name) => buckets.reduce((total, bucket) => total + bucket[name], 0);
  replace(
    place,
    barPlot({
      title: "Sessions",
      total: count(sum("sessions")),
      buckets,
      show: count,
      series: [
        { name: "ended or running", of: (one) => one.sessions - one.failed, bar: "bar-1", legend: "l1" },
        { name: "failed", of: (one) => one.failed, bar: "bar-bad", legend: "lbad" },
      ],
    }),
    barPlot({
      title: "Tokens",
      total: count(sum("input_tokens") + sum("output_tokens")),
      buckets,
      show: count,
      series: [
        { name: "input", of: (one) => one.input_tokens, bar: "bar-3", legend: "l3" },
        { name: "output", of: (one) => one.output_tokens, bar: "bar-2", legend: "l2" },
      ],
    }),
    barPlot({
      title: "Cost",
      total: money(sum("cost")),
      buckets,
      show: money,
      series: [{ name: "cost", of: (one) => one.cost, bar: "bar-2", legend: "l2" }],
    }),
  );
}

const COLUMNS = [
  ["State"],
  ["Prompt"],
  ["Source", "wide"],
  ["Runtime", "wide"],
  ["Tools", "number wide"],
  ["Tokens", "number"],
  ["Cost", "number"],
  ["Took", "number wide"],
  ["When"],
];

function sessionTable(says) {
  const body = h("tbody");
  const heads = COLUMNS.map(([text, style]) => h("th", { scope: "col", class: style || null }, text));
  const table = h("table.list", h("thead", h("tr", heads)), body);
  const card = { tabindex: "0", role: "region", "aria-label": "Sessions", hidden: true };
  const element = h("div.card.scroll", card, table);
  const place = keyedList(body, row);
  return {
    element,
    draw(sessions) {
      element.hidden = !sessions.length;
      place(sessions);
      replace(says, sessions.length ? null : none());
    },
  };
}

const none = () =>
  h(
    "div.empty.card",
    h("p", "No sessions in this time."),
    h("button", { type: "button", onclick: () => byId("prompt").focus() }, "Trigger one"),
  );

function row(one) {
  const tokens =
    one.input_tokens === null && one.output_tokens === null ? null : (one.input_tokens || 0) + (one.output_tokens || 0);
  return h(
    "tr",
    { "data-session": one.id },
    h("td", pill(one.state)),
    h(
      "td.prompt.isolate",
      h("a", { href: `#/session/${encodeURIComponent(one.id)}` }, line(one.prompt) || "(empty)"),
      one.error ? h("div.failure", line(one.error)) : null,
    ),
    h("td.mono.wide", line(one.trigger_source), h("div.small.dim", line(one.butler))),
    h("td.wide", one.runtime),
    h("td.number.wide", one.tool_calls ?? "–"),
    h("td.number", count(tokens)),
    h("td.number", money(one.cost)),
    h("td.number.wide", seconds(one.duration)),
    h("td.nowrap", h("time", { datetime: iso(one.created_at) }, moment(one.created_at))),
  );
}

function triggerBox(view, done) {
  const prompt = h("textarea", { id: "prompt", rows: "3", placeholder: "Check the nightly build" });
  prompt.value = chosen.prompt;
  prompt.addEventListener("input", () => {
    chosen.prompt = prompt.value;
  });
  const runtime = h("select", { id: "trigger-runtime" }, h("option", { value: "" }, "the butler's own"));
  const turns = h("input", { id: "turns", type: "number", min: "1", max: "1000", value: "20" });
  const failed = h("div");
  const button = h("button", { type: "submit", class: "primary" }, "Trigger");
  view
    .read("choices")
    .then((choices) => {
      for (const one of choices.runtimes)
        runtime.append(
          h(
            "option",
            { value: one.name, title: one.problem || "" },
            one.problem ? `${one.name} (not usable)` : one.name,
          ),
        );
    })
    .catch(() => {});
  const form = h(
    "form.card.box",
    { "aria-labelledby": "trigger-title" },
    h("h2", { id: "trigger-title" }, "Trigger a session"),
    h("div.field", h("label", { for: "prompt" }, "Prompt"), prompt),
    h("div.field", h("label", { for: "trigger-runtime" }, "Runtime"), runtime),
    h("div.field", h("label", { for: "turns" }, "Most turns"), turns),
    failed,
    h("div.row-end", button),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    replace(failed);
    try {
      const { session_id: id } = await act("trigger", {
        wait: false,
        prompt: prompt.value,
        runtime: runtime.value || null,
        max_turns: Number(turns.value) || 20,
      });
      prompt.value = chosen.prompt = "";
      toast(`session ${id.slice(0, 8)} accepted`);
      done();
    } catch (error) {
      replace(failed, errorBox(error));
    }
    button.disabled = false;
  });
  return form;
}
