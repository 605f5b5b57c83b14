// @ts-check
/* One builder: how it is, its terminal, what it changed, what happened, what it was told. */

import { actionButtons } from "./actions.js";
import { setTitle } from "./attention.js";
import { conflictsPanel } from "./conflicts.js";
import { diffPanel } from "./diff.js";
import { drawnOnce, h, icon, line, plain, replace } from "./dom.js";
import { age, moment } from "./format.js";
import { builders, farm, follow, hasLoaded } from "./live.js";
import { errorBox } from "./messages.js";
import { proofDetails } from "./proof.js";
import { gitBadges, machine, ports, usage } from "./row.js";
import { sendBox } from "./send_box.js";
import { pill } from "./states.js";
import { terminalPanel } from "./terminal.js";
import { timelinePanel } from "./timeline.js";

const TABS = [
  ["terminal", "Terminal"],
  ["diff", "Diff"],
  ["conflicts", "Conflicts"],
  ["timeline", "Timeline"],
  ["prompt", "Prompt"],
];

export function builderView(view, id, tab = "terminal") {
  const differs = drawnOnce();
  const message = sendBox(view, id);
  const head = h("div.builder-head");
  const panel = h("div.panel", { role: "tabpanel", id: "panel", "aria-labelledby": "tab-terminal" });
  const tabs = h(
    "div.tabs",
    { role: "tablist", "aria-label": "Views of the builder" },
    TABS.map(([name, title]) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${name}`,
          "aria-controls": "panel",
          "aria-selected": "false",
          "data-tab": name,
          onclick: () => open(name),
        },
        title,
      ),
    ),
  );
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = TABS.findIndex(([name]) => name === tab);
    open(TABS[(at + step + TABS.length) % TABS.length][0]);
    tabs.querySelector('[aria-selected="true"]').focus();
  });
  /** @type {{ update?: (builder: any) => void } | null} */
  let current = null;
  /** @type {import('./view.js').View | null} */
  let inner = null;
  let wasThere = false;

  function draw() {
    const builder = builders.get(id);
    if (!builder) {
      if (hasLoaded()) gone();
      else view.show(h("p.loading", "Loading …"));
      return;
    }
    if (!wasThere) {
      wasThere = true;
      view.show(h("div.builder-view", head, h("div", tabs, panel), message.element));
      drawHead(builder);
      setTitle(line(builder.title));
      message.update(builder);
      open(TABS.some(([name]) => name === tab) ? tab : "terminal");
      return;
    }
    drawHead(builder);
    setTitle(line(builder.title));
    message.update(builder);
    current?.update?.(builder);
  }

  function drawHead(builder) {
    const { status } = builder;
    if (!differs("head", { ...builder, git: { ...builder.git, at: null } })) return;
    const why =
      status.reason && status.state !== "working"
        ? h("p.why-line.isolate", { "data-state": status.state }, line(status.reason))
        : null;
    replace(
      head,
      h(
        "div.line",
        h("a.button.quiet.back", { href: "#/" }, icon("back"), "Builders"),
        pill(status.state),
        h(
          "span.small.dim",
          `said by: ${status.source}`,
          status.at ? [", for ", h("span", { "data-at": status.at }, age(status.at))] : null,
        ),
        h("div.actions", actionButtons(builder)),
      ),
      h("h1.isolate", line(builder.title)),
      why,
      facts(builder),
    );
  }

  function gone() {
    inner?.leave();
    current = inner = null;
    const text = wasThere ? "This builder was removed" : `There is no builder ${plain(id)}`;
    view.show(
      h(
        "div.empty",
        h("h1", text),
        h(
          "p",
          h("a", { href: "#/removed" }, "Removed builders"),
          " can be restored. ",
          h("a", { href: "#/" }, "Back to the builders"),
        ),
      ),
    );
    wasThere = false;
  }

  function open(name) {
    const builder = builders.get(id);
    if (!builder) return;
    tab = name;
    for (const button of tabs.children) {
      const chosen = button.dataset.tab === name;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${name}`);
    history.replaceState(null, "", `#/builder/${encodeURIComponent(id)}${name === "terminal" ? "" : `/${name}`}`);
    inner?.leave();
    inner = view.part(panel);
    const make = {
      terminal: terminalPanel,
      diff: diffPanel,
      conflicts: conflictsPanel,
      timeline: timelinePanel,
      prompt: promptPanel,
    }[name];
    current = make(inner, builder) || {};
  }

  view.onLeave(() => setTitle(""));
  view.onLeave(
    follow((changed, removed, whole) => {
      if (whole || changed.includes(id) || removed.includes(id)) draw();
    }),
  );
  draw();
  return {
    turn(_, name = "terminal") {
      if (name !== tab) open(name);
    },
  };
}

function facts(builder) {
  const fact = (name, value, optional) =>
    value ? h("div", { class: optional ? "optional" : "" }, h("dt", name), h("dd", value)) : null;
  return h(
    "dl.facts",
    fact("id", builder.id),
    fact("branch", builder.branch),
    fact("machine", machine(builder)),
    fact("base", line(builder.base), true),
    fact("git", builder.git ? gitBadges(builder) : null),
    fact("proof", proofDetails(builder.proof)),
    fact("runtime", builder.runtime + (builder.model ? ` ${line(builder.model)}` : "")),
    fact("may", builder.permissions, true),
    fact("ports", ports(builder.ports)),
    fact("tokens", builder.usage ? usage(builder.usage) : null),
    fact("worktree", line(underRoot(builder.worktree)), true),
    fact("since", moment(Date.parse(builder.created_at) / 1000), true),
    fact("exit code", builder.status.exit_code === null ? null : String(builder.status.exit_code)),
  );
}

function underRoot(path) {
  return path.startsWith(`${farm.root}/`) ? path.slice(farm.root.length + 1) : path;
}

function promptPanel(view, builder) {
  view.show(h("p.loading", "Loading …"));
  view
    .read("prompt", { id: builder.id })
    .then(({ prompt, role }) =>
      view.show(
        h("h2", "Prompt"),
        h(
          "div.card.prose.isolate",
          { tabindex: "0" },
          prompt === null ? "None: it was started with an empty conversation." : plain(prompt),
        ),
        h("h2", "Role"),
        h("div.card.prose.isolate", { tabindex: "0" }, role === null ? "None." : plain(role)),
      ),
    )
    .catch((error) => view.show(errorBox(error)));
}
