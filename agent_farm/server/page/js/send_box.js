// @ts-check
/* What is said to a builder, under each of its views: a message, or keys that answer a dialog. */
import { ApiError, act } from "./api.js";
import { h, plain } from "./dom.js";
import { dropDraft, withDraft } from "./drafts.js";
import { optionButtons } from "./options.js";

const KEYS = [
  ["1", "1"],
  ["2", "2"],
  ["3", "3"],
  ["y", "y"],
  ["n", "n"],
  ["↑", "Up"],
  ["↓", "Down"],
  ["Enter", "Enter"],
  ["Esc", "Escape"],
];

/** @param {import('./view.js').View} view @param {string} id */
export function sendBox(view, id) {
  const text = h("textarea", {
    id: "message",
    rows: "1",
    placeholder: "Message ( m )",
    "aria-label": "Message to the builder",
  });
  const result = h("output", { "aria-live": "polite" });
  const button = h("button.primary", { type: "submit" }, "Send");
  const keys = KEYS.map(([word, key]) => h("button", { type: "button", onclick: () => press(key) }, word));
  const answers = h("div.answers", { role: "group", "aria-label": "Keys that answer a dialog", hidden: true }, keys);
  const options = optionButtons(view, id);
  /** @type {string | null} */
  let asked = null;
  const form = h("form.send.card", options.element, answers, text, button, result);
  const draft = `message ${id}`;
  withDraft(draft, text);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  function show(outcome, says) {
    result.dataset.outcome = outcome;
    result.textContent = says;
  }

  async function deliver(verb, order) {
    button.disabled = true;
    show("", "sending …");
    try {
      const { deliveries } = await act(verb, { ids: [id], ...order });
      const [delivery] = deliveries;
      show(delivery.outcome, told(delivery));
      return delivery.outcome;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      show("failed", [error.what, error.why].filter(Boolean).map(plain).join(": "));
      return "failed";
    } finally {
      button.disabled = false;
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sent = text.value;
    if (!sent.trim() || button.disabled) return;
    const outcome = await deliver("send", { text: sent });
    if (outcome === "submitted" && dropDraft(draft, sent)) text.value = "";
  });
  const press = (key) => deliver("send_keys", { keys: key });
  return {
    element: form,
    /* A builder that waits shows a dialog, most often: a message would be held. */
    update({ status }) {
      const waits = status.state === "waiting";
      answers.hidden = !waits;
      const question = waits ? `${status.at} ${status.reason}` : null;
      if (question !== asked) options.update(waits);
      asked = question;
    },
  };
}

function told({ outcome, reason, source }) {
  if (outcome === "pressed") return `${plain(reason)} pressed`;
  if (outcome !== "submitted") return reason ? `${outcome}: ${plain(reason)}` : outcome;
  return source ? `submitted, confirmed by ${source === "event" ? "the runtime" : "the screen"}` : outcome;
}
