// @ts-check
/* Landing what a builder has checked out: what would land is shown first. */
import { act, read } from "./api.js";
import { h, plain, replace } from "./dom.js";
import { agreeing, ask, errorBox, toast } from "./messages.js";

const STRATEGIES = [
  ["", "as configured"],
  ["merge", "merge"],
  ["squash", "squash"],
  ["rebase", "rebase"],
  ["ff", "fast-forward"],
];

/** @param {any} builder @param {string} [options] as `af merge` takes them, chosen already */
export function mergeDialog(builder, options = "") {
  return ask(`Merge ${builder.id}`, (close) => {
    const strategy = h(
      "select",
      { id: "strategy" },
      STRATEGIES.map(([value, text]) => h("option", { value }, text)),
    );
    strategy.value = /--strategy (\w+)/.exec(options)?.[1] ?? "";
    const here = h("input", { type: "checkbox", name: "here", checked: options === "--here" });
    const prune = h("input", { type: "checkbox", name: "prune" });
    const failed = h("div");
    const go = h("button.primary", { type: "button", onclick: () => land(null) }, "Merge");

    async function land(yes) {
      const order = { strategy: strategy.value || null, here: here.checked, prune: prune.checked, yes };
      go.disabled = true;
      replace(failed);
      try {
        const answer = await act("merge", { ids: [builder.id], ...order });
        close(answer);
        for (const text of told(answer)) toast(text);
      } catch (error) {
        replace(failed, errorBox(error, ...agreeing(error, "Agree and merge", land)));
        go.disabled = false;
      }
    }

    const queue = h(
      "button",
      { type: "button", hidden: true, onclick: () => enqueue(null) },
      "Put into the landing queue",
    );

    async function enqueue(yes) {
      queue.disabled = true;
      replace(failed);
      try {
        close(await act("land", { ids: [builder.id], background: true, yes }));
        toast(`${builder.id} is in the landing queue`);
      } catch (error) {
        replace(failed, errorBox(error, ...agreeing(error, "Agree and land", enqueue)));
        queue.disabled = false;
      }
    }

    const [work, into] = [h("span.mono", plain(builder.branch)), h("strong.mono", "…")];
    const what = h("div.stack", { "aria-live": "polite" }, h("p.dim", "Looking at what would land …"));
    read("landing", { id: builder.id })
      .then((landing) => {
        work.textContent = plain(landing.work);
        into.textContent = plain(landing.into);
        replace(what, landingParts(landing));
        queue.hidden = !(landing.checks.length && landing.commits.length);
      })
      .catch((error) => replace(what, errorBox(error)));
    return [
      h("p", "Lands ", work, " on ", into, ", which is checked out in the main checkout, or changes nothing."),
      what,
      h("div.field", h("label", { for: "strategy" }, "Strategy"), strategy),
      h("label.check", here, `Even if that branch is not ${plain(builder.base)}`),
      h("label.check", prune, "Then remove the builder, unless it is working"),
      failed,
      h("div.row", h("button", { type: "button", onclick: () => close(null) }, "Cancel"), queue, go),
    ];
  });
}

function landingParts({ commits, checks, left_behind: left }) {
  const lines = (title, all) => [
    h("h3", `${title} (${all.length})`),
    h("pre.command", { tabindex: "0" }, all.map(plain).join("\n")),
  ];
  const subjects = commits.map((one) => `${one.sha.slice(0, 10)} ${one.subject}`);
  return [
    commits.length ? lines("Commits", subjects) : h("p", "It has no commits that have not landed."),
    checks.length ? lines("Has to pass", checks) : null,
    left.length ? lines("Uncommitted, so it does not land", left) : null,
  ];
}

function told({ merged, removed, kept }) {
  const [{ id, before, after, into, left_behind: left }] = merged;
  const landed = before === after ? "has nothing to land" : `landed on ${into}, now at ${after.slice(0, 10)}`;
  const rest = left.length ? `; not committed, so not landed: ${left.slice(0, 5).join(", ")}` : "";
  return [
    `${id} ${landed}${rest}`,
    ...removed.map((one) => `${one.id} removed; Removed brings it back`),
    ...kept.map((one) => `${one.id} was not removed: ${one.reason}`),
  ];
}
