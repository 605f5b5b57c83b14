/* The documented API (/api/openapi.json) and nothing else. */
import { authorization, leaveToLogin, serverIsOurs } from "./login_store.js";

export class ApiError extends Error {
  constructor(status, error) {
    super(error.what);
    Object.assign(this, { status, code: error.code, what: error.what, why: error.why, hint: error.hint });
    this.evidence = error.evidence || [];
  }
}

async function call(method, path, body, signal) {
  const gone = { code: "gone", what: "The farm's server does not answer", hint: "af dash" };
  if (!(await serverIsOurs())) throw new ApiError(0, gone);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: { ...authorization(), ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
      signal,
    });
  } catch {
    throw new ApiError(0, gone);
  }
  if (response.status === 401) {
    leaveToLogin();
    throw new ApiError(401, { code: "login", what: "Logged out", hint: "af dash" });
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok || !answer) {
    const unreadable = { code: "error", what: `The server answered ${response.status}` };
    throw new ApiError(response.status, answer?.error || unreadable);
  }
  return answer;
}

export const get = (path, signal) => call("GET", path, undefined, signal);
export const post = (path, body = {}) => call("POST", path, body);
export const remove = (path) => call("DELETE", path);
export const builderPath = (id, rest = "") => `/api/builders/${encodeURIComponent(id)}${rest}`;
