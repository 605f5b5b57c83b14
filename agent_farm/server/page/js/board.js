// @ts-check
/* The board: who needs a person, then all builders by type. */
import { focused, h, line, replace } from "./dom.js";
import { age } from "./format.js";
import { keyedList } from "./keyed_list.js";
import { landingBox } from "./landing_queue.js";
import { builders, follow, hasLoaded } from "./live.js";
import { optionButtons } from "./options.js";
import { builderRow } from "./row.js";
import { byUrgency, needsPerson, pill, STATES, TYPES, urgency } from "./states.js";

const chosen = { text: "", state: null };
const NO_REASON = {
  waiting: "waits for a person",
  failed: "its runtime ended with an error",
  interrupted: "was cut short in the middle of a turn",
  lost: "its session is gone",
};

export function boardView(view) {
  const filter = h("input", {
    type: "search",
    id: "filter",
    class: "filter",
    placeholder: "Filter: text, id, branch, runtime  ( / )",
    "aria-label": "Filter builders",
    value: chosen.text,
    autocomplete: "off",
  });
  filter.addEventListener("input", () => {
    chosen.text = filter.value;
    draw();
  });
  const chips = h("div.chips", { role: "group", "aria-label": "Filter by state" });
  const needing = { title: h("h2", { id: "needs-title" }), list: h("ul") };
  const needs = h("section.needs", { "aria-labelledby": "needs-title", hidden: true }, needing.title, needing.list);
  const placeNeeds = keyedList(needing.list, (one) => needCard(view, one));
  const groups = h("div.groups");
  const empty = h("div");
  view.show(
    h("h1.visually-hidden", "Builders"),
    h("div.board-head", filter, chips),
    needs,
    landingBox(view),
    groups,
    empty,
  );
  const sections = new Map();

  function draw() {
    if (!hasLoaded()) return replace(empty, h("p.loading", "Loading …"));
    const all = [...builders.values()];
    drawChips(all);
    drawNeeds(all.filter(needsPerson));
    const shown = all.filter(matches);
    for (const [type, title] of TYPES) drawGroup(type, title, shown.filter((one) => one.type === type).sort(byUrgency));
    replace(empty, all.length ? (shown.length ? null : h("p.empty", "No builder matches the filter.")) : welcome());
    filter.parentElement.hidden = !all.length;
  }

  function drawChips(all) {
    const numbers = new Map();
    for (const one of all) numbers.set(one.status.state, (numbers.get(one.status.state) || 0) + 1);
    if (chosen.state && !numbers.has(chosen.state)) numbers.set(chosen.state, 0);
    const before = focused()?.dataset.chip;
    const chip = (state, word, number) =>
      h(
        "button",
        {
          type: "button",
          class: "chip",
          "data-chip": word,
          "aria-pressed": String(chosen.state === state),
          onclick: () => {
            chosen.state = chosen.state === state ? null : state;
            draw();
          },
        },
        `${word} `,
        h("b", number),
      );
    replace(
      chips,
      chip(null, "all", all.length),
      STATES.filter((state) => numbers.has(state)).map((state) => chip(state, state, numbers.get(state))),
    );
    if (before) chips.querySelector(`[data-chip="${CSS.escape(before)}"]`)?.focus();
  }

  function drawNeeds(waiting) {
    needs.hidden = !waiting.length;
    waiting.sort((a, b) => urgency(a) - urgency(b) || (a.status.at || 0) - (b.status.at || 0));
    needing.title.textContent = waiting.length === 1 ? "1 builder needs you" : `${waiting.length} builders need you`;
    placeNeeds(waiting.map(({ id, title, status }) => ({ id, title, status })));
  }

  function drawGroup(type, title, members) {
    let section = sections.get(type);
    if (!members.length) {
      section?.element.remove();
      sections.delete(type);
      return;
    }
    if (!section) {
      const count = h("span.count");
      const list = h("ul.rows.card");
      const element = h("section.group", { "aria-label": title, "data-type": type }, h("h2", title, count), list);
      section = { element, count, place: keyedList(list, (one) => h("li", builderRow(one))) };
      sections.set(type, section);
      const later = TYPES.map(([name]) => name).slice(TYPES.findIndex(([name]) => name === type) + 1);
      groups.insertBefore(element, later.map((name) => sections.get(name)?.element).find(Boolean) || null);
    }
    section.count.textContent = members.length;
    section.place(members);
  }

  view.onLeave(follow(draw));
  draw();
}

function needCard(view, { id, title, status }) {
  const options = status.state === "waiting" ? optionButtons(view, id) : null;
  options?.update(true);
  return h(
    "li",
    h(
      "a",
      { href: `#/builder/${encodeURIComponent(id)}`, "data-need": id },
      h(
        "span.why.isolate",
        status.state === "waiting" ? null : [pill(status.state), " "],
        line(status.reason || NO_REASON[status.state]),
      ),
      h("span.line.isolate", line(title)),
      h("span.line.small.dim", id, status.at ? [" · for ", h("span", { "data-at": status.at }, age(status.at))] : null),
    ),
    options?.element,
  );
}

function matches(builder) {
  if (chosen.state && builder.status.state !== chosen.state) return false;
  const words = chosen.text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const where = [
    builder.id,
    builder.title,
    builder.branch,
    builder.runtime,
    builder.type,
    builder.status.state,
    builder.status.reason,
    builder.protocol_name,
    builder.spec,
    builder.host,
  ]
    .join("\n")
    .toLowerCase();
  return words.every((word) => where.includes(word));
}

function welcome() {
  return h(
    "div.empty",
    h("h1", "No builders yet"),
    h("p", "A builder is a worktree, a branch and a terminal in which an AI CLI works on one thing."),
    h("pre.command", h("code", 'af spawn "Fix the login redirect"')),
    h("a.button.primary", { href: "#/spawn" }, "New builder"),
  );
}
