// @ts-check
/* Whether the server that answers is the one that gave a login, and sockets that show it the login. */

/** While the farm's server does not run, anybody on this machine may listen at its port.
 * @param {string} login
 * @returns {Promise<"ours" | "gone" | "unknown">} */
export async function askWhoAnswers(login) {
  const key = await hash(login);
  const nonce = crypto.randomUUID();
  const answer = await fetch(`/api/session?login=${key.slice(0, 16)}&nonce=${nonce}`)
    .then((one) => one.json())
    .catch(() => null);
  if (!answer) return "gone";
  return answer.proof === (await sign(key, nonce)) ? "ours" : "unknown";
}

/** A WebSocket can carry no header of a page's choice but the protocols it offers.
 * @param {string} path @param {string | null} login */
export function openSocket(path, login) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return new WebSocket(`${scheme}://${location.host}${path}`, ["agent-farm", `login.${login}`]);
}

const bytes = (text) => new TextEncoder().encode(text);
const hex = (buffer) => [...new Uint8Array(buffer)].map((one) => one.toString(16).padStart(2, "0")).join("");
const hash = async (text) => hex(await crypto.subtle.digest("SHA-256", bytes(text)));

async function sign(key, text) {
  const imported = await crypto.subtle.importKey("raw", bytes(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return hex(await crypto.subtle.sign("HMAC", imported, bytes(text)));
}
