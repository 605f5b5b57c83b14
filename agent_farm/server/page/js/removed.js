// @ts-check
/* Removed builders, which can be brought back. */
import { act } from "./api.js";
import { h, line, plain, replace } from "./dom.js";
import { iso, moment } from "./format.js";
import { keyedList } from "./keyed_list.js";
import { follow } from "./live.js";
import { errorBox, toast } from "./messages.js";

export function removedView(view) {
  const read = view.newest();
  const failed = h("div");
  const says = h("div");
  const body = h("tbody");
  const head = (text, style = "") => h("th", { scope: "col", class: style }, text);
  const heads = [head("Removed"), head("Builder"), head("Kept besides git", "wide")];
  const last = h("th", { scope: "col" }, h("span.visually-hidden", "Restore"));
  const card = h("div.card.scroll", { hidden: true }, h("table.list", h("thead", h("tr", heads, last)), body));
  const place = keyedList(body, row, (one) => `${one.id} ${one.epoch}`);
  view.show(h("div.sessions-head", h("h1", "Removed builders")), failed, card, says);

  async function load() {
    try {
      const { removed } = await read("removed");
      card.hidden = !removed.length;
      place(removed);
      replace(
        says,
        removed.length
          ? null
          : h("p.empty", "Nothing was removed. Pruned builders appear here, and can be restored until they expire."),
      );
    } catch (error) {
      replace(says, errorBox(error));
    }
  }

  async function bringBack(one, button) {
    button.disabled = true;
    try {
      await act("restore", { id: one.id, epoch: one.epoch });
      toast(`${one.id} restored`);
      if (!view.isOver) location.hash = `#/builder/${encodeURIComponent(one.id)}`;
    } catch (error) {
      replace(failed, errorBox(error));
      button.disabled = false;
    }
  }

  function row(one) {
    const onclick = (event) => bringBack(one, event.currentTarget);
    const kept = plain(one.kept.slice(0, 4).join(", ")) + (one.kept.length > 4 ? " …" : "");
    return h(
      "tr",
      h("td.nowrap", h("time", { datetime: iso(one.epoch) }, moment(one.epoch))),
      h("td.what", h("div.isolate", line(one.title)), h("div.small.dim.mono", one.id)),
      h("td.mono.wide", kept || "–"),
      h("td", h("button", { type: "button", "aria-label": `Restore ${one.id}`, onclick }, "Restore")),
    );
  }

  load();
  view.onLeave(
    follow((_changed, removed) => {
      if (removed.length) load();
    }),
  );
}
