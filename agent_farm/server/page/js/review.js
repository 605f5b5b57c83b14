// @ts-check
/* Results that wait for a person, riskiest first. */
import { h, line, plain, replace } from "./dom.js";
import { keyedList } from "./keyed_list.js";
import { follow } from "./live.js";
import { errorBox } from "./messages.js";
import { proofMark } from "./proof.js";

const LOOK_MILLISECONDS = 2000;

export function reviewView(view) {
  const read = view.newest();
  const says = h("div", { "aria-live": "polite" }, h("p.loading", "Loading …"));
  const body = h("tbody");
  const heads = ["Risk", "Result", "Lines", "Read"].map((text) =>
    h("th", { scope: "col", class: text === "Lines" ? "wide" : "" }, text),
  );
  const card = h("div.card.scroll", { hidden: true }, h("table.list", h("thead", h("tr", heads)), body));
  const place = keyedList(body, row);
  view.show(h("div.sessions-head", h("h1", "Review")), card, says);

  async function load() {
    try {
      const { items, failed } = await read("review");
      card.hidden = !items.length;
      place(items);
      const none = items.length ? null : emptyState();
      replace(
        says,
        none,
        failed.map((one) => errorBox(one)),
      );
    } catch (error) {
      replace(says, errorBox(error));
    }
  }

  load();
  const soon = view.rarely(LOOK_MILLISECONDS, load);
  view.onLeave(follow(soon));
}

const emptyState = () =>
  h(
    "div.empty",
    h("p", "Nothing waits for a review. What builders commit appears here until it lands."),
    h("p", h("a", { href: "#/" }, "Builders"), " · ", h("a", { href: "#/spawn" }, "New builder")),
  );

export const progress = (item) => item.decision?.word || (item.unread ? `${item.unread} unread` : "read");

export const addressOf = (id) => `#/review/${encodeURIComponent(id)}`;

function row(item) {
  return h(
    "tr",
    h("td.num", String(item.risk)),
    h(
      "td.what",
      h("a.isolate", { href: addressOf(item.id) }, line(item.title) || plain(item.id)),
      h("div.small.dim.mono", proofMark(item.proof), " ", plain(item.id), ` · ${item.state}`),
      item.reasons.map((reason) => h("div.small.isolate", line(reason))),
    ),
    h("td.nowrap.wide", h("span.added", `+${item.added}`), " ", h("span.deleted", `−${item.removed}`)),
    h("td.nowrap", progress(item)),
  );
}
