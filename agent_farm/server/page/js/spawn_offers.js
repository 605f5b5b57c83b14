// @ts-check
/* What this farm has for the fields of the spawn form: specs, protocols, runtimes, machines, defaults. */
import { h, line, plain } from "./dom.js";
import { choicesOf } from "./fields.js";
import { builders } from "./live.js";

/** @typedef {{ offered: Record<string, any>, fields: Map<string, import('./fields.js').Field>, kind: string }} Known
 * `offered` is the answer of `choices`, empty until it is there */

const option = (value, text = value, title = "") => h("option", { value, title }, plain(text));
const configured = (value) => `as configured (${value})`;

/* Of fields that are a select. */
const SELECTS = {
  project: ({ projects }) =>
    all(
      projects.map((one) => option(one.id, `${one.id} ${one.name}`)),
      "codev/specs",
    ),
  protocol({ protocols }, { kind }) {
    const names = protocols.map((one) => option(one));
    return kind === "protocol" ? all(names, "codev/protocols") : [option("", "none"), names];
  },
  runtime({ runtimes, defaults }) {
    const standard = defaults.runtime || usable(runtimes)[0];
    const text = ({ name, problem }) => (problem ? `${name} (not usable)` : name);
    const first = option("", standard ? configured(standard) : "choose one");
    return [first, runtimes.map((one) => option(one.name, text(one), one.problem || ""))];
  },
  on: ({ on, defaults }) => [option("", configured(defaults.on || "local")), on.map((one) => option(one))],
  permissions({ defaults }, { fields }) {
    const field = fields.get("permissions");
    return field ? choicesOf(field, configured(defaults.permissions)) : [];
  },
};

/* Of fields that are written: what is taken if they are empty, or an example. */
const PLACEHOLDERS = {
  base: ({ defaults }) => defaults.base,
  model: ({ defaults }) => defaults.model,
  runtimes: ({ runtimes }) => usable(runtimes).slice(0, 3).join(", "),
  after: () => [...builders.keys()].at(-1),
  stack: () => [...builders.keys()].at(-1),
};

/** @param {import('./fields.js').Control} control @param {Known} known */
export function offer(control, known) {
  const { name, input } = control;
  const { offered } = known;
  if (!offered.defaults) return;
  if (SELECTS[name]) control.offer(SELECTS[name](offered, known));
  if (PLACEHOLDERS[name]) input.placeholder = line(PLACEHOLDERS[name](offered));
  if (name === "runtime") control.describe(""); // its choices say it
}

const all = (options, where) => (options.length ? options : option("", `there are none in ${where}`));
const usable = (runtimes) => runtimes.filter((one) => !one.problem && one.name !== "demo").map((one) => one.name);
