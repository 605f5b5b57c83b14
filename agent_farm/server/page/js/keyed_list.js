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

const FOCUSABLE = "a, button, input, select, [tabindex]";

/* What had the focus in the old item has it in the new one. */
function change(before, now) {
  const at = [...before.querySelectorAll(FOCUSABLE)].indexOf(focused());
  before.replaceWith(now);
  if (at >= 0) now.querySelectorAll(FOCUSABLE)[at]?.focus();
}

function place(list, items) {
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
}
