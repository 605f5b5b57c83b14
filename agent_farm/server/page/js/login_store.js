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

/** Whether the login may be shown: asked at first, and again after each break of the connection.
 * @type {boolean | null} */
let isOurs = null;
/** @type {(isOurs: boolean) => void} */
let firstKnown;
const first = new Promise((resolve) => {
  firstKnown = resolve;
});

export const serverIsOurs = () => (isOurs === null ? first : Promise.resolve(isOurs));

/** @param {boolean} proof */
export function noteProof(proof) {
  isOurs = proof;
  firstKnown(proof);
}
