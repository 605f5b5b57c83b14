// @ts-check
/* The next step of an error. What the page can do is a link or a button; the rest is a command for a terminal. */
import { carryOut, resume, stop, sync } from "./actions.js";
import { agreeDialog } from "./agree_dialog.js";
import { act } from "./api.js";
import { h, plain } from "./dom.js";
import { builders } from "./live.js";
import { mergeDialog } from "./merge_dialog.js";
import { pruneDialog } from "./prune_dialog.js";

const toBuilder = (id, view = "") => `#/builder/${encodeURIComponent(id)}${view}`;

/* Where a command's answer is on the page: a name and an address. */
const PLACES = {
  status: (id) => (id ? [`Open ${id}`, toBuilder(id)] : ["Builders", "#/"]),
  attach: (id) => (id ? [`Open the terminal of ${id}`, toBuilder(id)] : null),
  capture: (id) => (id ? [`Open the terminal of ${id}`, toBuilder(id)] : null),
  diff: (id) => (id ? [`See the changes of ${id}`, toBuilder(id, "/diff")] : null),
  logs: (id) => (id ? [`See what happened to ${id}`, toBuilder(id, "/timeline")] : null),
  review: (id) => (id ? [`Review ${id}`, `#/review/${encodeURIComponent(id)}`] : ["Review", "#/review"]),
  restore: () => ["Removed builders", "#/removed"],
  removed: () => ["Removed builders", "#/removed"],
  queue: (id) => (id ? null : ["Builders", "#/"]),
  sessions: () => ["Sessions", "#/sessions"],
  costs: () => ["Costs", "#/costs"],
};

/* What is done to a builder that is there, by its command; `options` are those that its dialog has, too. */
const ACTIONS = {
  stop: { text: "Stop", asks: false, run: stop, options: /^$/ },
  resume: { text: "Resume", asks: false, run: (builder) => resume(builder), options: /^$/ },
  sync: { text: "Sync", asks: false, run: sync, options: /^$/ },
  merge: { text: "Merge", asks: true, run: mergeDialog, options: /^(--here|--strategy [a-z]+)?$/ },
  prune: { text: "Prune", asks: true, run: ({ id }) => pruneDialog(id), options: /^(--stop)?$/ },
};

/* What is done to no builder. */
const COMMANDS = new Map([
  ["af land --continue", { text: "Continue the landing", run: () => act("land_continue", { background: true }) }],
  ["af land --abort", { text: "Empty the landing queue", run: () => act("land_abort") }],
  ["af config agree", { text: "Read and agree …", run: agreeDialog }],
  ["af config agree --yes", { text: "Read and agree …", run: agreeDialog }],
]);

/** @param {string} command as the error's hint says it
 * @returns {any} an element, or null where the page has no use for it */
export function nextStep(command) {
  if (/^af (\S+ )*--help$/.test(command)) return null; // of options, which the page has none of
  const [af, verb, ...words] = command.split(" ");
  const id = words.pop();
  const options = words.join(" ");
  const known = (table) => (af === "af" && Object.hasOwn(table, verb) ? table[verb] : null);
  const action = known(ACTIONS);
  const builder = id && builders.get(id);
  if (builder && action?.options.test(options))
    return button(`${action.text} ${id}${action.asks ? " …" : ""}`, () => action.run(builder, options));
  const place = options ? null : known(PLACES)?.(id);
  if (place) return h("a.button", { href: place[1], onclick: closeDialog }, place[0]);
  const other = COMMANDS.get(command);
  if (other) return button(other.text, other.run);
  return h("span.hint-line", "In a terminal: ", h("code", plain(command)), copyButton(command));
}

function closeDialog() {
  /** @type {HTMLDialogElement | null} */ (document.querySelector("dialog[open]"))?.close();
}

function button(text, action) {
  const onclick = () => {
    closeDialog();
    carryOut(action);
  };
  return h("button", { type: "button", onclick }, plain(text));
}

function copyButton(command) {
  const element = h("button.quiet.small", { type: "button", "aria-label": `Copy ${command}` }, "Copy");
  element.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command);
    element.textContent = "Copied";
  });
  return element;
}

/** An error's words for whoever has a form before them: an option is called what its field is called there.
 * @param {string | undefined} text @param {Map<string, string>} labels by the field's name */
export const worded = (text, labels) =>
  text?.replace(/--([a-z]+(?:-[a-z]+)*)/g, (flag, name) => {
    const label = labels.get(name.replaceAll("-", "_"));
    return label ? `“${label}”` : flag;
  });
