/* What a builder changed, file by file. */
import { builderPath, get } from "./api.js";
import { h, plain, replace } from "./dom.js";
import { errorBox } from "./messages.js";

const OPEN_LINES = 400;
const MOST_LINES = 4000;

export function diffPanel(panel, builder) {
  const committed = h("input", { type: "checkbox" });
  const sum = h("span", { class: "sum", role: "status" }, "Loading …");
  const again = h("button", { type: "button", onclick: load }, "Read again");
  const files = h("div");
  committed.addEventListener("change", load);
  replace(panel, h("div", { class: "diff-head" }, sum, h("label", { class: "check" }, committed, "only what is committed"), again), files);
  let number = 0;
  async function load() {
    const mine = ++number;
    try {
      const { diff, truncated, base } = await get(builderPath(builder.id, `/diff?committed=${committed.checked}`));
      if (mine !== number) return;
      const found = parseDiff(diff);
      const added = found.reduce((total, file) => total + file.added, 0);
      const deleted = found.reduce((total, file) => total + file.deleted, 0);
      replace(sum, found.length ? [`${found.length} ${found.length === 1 ? "file" : "files"} against ${plain(base)}  `, h("span", { class: "added" }, `+${added}`), " ", h("span", { class: "deleted" }, `−${deleted}`), truncated ? "  (cut off: af diff shows all)" : ""] : "It has changed nothing.");
      let lines = 0;
      replace(files, found.map((file) => { lines += file.lines.length; return fileCard(file, lines < OPEN_LINES); }));
    } catch (error) {
      if (mine !== number) return;
      sum.textContent = "";
      replace(files, errorBox(error));
    }
  }
  load();
}

export function parseDiff(text) {
  const files = [];
  let file = null;
  let left = 0;
  let right = 0;
  let inHunk = false;
  for (const row of text.split("\n")) {
    if (row.startsWith("diff --git ")) {
      file = { name: row.slice(11), kind: "changed", added: 0, deleted: 0, lines: [] };
      files.push(file);
      inHunk = false;
    } else if (!file) continue;
    else if (row.startsWith("@@")) {
      const found = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(row);
      [left, right] = found ? [Number(found[1]), Number(found[2])] : [0, 0];
      inHunk = true;
      file.lines.push(["hunk", "", "", row]);
    } else if (!inHunk) header(file, row);
    else if (row.startsWith("+")) { file.added++; file.lines.push(["plus", "", right++, row.slice(1)]); }
    else if (row.startsWith("-")) { file.deleted++; file.lines.push(["minus", left++, "", row.slice(1)]); }
    else if (row.startsWith(" ")) file.lines.push(["", left++, right++, row.slice(1)]);
    else if (row.startsWith("\\")) file.lines.push(["", "", "", row]);
  }
  return files;
}

function header(file, row) {
  if (row.startsWith("new file")) file.kind = "new";
  else if (row.startsWith("deleted file")) file.kind = "deleted";
  else if (row.startsWith("rename to ")) [file.kind, file.name] = ["renamed", row.slice(10)];
  else if (row.startsWith("Binary files")) file.kind = "binary";
  else if (row.startsWith("+++ ") && row !== "+++ /dev/null") file.name = unquoted(row.slice(4));
  else if (row.startsWith("--- ") && row !== "--- /dev/null") file.name = unquoted(row.slice(4));
}

function unquoted(name) {
  return name.replace(/^"?[ab]\//, "").replace(/"?\t?$/, "");
}

function fileCard(file, isOpen) {
  const body = h("div", { class: "code", tabindex: "0", role: "region", "aria-label": `Changes of ${plain(file.name)}` });
  const card = h("details", { class: "file card" },
    h("summary", null, h("span", { class: "name isolate" }, plain(file.name)), h("span", { class: "kind" }, file.kind), h("span", { class: "added" }, `+${file.added}`), h("span", { class: "deleted" }, `−${file.deleted}`)), body);
  const fill = () => { if (!body.firstChild) body.append(table(file)); };
  card.addEventListener("toggle", () => card.open && fill());
  if (isOpen) { fill(); card.open = true; }
  return card;
}

function table(file) {
  const rows = file.lines.slice(0, MOST_LINES).map(([kind, left, right, text]) =>
    h("tr", { class: kind }, h("td", { class: "n" }, left), h("td", { class: "n" }, right), h("td", null, (kind === "plus" ? "+" : kind === "minus" ? "-" : " ") + plain(text))));
  if (file.lines.length > MOST_LINES) rows.push(h("tr", { class: "hunk" }, h("td", { colspan: "3" }, `${file.lines.length - MOST_LINES} further lines: af diff shows all`)));
  return h("table", null, h("tbody", null, rows));
}
