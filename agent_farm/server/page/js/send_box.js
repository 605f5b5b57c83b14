// @ts-check
/* What is said to a builder, under each of its views: a message, or keys that answer a dialog. */
import { ApiError, builderPath, post } from "./api.js";
import { h, plain } from "./dom.js";

/* What was written to a builder and not sent yet, wherever one was meanwhile. */
const drafts = new Map();

/** @param {string} id */
export function sendBox(id) {
  const text = h("textarea", {
    id: "message",
    rows: "1",
    placeholder: "Message ( m )",
    "aria-label": "Message to the builder",
  });
  const result = h("output", { "aria-live": "polite" });
  const button = h("button.primary", { type: "submit" }, "Send");
  const form = h("form.send.card", text, button, result);
  text.value = drafts.get(id) || "";
  text.addEventListener("input", () => drafts.set(id, text.value));
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

  async function deliver(order) {
    button.disabled = true;
    show("", "sending …");
    try {
      const { delivery } = await post(builderPath(id, "/send"), order);
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
    const outcome = await deliver({ text: sent });
    if (outcome !== "submitted" || drafts.get(id) !== sent) return;
    drafts.delete(id);
    text.value = "";
  });
  return { element: form, update(_builder) {} };
}

function told({ outcome, reason, source }) {
  if (outcome !== "submitted") return reason ? `${outcome}: ${plain(reason)}` : outcome;
  return source ? `submitted, confirmed by ${source === "event" ? "the runtime" : "the screen"}` : outcome;
}
