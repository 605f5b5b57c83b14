// @ts-check
/* What checks and the diff say of a builder's work: a mark for its line, and all of it for its own page. */
import { h, line } from "./dom.js";
import { moment } from "./format.js";

const MARKS = {
  proven: ["✓", "proven: every check passed on it merged into its target"],
  flagged: ["!", "flagged: every check passed on it merged into its target"],
  red: ["✗", "not proven"],
  conflicts: ["✗", "not proven"],
};

/* Nothing for what has not been checked, or has nothing to check. */
export function proofMark(proof) {
  const was = proof?.state === "stale" ? /was (proven|flagged)/.exec(proof.reason)?.[1] : null;
  const said = MARKS[was ?? proof?.state];
  if (!said) return null;
  const [sign, word] = was ? [`(${said[0]})`, `it was ${was} before it or its target moved`] : said;
  const flags = proof.flags.length ? `, ${proof.flags.length} to look at` : "";
  const title = `${word}${proof.reason ? ` (${line(proof.reason)})` : ""}${flags}`;
  return h(
    "span",
    { class: `proof ${proof.state}`, title },
    `${sign}${flags && sign === "✗" ? "!" : ""}`,
    h("span.visually-hidden", ` ${title}`),
  );
}

export function proofDetails(proof) {
  if (!proof) return null;
  return h(
    "div.proof-details",
    h("span", { class: `proof ${proof.state}` }, proof.state),
    proof.reason ? h("span.isolate", `: ${line(proof.reason)}`) : null,
    h("span.small.dim", ` · ${moment(proof.at)} on ${line(proof.into)}`),
    proof.tree ? h("span.small.dim", { title: proof.tree }, ` · tree ${proof.tree.slice(0, 10)}`) : null,
    h(
      "ul",
      proof.checks.map((check) =>
        h(
          "li",
          { title: line(check.command) },
          `${line(check.name)}: ${ending(check)}, ${check.seconds.toFixed(1)} s, `,
          h("code", line(check.log)),
        ),
      ),
      proof.flags.map((flag) =>
        h(
          "li.flag.isolate",
          `${line(flag.kind)} · ${line(flag.file)}${flag.line ? `:${flag.line}` : ""}: ${line(flag.text)}`,
        ),
      ),
    ),
  );
}

function ending(check) {
  if (check.passed) return "passed";
  if (check.timed_out) return "took too long";
  if (check.exit_code === 0) return "changed tracked files";
  return check.exit_code === null ? "was ended" : `exit code ${check.exit_code}`;
}
