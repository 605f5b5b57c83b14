// @ts-check
/* One builder as a line of the board. */
import { h, line } from "./dom.js";
import { age, count, money } from "./format.js";
import { proofMark } from "./proof.js";
import { pill } from "./states.js";

export function builderRow(builder) {
  const { status } = builder;
  const why = status.reason && !["working", "idle"].includes(status.state) ? line(status.reason) : detail(builder);
  return h(
    "a.builder",
    { href: `#/builder/${encodeURIComponent(builder.id)}`, "data-id": builder.id, "data-state": status.state },
    h(
      "span.state",
      pill(status.state),
      h(
        "span.when",
        { title: `said by: ${status.source}` },
        status.source,
        status.at ? [" · ", h("span", { "data-at": status.at }, age(status.at))] : null,
      ),
    ),
    h("span.what", h("span.title.isolate", line(builder.title)), why && h("span.why.isolate", why)),
    h(
      "span.place",
      h("span", { title: builder.id }, builder.id),
      h("span.branch", { title: builder.branch }, builder.branch),
    ),
    gitBadges(builder),
    h(
      "span.runtime",
      h("b", builder.runtime),
      builder.model ? ` ${line(builder.model)}` : "",
      machine(builder),
      builder.usage ? h("span.usage", usage(builder.usage)) : null,
    ),
    h("span.ports", ports(builder.ports)),
  );
}

function detail(builder) {
  if (builder.type === "task" && builder.files.length) return `files: ${line(builder.files.join(", "))}`;
  if (builder.type === "protocol" && builder.protocol_args) return line(JSON.stringify(builder.protocol_args));
  return null;
}

export function gitBadges({ git, proof, pull_request: request }) {
  const place = h("span.git");
  if (!git) return place;
  const badge = (kind, number, sign, word) =>
    number
      ? h(
          "span",
          { class: kind, title: `${number} ${word}` },
          `${sign}${number}`,
          h("span.visually-hidden", ` ${word}`),
        )
      : null;
  const badges = [
    git.ahead == null
      ? h("span", { title: "its distance from the base is unknown" }, git.missing ? `? ${git.missing} gone` : "?")
      : null,
    badge("ahead", git.ahead, "+", "commits ahead of the base"),
    badge("behind", git.behind, "−", "commits behind the base"),
    git.landed && git.has_commits
      ? h("span.landed", { title: "all its commits are on the base, the main checkout's branch or a remote" }, "landed")
      : null,
    badge("dirty", git.dirty, "~", "changed files"),
    badge("untracked", git.untracked, "?", "untracked files"),
    git.landed && git.has_commits ? null : proofMark(proof),
    request?.number ? h("span", { title: line(request.url) }, `#${request.number} ${request.state}`) : null,
  ].filter(Boolean);
  place.append(...(badges.length ? badges : [h("span", { title: "nothing uncommitted, nothing ahead" }, "clean")]));
  return place;
}

/* Where it is, if not here; with the age of what its machine told, where that does not answer. */
export function machine({ host, seen_at: seen }) {
  if (!host) return null;
  const old = seen ? [", ", h("span", { "data-at": seen }, age(seen)), " ago"] : null;
  const title = seen ? `as last reported by ${host}, which has not answered since` : "a machine of the fleet";
  return h("span.host", { title }, `on ${host}`, old);
}

/* Tokens in and out, and what they cost. */
export function usage({ input_tokens: input, output_tokens: output, cost }) {
  return `${count(input)}/${count(output)}${cost ? ` ${money(cost)}` : ""}`;
}

export function ports(numbers) {
  if (!numbers.length) return "";
  const last = numbers[numbers.length - 1];
  return numbers.length > 1 ? `:${numbers[0]}–${last}` : `:${numbers[0]}`;
}
