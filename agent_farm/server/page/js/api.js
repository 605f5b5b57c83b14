// @ts-check
/* The documented API (/api/openapi.json) and nothing else: verbs that read, and verbs that change something. */
import { authorization, leaveToLogin, serverIsOurs } from "./login_store.js";

/** A refusal: what, why, the evidence and the next command, as every door says it. */
export class ApiError extends Error {
  /** @param {number} status @param {import('./messages.js').Trouble} error */
  constructor(status, error) {
    super(error.what);
    this.status = status;
    this.code = error.code;
    this.what = error.what;
    this.why = error.why;
    this.hint = error.hint;
    this.evidence = error.evidence || [];
    this.consent = error.consent;
  }
}

/** @param {string} method @param {string} path @param {unknown} [body] @param {AbortSignal} [signal]
 * @returns {Promise<any>} */
async function call(method, path, body, signal) {
  const response = await asked(method, path, body, signal);
  const answer = await response.json().catch(() => null);
  if (!response.ok || !answer) throw refusal(response, answer);
  return answer;
}

function refusal({ status }, answer) {
  return new ApiError(status, answer?.error || { code: "error", what: `The server answered ${status}` });
}

async function asked(method, path, body, signal, accept = {}) {
  const gone = { code: "gone", what: "The farm's server does not answer", hint: "af dash" };
  if (!(await serverIsOurs())) throw new ApiError(0, gone);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: { ...authorization(), ...accept, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
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
  return response;
}

/** A verb that reads. A list is given as many values of one name.
 * @param {string} verb @param {Record<string, any>} [query] @param {AbortSignal} [signal] */
export function read(verb, query = {}, signal) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of [value].flat()) words.append(name, String(one));
  }
  return call("GET", `/api/${verb}${words.size ? `?${words}` : ""}`, undefined, signal);
}

/** A verb that changes something; what is null counts as not given.
 * @param {string} verb @param {Record<string, any>} [request] */
export const act = (verb, request = {}) => call("POST", `/api/${verb}`, request);

/** The same for a verb over several: `heard` gets what became of each as it is known.
 * @param {string} verb @param {Record<string, any>} request @param {(part: any) => void} heard */
export async function actOnSeveral(verb, request, heard) {
  const response = await asked("POST", `/api/${verb}`, request, undefined, { Accept: "application/x-ndjson" });
  if (!response.ok || !response.body) throw refusal(response, await response.json().catch(() => null));
  try {
    for await (const line of linesOf(response.body)) {
      const said = JSON.parse(line);
      if (said.error) throw new ApiError(response.status, said.error);
      if ("part" in said) heard(said.part);
      else if (!("told" in said)) return said;
    }
  } catch (error) {
    if (error instanceof ApiError) throw error;
  }
  throw new ApiError(0, { code: "gone", what: "The server ended before it had answered" });
}

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let begun = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    const lines = (begun + piece.value).split("\n");
    begun = lines.pop() || "";
    yield* lines;
  }
}
