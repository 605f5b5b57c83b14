// @ts-check
/* What was written and not sent yet: kept until it is, whatever view or dialog was closed in between. */

/** @type {Map<string, string>} */
const drafts = new Map();

/** The input, with what was written into it before.
 * @param {string} key what it is written for @param {any} input */
export function withDraft(key, input) {
  input.value = drafts.get(key) || "";
  input.addEventListener("input", () => drafts.set(key, input.value));
  return input;
}

/** @param {string} key @param {string} [sent] if something else was written since, that stays
 * @returns {boolean} whether it is gone */
export function dropDraft(key, sent = drafts.get(key)) {
  return drafts.get(key) === sent && drafts.delete(key);
}
