// @ts-check
/* What the launcher and the runtime's hooks reported, newest first; read again when the state changes. */
import { h, plain, replace } from "./dom.js";
import { iso, moment } from "./format.js";
import { keyedList } from "./keyed_list.js";
import { errorBox } from "./messages.js";
import { pill } from "./states.js";

const MOST_EVENTS = 1000;

export function timelinePanel(view, builder) {
  const read = view.newest();
  const list = h("ol.timeline.card", { "aria-label": "Events", hidden: true });
  const says = h("div", h("p.loading", "Loading …"));
  const place = keyedList(list, eventItem, JSON.stringify);
  view.show(list, says);
  async function load() {
    try {
      const { events } = await read("logs", { id: builder.id, limit: MOST_EVENTS });
      list.hidden = !events.length;
      place(events.reverse());
      replace(says, events.length ? null : h("p.empty", "Nothing was reported yet."));
    } catch (error) {
      replace(says, errorBox(error));
    }
  }
  load();
  return { update: view.rarely(500, load) };
}

function eventItem(event) {
  const reason = event.reason ? [": ", plain(event.reason)] : null;
  return h(
    "li",
    h("time", { datetime: iso(event.at), title: iso(event.at) }, moment(event.at)),
    h("span", event.state ? pill(event.state) : h("span.dim.small", "–")),
    h("span.says.isolate", plain(event.event), reason, " ", h("small", event.source)),
  );
}
