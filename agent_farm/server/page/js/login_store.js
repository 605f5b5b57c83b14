// @ts-check
/* The login, kept where only pages of this very address and port can read it, and shown to its own server alone. */

const KEY = "agent-farm.login";

export const login = () => localStorage.getItem(KEY);
export const keepLogin = (value) => localStorage.setItem(KEY, value);
/** @returns {Record<string, string>} */
export const authorization = () => (login() ? { Authorization: `Bearer ${login()}` } : {});

export function leaveToLogin() {
  localStorage.removeItem(KEY);
  location.assign("/login");
}

/* A WebSocket can carry no header of a page's choice but the protocols it offers. */
export function openSocket(path) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return new WebSocket(`${scheme}://${location.host}${path}`, ["agent-farm", `login.${login()}`]);
}

/* Whether the login may be shown: asked at first, and again after each break of the connection. */
/** @type {boolean | null} */
let isOurs = null;
/** @type {(isOurs: boolean) => void} */
let firstKnown;
const first = new Promise((resolve) => {
  firstKnown = resolve;
});

export const serverIsOurs = () => (isOurs === null ? first : Promise.resolve(isOurs));

export function noteBreak() {
  isOurs = false;
}

/* While the server does not run, anybody on this machine may listen at its port. `ours`, `gone` or `unknown`. */
export async function askWhoAnswers() {
  const key = await hash(login());
  const nonce = crypto.randomUUID();
  const answer = await fetch(`/api/session?login=${key.slice(0, 16)}&nonce=${nonce}`)
    .then((one) => one.json())
    .catch(() => null);
  if (!answer) return "gone";
  if (answer.proof !== (await sign(key, nonce))) return "unknown";
  isOurs = true;
  firstKnown(true);
  return "ours";
}

const bytes = (text) => new TextEncoder().encode(text);
const hex = (buffer) => [...new Uint8Array(buffer)].map((one) => one.toString(16).padStart(2, "0")).join("");
const hash = async (text) => hex(await crypto.subtle.digest("SHA-256", bytes(text)));

async function sign(key, text) {
  const imported = await crypto.subtle.importKey("raw", bytes(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return hex(await crypto.subtle.sign("HMAC", imported, bytes(text)));
}
