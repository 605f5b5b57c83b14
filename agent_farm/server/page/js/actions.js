// @ts-check
/* What can be done with a builder, with the refusals and the evidence of the command line. */
import { builderPath, get, post } from "./api.js";
import { h, plain, replace } from "./dom.js";
import { ask, errorBox, toast } from "./messages.js";
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
    button("prune", "Prune …", () => prune(builder), "danger"),
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
  await post(builderPath(builder.id, "/stop"));
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

function prune(builder) {
  return ask(`Prune ${builder.id}`, (close) => {
    const place = h("div.stack", { "aria-live": "polite" }, h("p.dim", "Looking for work that exists nowhere else …"));
    const waive = {
      changes: h("input", { type: "checkbox", name: "discard_changes" }),
      commits: h("input", { type: "checkbox", name: "discard_commits" }),
    };
    const remove = h("button", { type: "button", class: "danger", disabled: true }, "Prune");
    const failed = h("div");
    /** @type {any} */
    let found = null;
    const settle = () => {
      remove.disabled = !found || found.obstacles.length > 0;
    };
    const stopFirst = async (button) => {
      button.disabled = true;
      try {
        await post(builderPath(builder.id, "/stop"));
        await look();
      } catch (error) {
        replace(failed, errorBox(error));
      }
    };
    const look = () =>
      get(builderPath(builder.id, "/evidence"))
        .then(({ evidence }) => {
          found = evidence;
          replace(place, ...evidenceParts(evidence, waive, stopFirst));
          settle();
        })
        .catch((error) => replace(place, errorBox(error)));
    look();
    remove.addEventListener("click", async () => {
      remove.disabled = true;
      try {
        const { removed } = await post(builderPath(builder.id, "/prune"), {
          discard_changes: waive.changes.checked,
          discard_commits: waive.commits.checked,
        });
        close(removed);
        toast(`${removed.id} removed; Removed brings it back`);
        if (location.hash.startsWith(`#/builder/${encodeURIComponent(builder.id)}`)) location.hash = "#/";
      } catch (error) {
        replace(failed, errorBox(error));
        settle();
      }
    });
    return [
      place,
      failed,
      h("p.small.dim", "Everything is moved to the trash first and can be restored until it expires."),
      h("div.row", h("button", { type: "button", onclick: () => close(null) }, "Cancel"), remove),
    ];
  });
}

function lines(title, all) {
  return [h("h3", title), h("pre.command", { tabindex: "0" }, all.map(plain).join("\n"))];
}

function evidenceParts(evidence, waive, stopFirst) {
  if (evidence.landed) return [h("p", "All of its work has landed. Nothing would be lost.")];
  const list = (title, all) => (all.length ? lines(title, all) : []);
  const parts = evidence.obstacles.map((one) =>
    errorBox(
      { what: `Not removed: ${one.what}`, hint: one.hint },
      ...(one.hint?.startsWith("af stop ")
        ? [
            h(
              "button",
              { type: "button", onclick: (event) => stopFirst(event.currentTarget) },
              "Stop it, then look again",
            ),
          ]
        : []),
    ),
  );
  parts.push(...list(`Changed (${evidence.changed.length})`, evidence.changed));
  parts.push(...list(`Untracked (${evidence.untracked.length})`, evidence.untracked));
  parts.push(
    ...list(
      `Commits that have not landed (${evidence.commits.length})`,
      evidence.commits.map((one) => `${one.sha.slice(0, 10)} ${one.subject}`),
    ),
  );
  if (evidence.changed.length || evidence.untracked.length)
    parts.push(h("label.check", waive.changes, "Discard the changes"));
  if (evidence.commits.length) parts.push(h("label.check", waive.commits, "Discard the commits"));
  return parts;
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
    get(builderPath(builder.id, "/landing"))
      .then(({ landing }) => {
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
