// @ts-check
/* What the launcher and the runtime's hooks reported, newest first; read again when the state changes. */
import { builderPath } from "./api.js";
import { h, plain } from "./dom.js";
import { iso, moment } from "./format.js";
import { errorBox } from "./messages.js";
import { pill } from "./states.js";

export function timelinePanel(view, builder) {
  const read = view.newest();
  view.show(h("p.loading", "Loading …"));
  async function load() {
    try {
      const { events } = await read(builderPath(builder.id, "/events"));
      const items = [...events]
        .reverse()
        .map((event) =>
          h(
            "li",
            h("time", { datetime: iso(event.at), title: iso(event.at) }, moment(event.at)),
            h("span", event.state ? pill(event.state) : h("span.dim.small", "–")),
            h(
              "span.says.isolate",
              plain(event.event),
              event.reason ? [": ", plain(event.reason)] : null,
              " ",
              h("small", event.source),
            ),
          ),
        );
      view.show(
        items.length
          ? h("ol.timeline.card", { "aria-label": "Events" }, items)
          : h("p.empty", "Nothing was reported yet."),
      );
    } catch (error) {
      view.show(errorBox(error));
    }
  }
  load();
  return { update: view.rarely(500, load) };
}
