// @ts-check
/* Removed builders, which can be brought back. */
import { post } from "./api.js";
import { h, line, plain, replace } from "./dom.js";
import { iso, moment } from "./format.js";
import { follow } from "./live.js";
import { errorBox, toast } from "./messages.js";

export function removedView(view) {
  const read = view.newest();
  const place = h("div");
  const failed = h("div");
  view.show(h("div.sessions-head", h("h1", "Removed builders")), failed, place);
  async function load() {
    try {
      const { removed } = await read("/api/removed");
      replace(place, removed.length ? table(removed) : h("p.empty", "Nothing was removed, or all of it was expired."));
    } catch (error) {
      replace(place, errorBox(error));
    }
  }
  const bringBack = async (one, button) => {
    button.disabled = true;
    try {
      await post(`/api/removed/${encodeURIComponent(one.id)}/restore`, { epoch: one.epoch });
      toast(`${one.id} restored`);
      if (!view.isOver) location.hash = `#/builder/${encodeURIComponent(one.id)}`;
    } catch (error) {
      replace(failed, errorBox(error));
      button.disabled = false;
    }
  };
  const table = (removed) =>
    h(
      "div.card.scroll",
      h(
        "table.list",
        h(
          "thead",
          h(
            "tr",
            ["Removed", "Builder", "For", "Kept besides git", ""].map((text) =>
              h("th", { scope: "col" }, text || h("span.visually-hidden", "Restore")),
            ),
          ),
        ),
        h(
          "tbody",
          removed.map((one) =>
            h(
              "tr",
              h("td.nowrap", h("time", { datetime: iso(one.epoch) }, moment(one.epoch))),
              h("td.mono", one.id),
              h("td.prompt.isolate", line(one.title)),
              h(
                "td.mono",
                one.kept.length ? plain(one.kept.slice(0, 4).join(", ")) + (one.kept.length > 4 ? " …" : "") : "–",
              ),
              h(
                "td",
                h(
                  "button",
                  {
                    type: "button",
                    "aria-label": `Restore ${one.id}`,
                    onclick: (event) => bringBack(one, event.currentTarget),
                  },
                  "Restore",
                ),
              ),
            ),
          ),
        ),
      ),
    );
  load();
  view.onLeave(
    follow((_changed, removed) => {
      if (removed.length) load();
    }),
  );
}
