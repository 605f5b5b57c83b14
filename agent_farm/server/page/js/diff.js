// @ts-check
/* What a builder changed, file by file. */
import { h, plain, replace } from "./dom.js";
import { errorBox } from "./messages.js";

const MOST_CHARACTERS = 2_000_000;
const OPEN_LINES = 400;
const MOST_LINES = 4000;

export function diffPanel(view, builder) {
  const read = view.newest();
  const committed = h("input", { type: "checkbox" });
  const sum = h("span.sum", { role: "status" }, "Loading …");
  const again = h("button", { type: "button", onclick: load }, "Read again");
  const files = h("div");
  committed.addEventListener("change", load);
  view.show(h("div.diff-head", sum, h("label.check", committed, "only what is committed"), again), files);
  async function load() {
    try {
      const { diff, truncated, base, ...all } = await read("diff", {
        id: builder.id,
        committed: committed.checked,
        most: MOST_CHARACTERS,
      });
      const found = parseDiff(diff);
      replace(
        sum,
        all.files
          ? [
              `${all.files} ${all.files === 1 ? "file" : "files"} against ${plain(base)}  `,
              h("span.added", `+${all.added}`),
              " ",
              h("span.deleted", `−${all.deleted}`),
              truncated ? `  (the first ${found.length} are shown, the last of them in part: af diff shows all)` : "",
            ]
          : "It has not changed anything.",
      );
      let lines = 0;
      replace(
        files,
        found.map((file) => {
          lines += file.lines.length;
          return fileCard(file, lines < OPEN_LINES);
        }),
      );
    } catch (error) {
      sum.textContent = "";
      replace(files, errorBox(error));
    }
  }
  load();
}

export function parseDiff(text) {
  const files = [];
  /** @type {any} */
  let file = null;
  let left = 0;
  let right = 0;
  let inHunk = false;
  for (const row of text.split("\n")) {
    if (row.startsWith("diff --git ")) {
      file = { name: nameOf(row.slice(11)), kind: "changed", added: 0, deleted: 0, lines: [] };
      files.push(file);
      inHunk = false;
    } else if (!file) continue;
    else if (row.startsWith("@@")) {
      const found = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(row);
      [left, right] = found ? [Number(found[1]), Number(found[2])] : [0, 0];
      inHunk = true;
      file.lines.push(["hunk", "", "", row]);
    } else if (!inHunk) header(file, row);
    else if (row.startsWith("+")) {
      file.added++;
      file.lines.push(["plus", "", right++, row.slice(1)]);
    } else if (row.startsWith("-")) {
      file.deleted++;
      file.lines.push(["minus", left++, "", row.slice(1)]);
    } else if (row.startsWith(" ")) file.lines.push(["", left++, right++, row.slice(1)]);
    else if (row.startsWith("\\")) file.lines.push(["", "", "", row]);
  }
  return files;
}

function header(file, row) {
  if (row.startsWith("new file")) file.kind = "new";
  else if (row.startsWith("deleted file")) file.kind = "deleted";
  else if (row.startsWith("rename to ")) [file.kind, file.name] = ["renamed", unquoted(row.slice(10))];
  else if (row.startsWith("Binary files")) file.kind = file.kind === "changed" ? "binary" : `${file.kind}, binary`;
  else if (row.startsWith("+++ ") && row !== "+++ /dev/null") file.name = withoutSide(row.slice(4));
  else if (row.startsWith("--- ") && row !== "--- /dev/null") file.name = withoutSide(row.slice(4));
}

/* Of `a/name b/name`, which is all that git says of a binary or an empty file. */
function nameOf(both) {
  const quoted = /^("(?:[^"\\]|\\.)*") /.exec(both);
  if (quoted) return withoutSide(quoted[1]);
  const half = (both.length - 1) / 2;
  const [one, other] = [both.slice(2, half), both.slice(half + 3)];
  return one === other ? one : both;
}

function withoutSide(name) {
  return unquoted(name.replace(/\t$/, "")).replace(/^[ab]\//, "");
}

const ESCAPES = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 };

/* Git puts names with signs of their own into quotes, byte for byte. */
function unquoted(name) {
  if (!/^".*"$/s.test(name)) return name;
  const bytes = [];
  for (const [, octal, letter, text] of name.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gs)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else if (letter) bytes.push(ESCAPES[letter] ?? letter.codePointAt(0));
    else bytes.push(...new TextEncoder().encode(text));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

const shownName = (name) => plain(name).replaceAll("\t", "\u2409").replaceAll("\n", "\u240a");

function fileCard(file, isOpen) {
  const body = h("div.code", { tabindex: "0", role: "region", "aria-label": `Changes of ${shownName(file.name)}` });
  const card = h(
    "details.file.card",
    h(
      "summary",
      h("span.name.isolate", shownName(file.name)),
      h("span.kind", file.kind),
      h("span.added", `+${file.added}`),
      h("span.deleted", `−${file.deleted}`),
    ),
    body,
  );
  const fill = () => {
    if (!body.firstChild) body.append(table(file));
  };
  card.addEventListener("toggle", () => card.open && fill());
  if (isOpen) {
    fill();
    card.open = true;
  }
  return card;
}

function table(file) {
  const rows = file.lines
    .slice(0, MOST_LINES)
    .map(([kind, left, right, text]) =>
      h(
        "tr",
        { class: kind },
        h("td.n", left),
        h("td.n", right),
        h("td", (kind === "plus" ? "+" : kind === "minus" ? "-" : " ") + plain(text)),
      ),
    );
  if (file.lines.length > MOST_LINES)
    rows.push(
      h("tr.hunk", h("td", { colspan: "3" }, `${file.lines.length - MOST_LINES} further lines: af diff shows all`)),
    );
  return h("table", h("tbody", rows));
}
