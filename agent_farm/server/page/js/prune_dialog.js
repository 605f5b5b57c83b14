// @ts-check
/* Removing a builder: tried at first, with all that stands against it, and only then done. */
import { act } from "./api.js";
import { h, replace } from "./dom.js";
import { worded } from "./hints.js";
import { builders } from "./live.js";
import { ask, errorBox, toast } from "./messages.js";
import { FINISHED } from "./states.js";

/** @type {[string, string][]} */
const WAIVERS = [
  ["stop", "Stop it first"],
  ["discard_changes", "Discard changed and untracked files"],
  ["discard_commits", "Discard the commits that have not landed"],
];

/** @param {string} id */
export function pruneDialog(id) {
  return ask(`Prune ${id}`, (close) => {
    const found = h("div.stack", { "aria-live": "polite" }, h("p.dim", "Looking for work that exists nowhere else …"));
    const remove = h("button.danger", { type: "button", disabled: true, onclick: prune }, "Prune");
    const boxes = WAIVERS.map(([name]) => h("input", { type: "checkbox", name, onchange: look }));
    const labels = WAIVERS.map(([, text], index) => h("label.check", boxes[index], text));
    const runs = !FINISHED.has(builders.get(id)?.status.state);
    let attempt = 0;

    const order = (dry) => ({
      ids: [id],
      dry_run: dry,
      ...Object.fromEntries(boxes.map((box) => [box.name, box.checked])),
    });

    async function look() {
      const mine = ++attempt;
      remove.disabled = true;
      try {
        await act("prune", order(true));
        if (mine !== attempt) return;
        const waived = boxes.some((box) => box.name !== "stop" && box.checked);
        replace(found, h("p", waived ? "It can be removed." : "Nothing would be lost."));
        remove.disabled = false;
      } catch (error) {
        if (mine === attempt) refuse(error);
      }
    }

    /* What a box here waives is said by its name, and done by ticking it. */
    function refuse(error) {
      const stops = error.hint === `af stop ${id}`;
      const text = WAIVERS[0][1];
      const stop = h("button", { type: "button", onclick: tick }, text);
      function tick() {
        boxes[0].click();
        boxes[0].focus();
      }
      const said = { ...error, why: worded(error.why, new Map(WAIVERS)) };
      replace(found, stops ? errorBox({ ...said, hint: null }, stop) : errorBox(said));
    }

    async function prune() {
      remove.disabled = true;
      try {
        const { removed } = await act("prune", order(false));
        close(removed);
        toast(`${id} removed; Removed brings it back`);
        if (location.hash.startsWith(`#/builder/${encodeURIComponent(id)}`)) location.hash = "#/";
      } catch (error) {
        refuse(error);
        remove.disabled = false;
      }
    }

    look();
    return [
      found,
      runs ? labels : labels.slice(1),
      h("p.small.dim", "Everything is moved to the trash first and can be restored until it expires."),
      h("div.row", h("button", { type: "button", onclick: () => close(null) }, "Cancel"), remove),
    ];
  });
}
