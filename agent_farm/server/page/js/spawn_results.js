// @ts-check
/* What a spawn comes to: its plan, or what became of each of several, as soon as it is known. */
import { h, line, plain } from "./dom.js";
import { errorBox } from "./messages.js";

export function resultsBox() {
  const says = h("p", { role: "status" });
  const list = h("ul.results");
  const title = h("h2", { id: "spawn-results", tabindex: "-1" }, "Builders");
  const again = h("p.small.dim", "The form is as it was. Take out what was made before you spawn the rest.");
  const rest = h("div.row-end", h("a.button", { href: "#/" }, "All builders"));
  const element = h("section.card", { "aria-labelledby": title.id, hidden: true }, title, says, list, again, rest);
  let [made, failed] = [0, 0];

  const count = (end) => {
    const parts = [made ? `${made} made` : "", failed ? `${failed} failed` : ""].filter(Boolean);
    says.textContent = `${parts.join(", ")}${end ? "." : " …"}`;
  };

  return {
    element,
    clear() {
      [made, failed] = [0, 0];
      list.replaceChildren();
      element.hidden = again.hidden = true;
    },
    /** @param {any} part of the answer; one that stands alone is not shown here */
    add(part) {
      const { builder } = part.spawned || {};
      if (!builder && !part.what) return;
      element.hidden = false;
      if (builder) made += 1;
      else failed += 1;
      list.append(h("li", builder ? madeLine(builder) : failedLine(part)));
      count(false);
    },
    end() {
      count(true);
      again.hidden = !failed;
      title.focus();
    },
  };
}

function madeLine({ id, title, status }) {
  return [
    h("a.mono", { href: `#/builder/${encodeURIComponent(id)}` }, id),
    h("span.isolate", line(title)),
    status.state === "queued" ? h("span.small.dim.isolate", line(status.reason)) : null,
  ];
}

const failedLine = (failure) => [h("strong", plain(failure.id)), errorBox(failure)];

/** @param {any[]} plans */
export function planBoxes(plans) {
  return plans.map((plan, at) =>
    planBox(plan, plans.length > 1 ? `It would make: ${at + 1} of ${plans.length}` : "It would make"),
  );
}

function planBox(plan, title) {
  const isSaid = (value) => value !== null && value !== "" && !(Array.isArray(value) && !value.length);
  const shown = Object.entries(plan).filter(([, value]) => isSaid(value));
  const text = (value) => plain(typeof value === "string" ? value : JSON.stringify(value));
  return h(
    "section.card.box",
    { "aria-label": "Plan" },
    h("h2", title),
    h(
      "dl.whole",
      shown.map(([name, value]) => [h("dt", name), h("dd.mono.isolate", text(value))]),
    ),
  );
}
