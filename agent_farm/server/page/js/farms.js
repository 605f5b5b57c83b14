// @ts-check
/* The builders of all farms of this user; what is done with them is done on their own farm's page. */
import { h, line, replace } from "./dom.js";
import { keyedList } from "./keyed_list.js";
import { errorBox } from "./messages.js";
import { needsPerson, pill } from "./states.js";

const AGAIN_MILLISECONDS = 5000;

export function farmsView(view) {
  const read = view.newest();
  const says = h("div", h("p.loading", "Loading …"));
  const cards = h("div.stack");
  const place = keyedList(cards, farmCard, (farm) => farm.root);
  view.show(h("div.sessions-head", h("h1", "Farms")), says, cards);
  async function load() {
    try {
      const { farms } = await read("farms");
      place(farms);
      replace(says);
    } catch (error) {
      replace(says, errorBox(error));
    }
  }
  load();
  const timer = setInterval(() => document.hidden || load(), AGAIN_MILLISECONDS);
  view.onLeave(() => clearInterval(timer));
}

function farmCard(farm) {
  const needs = farm.needing ? h("b.badge", { title: "builders that need you" }, farm.needing) : null;
  const base = farm.is_here ? "" : farm.port && `http://localhost:${farm.port}/`;
  const urgent = [...farm.builders].sort((a, b) => rank(a) - rank(b));
  const link = (address, ...text) =>
    base === null ? h("span", ...text) : h("a", { href: `${base}${address}` }, ...text);
  return h(
    "section.card.box",
    { "data-farm": farm.root, "aria-label": line(farm.name) },
    h("h2", link("#/", line(farm.name)), " ", needs),
    h("p.small.dim.mono.isolate", line(farm.root)),
    farm.problem ? h("p.failure.isolate", line(farm.problem)) : null,
    base === null
      ? h("p.small", "Its server is not running: ", h("code", "af dash"), " there, or ", h("code", "af dash --all"))
      : null,
    urgent.length
      ? h(
          "ul.farm-builders",
          urgent.map((one) =>
            h(
              "li",
              pill(one.state),
              h(
                "span",
                link(`#/builder/${encodeURIComponent(one.id)}`, h("span.isolate", line(one.task) || one.id)),
                one.reason ? h("span.small.dim.isolate", ` ${line(one.reason)}`) : null,
              ),
            ),
          ),
        )
      : h("p.small.dim", "No builders."),
  );
}

const rank = (one) => (needsPerson({ status: one }) ? 0 : 1);
