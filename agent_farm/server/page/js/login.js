// @ts-check
import { byId } from "./dom.js";
import { authorization, keepLogin } from "./login_store.js";

/* The ticket comes in the fragment, which is sent to no server and is out of the address bar at once. */

const [ticket, view = ""] = location.hash.slice(1).split("/");
history.replaceState(null, "", "/login");

async function enter() {
  if (ticket) {
    const response = await fetch("/api/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ticket }),
    });
    const answer = await response.json();
    if (response.ok) {
      keepLogin(answer.login);
      return location.replace(/^[a-z]+$/.test(view) ? `/#/${view}` : "/");
    }
    byId("message").textContent = `${answer.error.what}. Run this for a new one:`;
  }
  const farm = await fetch("/api/session", { headers: authorization() });
  if ((await farm.json()).logged_in) location.replace("/");
}

const theme = localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.documentElement.dataset.theme = theme;
enter().catch((error) => {
  byId("message").textContent = `This browser could not be logged in: ${error.message}`;
});
