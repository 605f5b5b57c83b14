// @ts-check
/* The options of the dialog on a builder's screen, as buttons: each presses its key. */
import { act } from "./api.js";
import { h, line, replace } from "./dom.js";
import { toast } from "./messages.js";

const AGAIN_MILLISECONDS = 700;
const MOST_LOOKS = 6;

/** Of one that waits. A hook may come before the dialog is on the screen.
 * @param {import('./view.js').View} view @param {string} id */
export function optionButtons(view, id) {
  const place = h("div.options", { role: "group", "aria-label": `Answers to ${id}`, hidden: true });
  const read = view.newest();
  /** @type {number | undefined} */
  let timer;

  async function look(left) {
    const { options } = await read("capture", { id }).catch(() => ({ options: {} }));
    const found = Object.entries(options);
    place.hidden = !found.length;
    replace(
      place,
      found.map(([key, word]) =>
        h(
          "button",
          { type: "button", "data-option": key, onclick: () => press(key) },
          h("kbd", key),
          h("span.isolate", line(word)),
        ),
      ),
    );
    if (!found.length && left) timer = setTimeout(() => look(left - 1), AGAIN_MILLISECONDS);
  }

  async function press(key) {
    for (const button of place.children) button.disabled = true;
    try {
      const { deliveries } = await act("send_keys", { ids: [id], keys: key });
      const [{ outcome, reason }] = deliveries;
      if (outcome !== "pressed") toast(`${id}: ${reason || outcome}`);
    } catch (error) {
      toast(`${id}: ${error.what || error.message}`);
    }
    setTimeout(() => look(0), AGAIN_MILLISECONDS);
  }

  view.onLeave(() => clearTimeout(timer));
  return {
    element: place,
    update(waits) {
      clearTimeout(timer);
      if (waits) look(MOST_LOOKS);
      else place.hidden = true;
    },
  };
}
