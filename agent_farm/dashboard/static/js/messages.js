/* Errors with their evidence, short notices, and questions. */
import { h, plain } from "./dom.js";

export function errorBox(error, ...buttons) {
  return h("div", { class: "error", role: "alert" },
    h("strong", null, plain(error.what || error.message)),
    error.why && h("span", null, plain(error.why)),
    error.evidence?.length ? h("ul", { tabindex: "0", "aria-label": "Evidence" }, error.evidence.map((one) => h("li", null, plain(one)))) : null,
    error.hint && h("span", { class: "hint-line" }, `hint: ${plain(error.hint)}`),
    buttons.length ? h("div", { class: "row" }, buttons) : null);
}

export function toast(text, href) {
  const note = h("p", { class: "toast" }, href ? h("a", { href }, plain(text)) : plain(text));
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), 6000);
}

/* A modal dialog; `fill(close)` gives its content. The answer comes when it is closed. */
export function ask(title, fill) {
  return new Promise((done) => {
    const close = (value) => { answer = value; dialog.close(); };
    let answer = null;
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, h("h2", { id: "dialog-title" }, title));
    dialog.append(h("div", { class: "stack" }, fill(close)));
    dialog.addEventListener("close", () => { dialog.remove(); done(answer); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
