// @ts-check
/* Elements from values. Everything a person, an agent or a program wrote becomes text, never markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * `h("button.quiet", { type: "button", onclick: act }, "Close")`. Of the properties, `onclick` and its like
 * listen, null and false are left out. Children are elements, texts and lists of them; null and false are nothing.
 * @param {string} name with its classes
 * @param {...any} parts properties, if the first is a plain object, and children
 * @returns {any} an element of that name
 */
export function h(name, ...parts) {
  const [tag, ...classes] = name.split(".");
  /** @type {any} */
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  if (isProperties(parts[0])) set(element, parts.shift());
  return append(element, parts);
}

const isProperties = (one) =>
  one !== null && typeof one === "object" && Object.getPrototypeOf(one) === Object.prototype;

function set(element, properties) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key in element && key !== "list" && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
}

/** Of the page itself, which is always there.
 * @param {string} id
 * @returns {any} */
export const byId = (id) => document.getElementById(id);

/** What has the focus, as an element with data of its own.
 * @returns {any} */
export const focused = () => document.activeElement;

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/* The focus stays on what does the same as before, else on the first that does something. */
export function replace(element, ...children) {
  const before = element.contains(focused()) ? focused().dataset.action : null;
  element.replaceChildren();
  append(element, children);
  const same = before && element.querySelector(`[data-action="${CSS.escape(before)}"]`);
  if (before) (same || element.querySelector("[data-action]"))?.focus();
  return element;
}

/* `drawn(part, value)`: whether the part shows another value than the last time, and so is to be drawn. */
export function drawnOnce() {
  /** @type {Map<string, string>} */
  const shown = new Map();
  return (part, value) => {
    const now = JSON.stringify(value);
    const differs = shown.get(part) !== now;
    shown.set(part, now);
    return differs;
  };
}

export function s(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  return append(element, children);
}

export function icon(name) {
  return s("svg", { "aria-hidden": "true" }, s("use", { href: `/static/icons.svg#${name}` }));
}

/** Control characters as pictures of themselves; what turns the direction of text is taken out.
 * @param {unknown} text */
export function plain(text) {
  return String(text ?? "")
    .replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, "\ufffd")
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f]/g, "\ufffd");
}

/** @param {unknown} text */
export function line(text) {
  return plain(text).replace(/\s+/g, " ").trim();
}
