// @ts-check
/* What builders cost, in tokens and money: by day, by runtime, by builder and for each change that has landed. */
import { h, line, replace } from "./dom.js";
import { count, money } from "./format.js";
import { errorBox } from "./messages.js";
import { nameBars } from "./plot.js";

const SPANS = [
  ["1", "last day"],
  ["7", "last week"],
  ["30", "last 30 days"],
  ["365", "last year"],
];
const MOST_BARS = 30;
const chosen = { days: "30" };

export function costsView(view) {
  const read = view.newest();
  const span = h(
    "select",
    { id: "days" },
    SPANS.map(([value, text]) => h("option", { value }, text)),
  );
  span.value = chosen.days;
  span.addEventListener("change", () => {
    chosen.days = span.value;
    load();
  });
  const place = h("div.stack", { "aria-live": "polite" }, h("p.loading", "Loading …"));
  view.show(h("div.sessions-head", h("h1", "Costs"), h("div.field", h("label", { for: "days" }, "Time"), span)), place);
  async function load() {
    try {
      const found = await read("costs", { days: chosen.days });
      replace(
        place,
        found.builders.length
          ? parts(found)
          : h("p.empty.card", "No builder has reported tokens in this time. Runtimes do so after each turn."),
      );
    } catch (error) {
      replace(place, errorBox(error));
    }
  }
  load();
}

function parts({ total, landed, per_landed: each, builders, days }) {
  const byDay = grouped(days, (one) => one.day);
  const byRuntime = grouped(days, (one) => one.runtime);
  const ofBuilders = builders.map((one) => ({ ...one, name: one.id }));
  const plots = (title, rows) => [
    nameBars({ title: `Tokens by ${title}`, rows, of: tokens, show: count }),
    rows.some((one) => one.cost) ? nameBars({ title: `Cost by ${title}`, rows, of: cost, show: money }) : null,
  ];
  return [
    h(
      "dl.facts.card.box",
      fact("tokens", `${count(total.input_tokens)} in, ${count(total.output_tokens)} out`),
      fact("from a cache", count(total.cached_tokens)),
      fact("cost", money(total.cost)),
      fact("landed changes", String(landed)),
      each ? fact("for each of them", `${count(tokens(each))} tokens, ${money(each.cost)}`) : null,
    ),
    h(
      "div.plots.pairs",
      plots("day", byDay),
      plots("runtime", byRuntime),
      plots("builder", ofBuilders.slice(-MOST_BARS)),
    ),
    table(builders),
  ];
}

const fact = (name, value) => h("div", h("dt", name), h("dd", value));
const tokens = (one) => one.input_tokens + one.output_tokens;
const cost = (one) => one.cost || 0;

function grouped(parts, key) {
  const sums = new Map();
  for (const one of parts) {
    const name = key(one);
    const sum = sums.get(name) || { name, input_tokens: 0, output_tokens: 0, cost: 0 };
    sum.input_tokens += one.input_tokens;
    sum.output_tokens += one.output_tokens;
    sum.cost += one.cost || 0;
    sums.set(name, sum);
  }
  return [...sums.values()];
}

function table(builders) {
  const heads = ["Builder", "Task", "Runtime", "Starts", "In", "Out", "Cached", "Cost"];
  const cell = (value) => h("td.number", value);
  return h(
    "div.card.scroll",
    { tabindex: "0", role: "region", "aria-label": "Costs of each builder" },
    h(
      "table.list",
      h(
        "thead",
        h(
          "tr",
          heads.map((text, place) => h("th", { scope: "col", class: place > 2 ? "number" : null }, text)),
        ),
      ),
      h(
        "tbody",
        builders.map((one) =>
          h(
            "tr",
            { "data-cost": one.id },
            h("td.mono", one.removed ? one.id : h("a", { href: `#/builder/${encodeURIComponent(one.id)}` }, one.id)),
            h("td.prompt.isolate", one.landed ? "landed: " : "", line(one.title)),
            h("td", one.runtime),
            cell(one.runs.length),
            cell(count(one.input_tokens)),
            cell(count(one.output_tokens)),
            cell(count(one.cached_tokens)),
            cell(money(one.cost)),
          ),
        ),
      ),
    ),
  );
}
