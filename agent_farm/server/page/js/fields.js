// @ts-check
/* Fields of a verb's request as the server describes them, and an input for each: a field's label is its name,
   its help and its choices are those of the description. */
import { read } from "./api.js";
import { h, plain, replace } from "./dom.js";

/** @typedef {{ name: string, kind: "text" | "list" | "number" | "choice" | "flag", help: string, choices: string[], standard: any, least?: number, most?: number }} Field */

/** @type {Map<string, Promise<Map<string, Field>>>} */
const described = new Map();

/** @param {string} verb one that changes something
 * @returns {Promise<Map<string, Field>>} in the order of the description */
export function fieldsOf(verb) {
  const found = described.get(verb) || describe(verb);
  described.set(verb, found);
  found.catch(() => described.delete(verb));
  return found;
}

async function describe(verb) {
  const { paths, components } = await read("openapi.json", { verb });
  const { $ref } = paths[`/api/${verb}`].post.requestBody.content["application/json"].schema;
  const { properties } = components.schemas[$ref.split("/").pop()];
  return new Map(Object.entries(properties).map(([name, schema]) => [name, fieldFrom(name, schema)]));
}

/** @returns {Field} */
function fieldFrom(name, { description = "", default: standard, anyOf, ...own }) {
  const types = (anyOf || [own]).filter((one) => one.type !== "null");
  const choices = types.flatMap((one) => one.enum || []);
  const kinds = { boolean: "flag", integer: "number", number: "number", array: "list" };
  const kind = choices.length ? "choice" : (types.length === 1 && kinds[types[0].type]) || "text";
  const [{ minimum: least, maximum: most }] = types;
  return { name, kind, help: description, choices, standard, least, most };
}

/** A field that has not been described yet.
 * @param {string} name @returns {Field} */
export const textField = (name) => ({ name, kind: "text", help: "", choices: [], standard: null });

/** @param {string} name */
export const labelOf = (name) => `${name[0].toUpperCase()}${name.slice(1).replaceAll("_", " ")}`;

/** How a field is called on the page, by its name.
 * @param {Iterable<Field>} fields */
export const labelsOf = (fields) =>
  new Map([...fields].map((one) => [one.name, one.kind === "flag" ? one.help : labelOf(one.name)]));

/** @typedef {{ name: string, element: any, input: any, value: () => any, text: () => string,
 *   describe: (help: string) => void, offer: (options: any[]) => void, refuse: (box: any) => void }} Control */

/** An input with label and help. `select`: what is offered is all there is; `rows`: of a text with lines.
 * @param {Field} field
 * @param {{ form: string, drafts: Record<string, any>, select?: boolean, rows?: number, placeholder?: string,
 *   changed?: () => void }} how
 * @returns {Control} */
export function control(field, { form, drafts, changed = () => {}, ...look }) {
  const { name, kind } = field;
  const id = `${form}-${name}`;
  const input = inputOf(field, id, look);
  const part = kind === "flag" ? "checked" : "value";
  if (drafts[name] !== undefined) input[part] = drafts[name];
  input.addEventListener("input", () => {
    refuse(null);
    if (input[part]) drafts[name] = input[part];
    else delete drafts[name];
    changed();
  });
  const help = h("span.hint", { id: `${id}-help`, hidden: true });
  const refused = h("div", { id: `${id}-error` });
  const labelled =
    kind === "flag"
      ? h("label.check", input, plain(field.help))
      : [h("label", { for: id }, labelOf(name)), input, help];

  function describe(text) {
    replace(help, plain(text));
    help.hidden = !text;
    if (text) input.setAttribute("aria-describedby", help.id);
  }

  function refuse(box) {
    replace(refused, box);
    input.setAttribute("aria-invalid", String(Boolean(box)));
    if (box) input.setAttribute("aria-errormessage", refused.id);
  }

  function offer(options) {
    replace(input, options);
    input.value = drafts[name] ?? "";
    if (input.selectedIndex >= 0) return;
    input.selectedIndex = 0;
    delete drafts[name];
  }

  if (kind === "choice") offer(choicesOf(field));
  if (kind !== "flag") describe(field.help);
  const element = h("div.field", { "data-field": name }, labelled, refused);
  const text = () => (kind === "flag" ? "" : input.value.trim());
  return { name, element, input, value: () => givenIn(field, input), text, describe, offer, refuse };
}

/** @param {Field} field @param {string} [standard] what it is if nothing is chosen */
export const choicesOf = ({ choices }, standard = "as configured") => [
  h("option", { value: "" }, standard),
  choices.map((one) => h("option", { value: one }, one)),
];

/** @param {Field} field @param {string} id @param {{ select?: boolean, rows?: number, placeholder?: string }} look */
function inputOf({ kind, least, most, standard }, id, { select = false, rows = 0, placeholder = "" }) {
  if (kind === "flag") return h("input", { type: "checkbox", id });
  if (select || kind === "choice") return h("select", { id });
  if (rows) return h("textarea", { id, rows: String(rows), placeholder });
  const plainText = { id, autocomplete: "off", spellcheck: "false", placeholder };
  if (kind !== "number") return h("input", { type: "text", ...plainText });
  const bounds = { min: String(least ?? ""), max: String(most ?? "") };
  return h("input", { ...plainText, type: "number", ...bounds, placeholder: String(standard ?? "") });
}

/* What is left empty is not given. */
function givenIn({ kind }, input) {
  if (kind === "flag") return input.checked || null;
  const text = input.value;
  if (!text.trim()) return null;
  if (kind === "number") return Number(text);
  if (kind === "list") return listed(text);
  return input.tagName === "TEXTAREA" ? text : text.trim();
}

export const listed = (text) =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);

/** The controls that an error is about: those whose option it names, or what is written in them.
 * @param {import('./messages.js').Trouble} error @param {Control[]} controls */
export function refusedOf(error, controls) {
  const what = error.what || "";
  const flags = new Set([...what.matchAll(/--([a-z][a-z-]*)/g)].map(([, flag]) => flag.replaceAll("-", "_")));
  const at = /^(\w+)(?:\[[^:]*\]|\.[^:]*)?: /.exec(error.why || "")?.[1];
  const named = controls.filter((one) => flags.has(one.name) || (error.code === "usage" && one.name === at));
  if (named.length) return named;
  const lengths = controls.map((one) =>
    Math.max(0, ...wordsOf(one).map((word) => (hasWord(what, word) ? word.length : 0))),
  );
  const longest = Math.max(2, ...lengths);
  return controls.filter((_, at) => lengths[at] === longest);
}

const wordsOf = (one) => [one.text(), ...listed(one.text())];

function hasWord(text, word) {
  const at = text.indexOf(word);
  const around = (place) => /[\w-]/.test(text[place] || "");
  return at >= 0 && !around(at - 1) && !around(at + word.length);
}
