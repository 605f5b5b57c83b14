// @ts-check
/* What the repository wants to run, copy or pass on, and nobody has agreed to yet: read first, then agreed to. */
import { act } from "./api.js";
import { h, replace } from "./dom.js";
import { agreeing, ask, errorBox, toast } from "./messages.js";

export function agreeDialog() {
  return ask("What this repository wants", (close) => {
    const place = h("div.stack", { "aria-live": "polite" }, h("p.dim", "Reading …"));
    async function look(yes) {
      try {
        const { agreed } = await act("config_agree", { yes });
        if (!agreed.length) return replace(place, h("p", "There is nothing left to agree to."));
        close(agreed);
        toast(`Agreed to ${agreed.length}`);
      } catch (error) {
        replace(place, errorBox(error, ...agreeing(error, "Agree", look)));
      }
    }

    look(null);
    return [place, h("div.row", h("button", { type: "button", onclick: () => close(null) }, "Close"))];
  });
}
