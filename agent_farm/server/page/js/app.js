// @ts-check
/* The page: which view is shown, the bar above it, and the keys. */
import { watchAttention } from "./attention.js";
import { boardView } from "./board.js";
import { builderView } from "./builder.js";
import { costsView } from "./costs.js";
import { byId, focused, h, plain, replace } from "./dom.js";
import { farmsView } from "./farms.js";
import { age } from "./format.js";
import { nextStep } from "./hints.js";
import { connect, farm, follow, followConnection } from "./live.js";
import { ask } from "./messages.js";
import { removedView } from "./removed.js";
import { reviewView } from "./review.js";
import { resultView } from "./review_result.js";
import { sessionView } from "./session.js";
import { sessionsView } from "./sessions.js";
import { spawnView } from "./spawn.js";
import { View } from "./view.js";

const main = byId("main");
/** @typedef {{ turn?: (...words: string[]) => void, focus?: () => void }} Shown */
/** @type {[RegExp, string, (view: View, ...words: any[]) => Shown | void][]} */
const ROUTES = [
  [/^#?\/?$/, "board", boardView],
  [/^#\/builder\/([^/]+)(?:\/(\w+))?$/, "board", builderView],
  [/^#\/spawn$/, "spawn", spawnView],
  [/^#\/sessions$/, "sessions", sessionsView],
  [/^#\/session\/([^/]+)$/, "sessions", sessionView],
  [/^#\/review$/, "review", reviewView],
  [/^#\/review\/([^/]+)$/, "review", resultView],
  [/^#\/farms$/, "farms", farmsView],
  [/^#\/costs$/, "costs", costsView],
  [/^#\/removed$/, "removed", removedView],
];
/** @type {{ key: string, view: View, turn?: (...words: string[]) => void } | null} */
let shown = null;

function show() {
  const path = location.hash;
  const [pattern, name, fill] = ROUTES.find(([known]) => known.test(path)) || ROUTES[0];
  const words = (path.match(pattern) || []).slice(1).map((word) => word && decoded(word));
  for (const link of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-view]"))) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const key = `${fill.name} ${words[0] || ""}`;
  if (shown?.key === key) return shown.turn?.(...words);
  shown?.view.leave();
  const isFirst = shown === null;
  const view = new View(main);
  shown = { key, view };
  const { turn, focus } = fill(view, ...words) || {};
  shown.turn = turn;
  if (!isFirst) {
    scrollTo(0, 0);
    if (!focus) main.focus({ preventScroll: true });
  }
  focus?.();
}

/* At once: what is typed next belongs to the view that was asked for. */
function go(address) {
  location.hash = address;
  show();
}

function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

addEventListener("hashchange", show);

/* Ages count on by themselves; nothing is asked for. */
setInterval(() => {
  if (document.hidden) return;
  const now = Date.now() / 1000;
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-at]"))) {
    const text = age(Number(element.dataset.at), now);
    if (element.textContent !== text) element.textContent = text;
  }
}, 1000);

const connection = byId("connection");
const problem = byId("problem");
followConnection((state, trouble) => {
  connection.dataset.state = state;
  const gone = [h("span.spacious", "server "), "gone: af dash"];
  replace(connection, { live: "live", connecting: "connecting", gone }[state]);
  if (state !== "live") return;
  problem.hidden = !trouble;
  replace(
    problem,
    trouble
      ? [plain([trouble.what, trouble.why].filter(Boolean).join(" · ")), " ", trouble.hint && nextStep(trouble.hint)]
      : null,
  );
});
follow(() => {
  byId("farm-name").textContent = plain(farm.name);
  byId("farm-name").title = plain(farm.root);
});

watchAttention(byId("needing"), byId("notify"));

const system = matchMedia("(prefers-color-scheme: dark)");
const setTheme = () => {
  document.documentElement.dataset.theme = localStorage.getItem("theme") || (system.matches ? "dark" : "light");
};
system.addEventListener("change", setTheme);
byId("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  setTheme();
});
setTheme();

const KEYS = [
  ["/", "filter"],
  ["j k", "next, previous builder"],
  ["Enter", "open"],
  ["n", "new builder"],
  ["b", "builders"],
  ["s", "sessions"],
  ["v", "review"],
  ["Esc", "back to the builders"],
  ["1 2 3 4 5", "terminal, diff, conflicts, timeline, prompt"],
  ["t", "type into the terminal"],
  ["m", "write a message"],
  ["F6", "leave the terminal"],
  ["Ctrl+Enter", "send the form"],
  ["?", "this help"],
];

const WITHOUT_LETTERS = "agent-farm.no-single-keys";

function help() {
  const letters = h("input", { type: "checkbox", id: "single-keys", checked: !localStorage.getItem(WITHOUT_LETTERS) });
  letters.addEventListener("change", () =>
    letters.checked ? localStorage.removeItem(WITHOUT_LETTERS) : localStorage.setItem(WITHOUT_LETTERS, "yes"),
  );
  ask("Keys", (close) => [
    h(
      "dl.keys",
      KEYS.map(([keys, text]) => [
        h(
          "dt",
          keys.split(" ").map((key) => [h("kbd", key), " "]),
        ),
        h("dd", text),
      ]),
    ),
    h("label.check", letters, "Keys of one letter or sign"),
    h("div.row", h("button", { type: "button", class: "primary", onclick: () => close(null) }, "Close")),
  ]);
}
byId("help").addEventListener("click", help);

function move(step) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".rows .builder")]);
  if (!rows.length) return;
  const at = rows.indexOf(focused());
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLInputElement} */ (event.target);
  const writes = target.closest("input, textarea, select, dialog, .xterm, [contenteditable]");
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && target.form && !event.defaultPrevented) {
    event.preventDefault();
    target.form.requestSubmit();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && !target.closest(".xterm") && !document.querySelector("dialog[open]")) {
    if (writes) target.blur();
    else go("#/");
    return;
  }
  if (writes || document.querySelector("dialog[open]")) return;
  if (event.key.length === 1 && localStorage.getItem(WITHOUT_LETTERS)) return;
  const tabs = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[role="tab"]'));
  const actions = {
    "/": () => byId("filter")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    n: () => go("#/spawn"),
    b: () => go("#/"),
    s: () => go("#/sessions"),
    v: () => go("#/review"),
    "?": help,
    t: () => byId("typing")?.click(),
    m: () => byId("message")?.focus(),
    1: () => tabs[0]?.click(),
    2: () => tabs[1]?.click(),
    3: () => tabs[2]?.click(),
    4: () => tabs[3]?.click(),
    5: () => tabs[4]?.click(),
  };
  if (
    (event.key === "ArrowDown" || event.key === "ArrowUp") &&
    (!document.querySelector(".rows .builder") || target.getAttribute("role") === "tab")
  )
    return;
  const action = actions[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});

connect();
show();
