// @ts-check
/* The spawn form: its modes, the rules and the words of `af spawn`. */
import { act } from "./api.js";
import { h, line, plain, replace } from "./dom.js";
import { errorBox, toast } from "./messages.js";

const MODES = [
  ["task", "Task", "Do one thing, in your words"],
  ["issue", "Issue", "From GitHub or GitLab"],
  ["spec", "Spec", "Implement codev/specs/…"],
  ["protocol", "Protocol", "Follow codev/protocols/…"],
  ["shell", "Shell", "The runtime, without a prompt"],
];
const kept = { mode: "task" };

export function spawnView(view) {
  /** @type {Record<string, any>} */
  const known = { projects: [], protocols: [], runtimes: [], permissions: ["ask", "edit", "all"], defaults: {} };
  /** @type {Record<string, any>} */
  const inputs = {};
  const field = (name, label, element, hint) => {
    inputs[name] = element;
    element.id = `spawn-${name}`;
    if (kept[name] !== undefined) element[element.type === "checkbox" ? "checked" : "value"] = kept[name];
    element.addEventListener("input", () => {
      kept[name] = element.type === "checkbox" ? element.checked : element.value;
    });
    if (element.type === "checkbox") return h("label.check", { for: element.id }, element, label);
    return h("div.field", h("label", { for: element.id }, label), element, hint ? h("span.hint", hint) : null);
  };
  const text = (placeholder = "") =>
    h("input", { type: "text", placeholder, autocomplete: "off", spellcheck: "false" });
  const modes = h(
    "fieldset.modes",
    h("legend", "What should it do?"),
    MODES.map(([name, title, hint]) =>
      h(
        "label",
        h("input", {
          type: "radio",
          name: "mode",
          value: name,
          checked: kept.mode === name,
          onchange: () => {
            kept.mode = name;
            draw();
          },
        }),
        title,
        h("small", hint),
      ),
    ),
  );
  const specific = h("div.specific.card");
  const failed = h("div");
  const runtime = h("select");
  const permissions = h("select");
  const go = h("button", { type: "submit", class: "primary" }, "Spawn");
  const look = h("button", { type: "button", onclick: () => submit({ dry_run: true }) }, "Show the plan");
  const form = h(
    "form.form",
    h("h1", "New builder"),
    modes,
    specific,
    h(
      "div.card",
      h(
        "div.pair",
        field("runtime", "Runtime", runtime),
        field("model", "Model", text("the runtime's own")),
        field("permissions", "May do without asking", permissions),
      ),
      h(
        "details.more",
        h("summary", "Branch, role and end"),
        h(
          "div.inside",
          h(
            "div.pair",
            field("base", "Base", text()),
            field("branch", "Existing branch", text(), "continue an existing branch"),
          ),
          field("role", "Role file", text("codev/roles/builder.md")),
          field("no_role", "No role", h("input", { type: "checkbox" })),
          field(
            "ephemeral",
            "Ephemeral: prune it when its runtime ends, if its work has landed",
            h("input", { type: "checkbox" }),
          ),
        ),
      ),
    ),
    failed,
    h("div.row-end", look, go),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit({});
  });
  view.show(form);

  function draw() {
    const options = (names, none) =>
      names.length
        ? names.map(([value, name]) => h("option", { value }, plain(name)))
        : h("option", { value: "" }, none);
    const under = () =>
      field(
        "under",
        "Protocol",
        h(
          "select",
          h("option", { value: "" }, "none"),
          options(
            known.protocols.map((one) => [one, one]),
            "none",
          ),
        ),
      );
    const parts = {
      task: () => [
        field("task", "Task", h("textarea", { rows: "5", placeholder: "Fix the login redirect" })),
        field(
          "files",
          "Files that matter",
          text("src/auth.py, src/login.py"),
          "comma-separated; they are named in the prompt",
        ),
      ],
      spec: () => [
        field(
          "project",
          "Spec",
          h(
            "select",
            options(
              known.projects.map((one) => [one.id, `${one.id} ${one.name}`]),
              "there are none: codev/specs/0001-name.md",
            ),
          ),
        ),
        under(),
      ],
      issue: () => [
        field("issue", "Issue", text("42"), "its number or its address; it is read through gh or glab"),
        under(),
      ],
      protocol: () => [
        field(
          "protocol",
          "Protocol",
          h(
            "select",
            options(
              known.protocols.map((one) => [one, one]),
              "there are none: af init",
            ),
          ),
        ),
        field(
          "args",
          "Arguments",
          h("textarea", { rows: "3", placeholder: '{"hypothesis": "Redis is faster"}', spellcheck: "false" }),
          "a JSON object",
        ),
      ],
      shell: () => [h("p.dim", "The runtime starts with neither prompt nor role; a role file can be named below.")],
    };
    replace(specific, parts[kept.mode]());
  }

  function order(extra) {
    const value = (name) => inputs[name]?.value?.trim() || null;
    const files = (inputs.files?.value || "")
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean);
    const specifics = {
      task: () => ({ task: inputs.task.value, files: files.length ? files : null }),
      spec: () => ({ project: inputs.project.value, protocol: value("under") }),
      issue: () => ({ issue: inputs.issue.value, protocol: value("under") }),
      protocol: () => ({ protocol: inputs.protocol.value, args: value("args") }),
      shell: () => ({ shell: true }),
    };
    return {
      ...specifics[kept.mode](),
      runtime: value("runtime"),
      model: value("model"),
      permissions: value("permissions"),
      base: value("base"),
      branch: value("branch"),
      role: value("role"),
      no_role: inputs.no_role.checked,
      ephemeral: inputs.ephemeral.checked,
      ...extra,
    };
  }

  async function submit(extra) {
    if (go.disabled) return;
    go.disabled = look.disabled = true;
    go.textContent = extra.dry_run ? "Spawn" : "Spawning …";
    replace(failed);
    try {
      const { builder, plan, notes } = await act("spawn", order(extra));
      for (const note of notes) toast(note);
      if (plan) replace(failed, planBox(plan));
      else {
        for (const name of ["task", "files", "args", "issue"]) delete kept[name];
        const waits = builder.status.state === "queued";
        toast(waits ? `${builder.id} waits: ${builder.status.reason}` : `${builder.id} starts on ${builder.branch}`);
        if (!view.isOver) location.hash = `#/builder/${encodeURIComponent(builder.id)}`;
      }
    } catch (error) {
      const agree =
        error.code === "consent-needed"
          ? [h("button", { type: "button", onclick: () => submit({ ...extra, yes: true }) }, "Agree and spawn")]
          : [];
      replace(failed, errorBox(error, ...agree));
      failed.firstChild.scrollIntoView({ block: "nearest" });
    }
    go.disabled = look.disabled = false;
    go.textContent = "Spawn";
  }

  draw();
  view
    .read("choices")
    .then((choices) => {
      Object.assign(known, choices);
      const { defaults } = choices;
      const standard = defaults.runtime || choices.runtimes.find((one) => !one.problem && one.name !== "demo")?.name;
      replace(
        runtime,
        h("option", { value: "" }, standard ? `as configured (${standard})` : "choose one"),
        choices.runtimes.map((one) =>
          h(
            "option",
            { value: one.name, title: one.problem || "" },
            one.problem ? `${one.name} (not usable)` : one.name,
          ),
        ),
      );
      replace(
        permissions,
        h("option", { value: "" }, `as configured (${defaults.permissions})`),
        choices.permissions.map((one) => h("option", { value: one }, one)),
      );
      runtime.value = kept.runtime || "";
      permissions.value = kept.permissions || "";
      inputs.base.placeholder = line(defaults.base);
      if (["spec", "protocol"].includes(kept.mode)) draw();
    })
    .catch((error) => replace(failed, errorBox(error)));
  return { focus: () => (inputs[kept.mode === "spec" ? "project" : kept.mode] || go).focus() };
}

function planBox(plan) {
  const shown = Object.entries(plan).filter(
    ([, value]) => value !== null && value !== "" && !(Array.isArray(value) && !value.length),
  );
  return h(
    "section.card.box",
    { "aria-label": "Plan" },
    h("h2", "It would make"),
    h(
      "dl.whole",
      shown.map(([name, value]) => [
        h("dt", name),
        h("dd.mono.isolate", plain(typeof value === "string" ? value : JSON.stringify(value))),
      ]),
    ),
  );
}
