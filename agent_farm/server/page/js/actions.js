// @ts-check
/* What can be done with a builder, with the refusals and the evidence of the command line. */
import { act, builderPath, post, read } from "./api.js";
import { h, plain, replace } from "./dom.js";
import { ask, errorBox, toast } from "./messages.js";
import { pruneDialog } from "./prune_dialog.js";
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
    button("merge", "Merge …", () => merge(builder)),
    button("prune", "Prune …", () => pruneDialog(builder.id), "danger"),
  ];
}

async function run(button, action) {
  button.disabled = true;
  try {
    await action();
  } catch (error) {
    if (!("what" in error)) throw error;
    await ask("Refused", (close) => [
      errorBox(error),
      h("div.row", h("button", { type: "button", onclick: () => close(null) }, "Close")),
    ]);
  } finally {
    button.disabled = false;
  }
}

async function stop(builder) {
  await act("stop", { ids: [builder.id] });
  toast(`${builder.id} stopped`);
}

async function resume(builder, agree = false) {
  try {
    const { continues } = await post(builderPath(builder.id, "/resume"), { agree });
    toast(continues ? `${builder.id} goes on with its conversation` : `${builder.id} starts anew with the same prompt`);
  } catch (error) {
    if (error.code !== "consent-needed" || agree) throw error;
    const agrees = await ask(`Resume ${builder.id}`, (close) => [
      errorBox(error),
      h(
        "div.row",
        h("button", { type: "button", onclick: () => close(false) }, "Cancel"),
        h("button", { type: "button", class: "primary", onclick: () => close(true) }, "Agree and resume"),
      ),
    ]);
    if (agrees) await resume(builder, true);
  }
}

function lines(title, all) {
  return [h("h3", title), h("pre.command", { tabindex: "0" }, all.map(plain).join("\n"))];
}

function merge(builder) {
  return ask(`Merge ${builder.id}`, (close) => {
    const strategy = h(
      "select",
      { id: "strategy" },
      [
        ["", "as configured"],
        ["merge", "merge"],
        ["squash", "squash"],
        ["rebase", "rebase"],
        ["ff", "fast-forward"],
      ].map(([value, text]) => h("option", { value }, text)),
    );
    const here = h("input", { type: "checkbox" });
    const failed = h("div");
    const go = h("button", { type: "button", class: "primary" }, "Merge");
    const land = async (agree) => {
      go.disabled = true;
      replace(failed);
      try {
        const { merged } = await post(builderPath(builder.id, "/merge"), {
          strategy: strategy.value || null,
          here: here.checked,
          agree,
        });
        close(merged);
        const left = merged.left_behind;
        const what =
          merged.before === merged.after
            ? "has nothing to land"
            : `landed on ${merged.into}, now at ${merged.after.slice(0, 10)}`;
        toast(
          `${builder.id} ${what}${left.length ? `; not committed, so not landed: ${left.slice(0, 5).join(", ")}` : ""}`,
        );
      } catch (error) {
        const again =
          error.code === "consent-needed"
            ? [h("button", { type: "button", onclick: () => land(true) }, "Agree and merge")]
            : [];
        replace(failed, errorBox(error, ...again));
        go.disabled = false;
      }
    };
    go.addEventListener("click", () => land(false));
    const [work, into] = [h("span.mono", plain(builder.branch)), h("strong.mono", "…")];
    const what = h("div.stack", { "aria-live": "polite" }, h("p.dim", "Looking at what would land …"));
    read("landing", { id: builder.id })
      .then((landing) => {
        work.textContent = plain(landing.work);
        into.textContent = plain(landing.into);
        replace(
          what,
          landing.commits.length
            ? lines(
                `Commits (${landing.commits.length})`,
                landing.commits.map((one) => `${one.sha.slice(0, 10)} ${one.subject}`),
              )
            : h("p", "It has no commit that has not landed."),
          landing.left_behind.length
            ? lines(`Not committed, so it does not land (${landing.left_behind.length})`, landing.left_behind)
            : null,
        );
      })
      .catch((error) => replace(what, errorBox(error)));
    return [
      h("p", "Lands ", work, " on ", into, ", which is checked out in the main checkout, or changes nothing."),
      what,
      h("div.field", h("label", { for: "strategy" }, "Strategy"), strategy),
      h("label.check", here, `Also where that branch is not ${plain(builder.base)}`),
      failed,
      h("div.row", h("button", { type: "button", onclick: () => close(null) }, "Cancel"), go),
    ];
  });
}
