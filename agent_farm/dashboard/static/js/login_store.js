/* The login, kept where only pages of this very address and port can read it, and shown with each request. */

const KEY = "agent-farm.login";

export const login = () => localStorage.getItem(KEY);
export const keepLogin = (value) => localStorage.setItem(KEY, value);
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
