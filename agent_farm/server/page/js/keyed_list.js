// @ts-check
/* A list that is drawn again and again, while somebody reads, selects and clicks in it. */
import { focused } from "./dom.js";

/** `draw(values)`: an item is made anew only if its value says something else than the last time, and moved only if
 * it is out of place, so that selection, focus and scrolling stay.
 * @template T
 * @param {any} list the element that holds the items
 * @param {(value: T) => any} make an item
 * @param {(value: T) => unknown} keyOf
 * @returns {(values: T[]) => void} */
export function keyedList(list, make, keyOf = (/** @type {any} */ value) => value.id) {
  /** @type {Map<unknown, { value: T, json: string, item: any }>} */
  let known = new Map();

  function itemOf(value) {
    const before = known.get(keyOf(value));
    if (before && before.value === value) return before;
    const json = JSON.stringify(value);
    if (before && before.json === json) return before;
    const item = make(value);
    if (before) change(before.item, item);
    return { value, json, item };
  }

  return (values) => {
    known = new Map(values.map((value) => [keyOf(value), itemOf(value)]));
    place(
      list,
      [...known.values()].map(({ item }) => item),
    );
  };
}

const FOCUSABLE = "a, button, input, select, summary, [tabindex]";

/* What had the focus in the old item has it in the new one. */
function change(before, now) {
  const at = [...before.querySelectorAll(FOCUSABLE)].indexOf(focused());
  before.replaceWith(now);
  if (at >= 0) now.querySelectorAll(FOCUSABLE)[at]?.focus();
}

/* The focus of an item that goes is left to the one that takes its place. */
function place(list, items) {
  const lost = [...list.children].findIndex((one) => one.contains(focused()) && !items.includes(one));
  let next = list.firstChild;
  for (const item of items) {
    if (item === next) next = next.nextSibling;
    else list.insertBefore(item, next);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
  const heir = lost < 0 ? null : items[Math.min(lost, items.length - 1)];
  heir?.querySelector(FOCUSABLE)?.focus({ preventScroll: true });
}
