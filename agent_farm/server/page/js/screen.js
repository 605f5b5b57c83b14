// @ts-check
/* The screen as plain text, where this installation was made without npm and so has no xterm.js. */
import { h, plain, replace } from "./dom.js";
import { errorBox } from "./messages.js";

const LOOK_MILLISECONDS = 1000;

export function screenPanel(view, builder) {
  const says = h("span.says", { role: "status" }, "plain screen: this installation has no xterm.js. af attach types.");
  const screen = h("pre.screen", { tabindex: "0", "aria-label": "Screen of the builder" });
  view.show(
    h("div.terminal-card.card", h("div.terminal-bar", says), h("div.terminal-box", { id: "terminal" }, screen)),
  );
  let timer = 0;
  async function look() {
    if (!document.hidden) {
      try {
        const answer = await view.read("capture", { id: builder.id });
        screen.textContent = answer.screen.split("\n").map(plain).join("\n");
      } catch (error) {
        replace(screen, errorBox(error));
      }
    }
    timer = setTimeout(look, LOOK_MILLISECONDS);
  }
  look();
  view.onLeave(() => clearTimeout(timer));
  return {};
}
