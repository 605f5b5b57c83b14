// @ts-check
/* What can be done with a builder, with the refusals and the evidence of the command line. */
import { act } from "./api.js";
import { focused, h } from "./dom.js";
import { mergeDialog } from "./merge_dialog.js";
import { agreeing, ask, errorBox, toast } from "./messages.js";
import { pruneDialog } from "./prune_dialog.js";
import { addressOf } from "./review.js";
import { FINISHED } from "./states.js";

export function actionButtons(builder) {
  const { state } = builder.status;
  const button = (name, text, action, style = "") =>
    h(
      "button",
      { type: "button", class: style, "data-action": name, onclick: (event) => run(event.currentTarget, action) },
      text,
    );
  const mayResume = FINISHED.has(state);
  return [
    !mayResume && state !== "creating" ? button("stop", "Stop", () => stop(builder)) : null,
    mayResume ? button("resume", "Resume", () => resume(builder)) : null,
    h("a.button", { href: addressOf(builder.id) }, "Review"),
    button("merge", "Merge …", () => mergeDialog(builder)),
    button("prune", "Prune …", () => pruneDialog(builder.id), "danger"),
  ];
}

async function run(button, action) {
  button.disabled = true;
  try {
    await carryOut(action);
  } finally {
    button.disabled = false;
    regainFocus(button);
  }
}

/** What is refused is said in a dialog.
 * @param {() => Promise<any>} action */
export async function carryOut(action) {
  try {
    await action();
  } catch (error) {
    if (!("what" in error)) throw error;
    await ask("Refused", (close) => [
      errorBox(error),
      h("div.row", h("button", { type: "button", onclick: () => close(null) }, "Close")),
    ]);
  }
}

/* A disabled button loses the focus, and so does one that was drawn anew or is of no use any more. */
function regainFocus(button) {
  if (focused() !== document.body) return;
  const find = (which) => /** @type {HTMLElement | null} */ (document.querySelector(`.actions ${which}`));
  (find(`[data-action="${CSS.escape(button.dataset.action)}"]`) || find("button"))?.focus();
}

export async function stop(builder) {
  await act("stop", { ids: [builder.id] });
  toast(`${builder.id} stopped`);
}

export async function sync({ id }) {
  await act("sync", { ids: [id] });
  toast(`${id} has its base's commits now`);
}

export async function resume(builder, yes = null) {
  try {
    const { continues } = await act("resume", { id: builder.id, yes });
    toast(continues ? `${builder.id} continues its conversation` : `${builder.id} starts again with the same prompt`);
  } catch (error) {
    if (!error.consent) throw error;
    const consent = await ask(`Resume ${builder.id}`, (close) => [
      errorBox(error, ...agreeing(error, "Agree and resume", close)),
      h("div.row", h("button", { type: "button", onclick: () => close(false) }, "Cancel")),
    ]);
    if (consent) await resume(builder, consent);
  }
}
