// @ts-check
/* The builders of all farms of this user; what is done with them is done on their own farm's page. */
import { h, line, replace } from "./dom.js";
import { errorBox } from "./messages.js";
import { needsPerson, pill } from "./states.js";

const AGAIN_MILLISECONDS = 5000;

export function farmsView(view) {
  const read = view.newest();
  const place = h("div.stack", h("p.loading", "Loading …"));
  view.show(h("h1", "Farms"), place);
  async function load() {
    try {
      const { farms } = await read("farms");
      replace(place, farms.map(farmCard));
    } catch (error) {
      replace(place, errorBox(error));
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
      ? h("p.small", "Its server does not run: ", h("code", "af dash"), " there, or ", h("code", "af dash --all"))
      : null,
    h(
      "ul.queue",
      urgent.map((one) =>
        h(
          "li",
          pill(one.state),
          " ",
          link(`#/builder/${encodeURIComponent(one.id)}`, h("span.isolate", line(one.task))),
          one.reason ? h("span.small.isolate", ` ${line(one.reason)}`) : null,
        ),
      ),
    ),
  );
}

const rank = (one) => (needsPerson({ status: one }) ? 0 : 1);
