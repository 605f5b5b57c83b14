// @ts-check
/* Errors with their evidence, short notices, and questions. */
import { byId, h, plain } from "./dom.js";
import { nextStep } from "./hints.js";

/** @typedef {{ what?: string, message?: string, why?: string, hint?: string, evidence?: string[], code?: string, consent?: string }} Trouble */

/** With the next step; what `buttons` do instead of it is theirs to say.
 * @param {Trouble} error @param {...any} buttons */
export function errorBox(error, ...buttons) {
  const isAsked = error.code === "consent-needed";
  const hint = isAsked ? (buttons.length ? null : "af config agree") : error.hint;
  const step = hint ? nextStep(hint) : null;
  const why = isAsked ? "Read it before you agree." : error.why;
  return h(
    "div.error",
    { role: "alert" },
    h("strong", plain(error.what || error.message)),
    why && h("span", plain(why)),
    error.evidence?.length
      ? h(
          "ul",
          { tabindex: "0", "aria-label": "Evidence" },
          error.evidence.map((one) => h("li", plain(one))),
        )
      : null,
    step || buttons.length ? h("div.row", step, buttons) : null,
  );
}

/** The button that agrees to what the error shows, if it is about consent.
 * @param {Trouble} error @param {string} text @param {(consent: string) => any} agree */
export function agreeing({ code, consent }, text, agree) {
  if (code !== "consent-needed" || !consent) return [];
  return [h("button", { type: "button", onclick: () => agree(consent) }, text)];
}

/** @param {string} text @param {string} [href] */
export function toast(text, href) {
  const note = h("p.toast", href ? h("a", { href }, plain(text)) : plain(text));
  byId("toasts").append(note);
  setTimeout(() => note.remove(), 6000);
}

/** A modal dialog; `fill(close)` gives its content. The answer comes when it is closed.
 * @param {string} title
 * @param {(close: (value: any) => void) => any} fill
 * @returns {Promise<any>} */
export function ask(title, fill) {
  return new Promise((done) => {
    const close = (value) => {
      answer = value;
      dialog.close();
    };
    let answer = null;
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, h("h2", { id: "dialog-title" }, title));
    dialog.append(h("div.stack", fill(close)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
