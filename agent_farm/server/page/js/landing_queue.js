// @ts-check
/* The landing queue: what is being checked, what waits, what has landed and what came back. */
import { act } from "./api.js";
import { drawnOnce, h, line, replace } from "./dom.js";
import { followLanding } from "./live.js";
import { agreeing, errorBox } from "./messages.js";

const RELOAD_MILLISECONDS = 300;

/** @param {import('./view.js').View} view */
export function landingBox(view) {
  const element = h("section.landing.card", { "aria-label": "Landing queue", hidden: true });
  const read = view.newest();
  const differs = drawnOnce();
  async function load() {
    try {
      const queue = await read("land_status");
      element.hidden = queue.state === "none";
      if (differs("queue", queue)) replace(element, parts(queue));
    } catch (error) {
      element.hidden = false;
      replace(element, errorBox(error));
    }
  }
  load();
  view.onLeave(followLanding(view.rarely(RELOAD_MILLISECONDS, load)));
  return element;
}

function parts(queue) {
  const runs = queue.state === "running";
  const checked = new Set(runs ? queue.groups[0] : []);
  const word = (one) => (one.held ? "passed" : checked.has(one.id) ? "checking" : "waits");
  const total = queue.waiting.length + queue.landed.length + queue.returned.length;
  const done = total - queue.waiting.length;
  const into = line(queue.into);
  const title = { running: `Landing on ${into}`, stopped: `The landing on ${into} stopped` }[queue.state];
  return [
    h(
      "div.line",
      h("h2", title || `Last landing on ${into}`),
      h("span.small", counts(queue)),
      queue.state === "stopped" ? stoppedButtons() : null,
    ),
    runs ? h("progress", { max: total, value: done, "aria-label": `${done} of ${total}` }) : null,
    queue.problem.length ? h("p.failure.isolate", queue.problem.map(line).join(" · ")) : null,
    h(
      "ul.queue",
      queue.waiting.map((one) => item(one.id, word(one), `${Math.round(one.risk * 100)} % likely to fail`)),
      queue.returned.map((one) => item(one.id, "came back", [one.what, ...one.evidence].join("\n"), one.what)),
      queue.landed.length
        ? h("li", { "data-landing": "landed" }, h("span.word", "landed"), queue.landed.map(landedLink))
        : null,
    ),
  ];
}

function counts({ waiting, landed, returned }) {
  const parts = [
    [waiting.length, "to go"],
    [landed.length, "landed"],
    [returned.length, "came back"],
  ];
  return parts
    .filter(([number]) => number)
    .map(([number, name]) => `${number} ${name}`)
    .join(", ");
}

function item(id, word, title, says = "") {
  return h(
    "li",
    { "data-landing": word },
    h("span.word", word),
    h("a.mono", { href: `#/builder/${encodeURIComponent(id)}`, title }, id),
    says ? h("span.small.isolate", line(says)) : null,
  );
}

function landedLink({ id, tree }) {
  const title = `checked as tree ${tree.slice(0, 10)}`;
  return [h("a.mono", { href: `#/builder/${encodeURIComponent(id)}`, title }, id), " "];
}

function stoppedButtons() {
  const failed = h("div");
  const button = (text, verb, request, style) => {
    async function go(/** @type {string | null} */ yes) {
      replace(failed);
      try {
        await act(verb, { ...request, yes });
      } catch (error) {
        replace(failed, errorBox(error, ...agreeing(error, "Agree and continue", go)));
      }
    }
    return h("button", { type: "button", class: style, "data-action": verb, onclick: () => go(null) }, text);
  };
  return h(
    "div.actions",
    button("Continue", "land_continue", { background: true }, "primary"),
    button("Empty the queue", "land_abort", {}, ""),
    failed,
  );
}
