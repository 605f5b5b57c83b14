// @ts-check
/* A file of a result: hunks to be read and commented, what tells nobody much folded, images beside each other. */
import { h, plain, replace } from "./dom.js";
import { errorBox } from "./messages.js";

const LEAST_FOLD = 3;
export const WIDE = matchMedia("(min-width: 1400px)");
const columns = () => (WIDE.matches ? 4 : 3);
const IMAGES = /\.(?:png|jpe?g|gif|webp)$/i;

export function fileCard(file, make, isCut) {
  const told = [
    file.kind === "changed" ? "" : file.kind,
    file.head.split("\n").filter(tells).join(", "),
    file.generated ? "generated" : "",
  ];
  const body = h("div.code", { tabindex: "0", role: "region", "aria-label": `Changes of ${plain(file.path)}` });
  const read = h(
    "button.read-mark",
    { type: "button", onclick: () => make.mark(file.path, null, !file.unread) },
    file.unread ? "Mark as read" : "Mark as unread",
  );
  const card = h(
    "details.file.card",
    { open: !file.generated },
    h(
      "summary",
      h("span.name.isolate", plain(file.path)),
      h("span.kind", plain(told.filter(Boolean).join(" · ")).slice(0, 120)),
      h("span.added", `+${file.added}`),
      h("span.deleted", `−${file.removed}`),
    ),
    h("div.row-end", read),
    isCut ? h("p", "Its lines are left out here: af review shows them.") : null,
    body,
  );
  if (IMAGES.test(file.path)) images(body, file, make);
  else
    replace(
      body,
      h(
        "table",
        { class: WIDE.matches ? "beside" : "" },
        WIDE.matches ? h("colgroup", h("col.n"), h("col"), h("col.n"), h("col")) : null,
        h(
          "tbody",
          file.hunks.map((hunk) => hunkRows(file, hunk, make)),
        ),
      ),
    );
  return card;
}

/* Of a new or deleted plain file its kind says the same; ids of its content say nothing to a person. */
const tells = (row) => !/^(?:index |--|\+\+|(?:new|deleted) file mode 100644$)/.test(row);

function firstNumber({ lines }) {
  const first = lines.find((line) => line.new || line.old);
  return first ? first.new || first.old : "";
}

function hunkRows(file, hunk, make) {
  const read = h(
    "button.read-mark",
    { type: "button", onclick: () => make.mark(file.path, hunk.id, !hunk.unread) },
    hunk.unread ? "Mark as read" : "Mark as unread",
  );
  const rows = [h("tr.hunk", h("td", { colspan: columns() }, `@ ${plain(hunk.heading) || firstNumber(hunk)} `, read))];
  for (const run of runs(hunk.lines)) {
    const cells = WIDE.matches
      ? paired(run.lines).map((pair) => besideRows(file, pair, make))
      : run.lines.map((line) => lineRows(file, line, make));
    rows.push(run.why && run.lines.length >= LEAST_FOLD ? fold(run, cells) : cells);
  }
  return rows.flat(3);
}

/* Lines that follow each other and have the same reason are one fold. */
function runs(lines) {
  const found = [];
  for (const line of lines) {
    const why = reason(line);
    const last = found.at(-1);
    if (last && last.why === why) last.lines.push(line);
    else found.push({ why, lines: [line] });
  }
  return found;
}

function reason({ sign, gone, moved, space }) {
  if (gone || !"+-".includes(sign)) return "";
  if (moved) return `moved ${sign === "-" ? "to" : "from"} ${moved.replace(/:\d+$/, "")}`;
  return space ? "with other white space only" : "";
}

function fold({ why, lines }, cells) {
  const row = h("tr.hunk");
  const open = () => {
    for (const cell of cells.flat(3)) row.before(cell);
    row.remove();
  };
  const button = h("button.quiet", { type: "button", onclick: open }, `▸ ${lines.length} lines ${plain(why)}`);
  row.append(h("td", { colspan: columns() }, button));
  return row;
}

function lineRows(file, line, make) {
  if (line.sign === "…") return [leftOut(line)];
  const row = h(
    "tr",
    { class: kindOf(line) },
    numberCell(file, line, line.old, make),
    numberCell(file, line, line.new, make),
    h("td", told(line)),
  );
  return [row, saidRows(file, line, make)];
}

/* What was removed beside what took its place. */
function besideRows(file, [left, right], make) {
  if (left?.sign === "…") return [leftOut(left)];
  const side = (line, number) => [
    line ? numberCell(file, line, number, make) : h("td.n"),
    h("td", { class: `half ${line ? kindOf(line) : ""}` }, line ? told(line) : null),
  ];
  const both = [...new Set([left, right])].filter(Boolean);
  return [
    h("tr", side(left, left?.old), side(right, right && (right.new || right.old))),
    both.map((line) => saidRows(file, line, make)),
  ];
}

function paired(lines) {
  const found = [];
  let before = [];
  let after = [];
  const flush = () => {
    for (let at = 0; at < Math.max(before.length, after.length); at++) found.push([before[at], after[at]]);
    before = [];
    after = [];
  };
  for (const line of lines) {
    if (line.sign === "+") after.push(line);
    else {
      if (line.sign !== "-" || after.length) flush();
      if (line.sign === "-") before.push(line);
      else found.push([line, line]);
    }
  }
  flush();
  return found;
}

function leftOut(line) {
  return h("tr.hunk", h("td", { colspan: columns() }, `⋯ ${plain(line.text)}`));
}

function kindOf({ gone, sign, read }) {
  if (gone) return "gone";
  if (sign === " ") return "";
  return read ? "was-read" : sign === "+" ? "plus" : "minus";
}

function told(line) {
  const fate = line.sign === "-" ? "back in" : line.new ? "in its base" : "out again";
  return [line.gone ? `~ ${fate}: ` : line.sign, code(line)];
}

/* Where a comment on it is. */
function placeOf(file, line) {
  const side = line.sign === "-" ? "old" : "new";
  return { file: side === "old" ? file.former : file.path, side, number: side === "old" ? line.old : line.new };
}

function numberCell(file, line, value, make) {
  const { number, ...where } = placeOf(file, line);
  if (!value || value !== number || line.gone) return h("td.n", value ? String(value) : "");
  const click = (event) => make.comment(range(event, where, value));
  const button = h(
    "button.line-number",
    { type: "button", "aria-label": `Comment on line ${value}`, onclick: click },
    String(value),
  );
  return h("td.n", button);
}

function saidRows(file, line, make) {
  const where = placeOf(file, line);
  return make.comments
    .filter((one) => one.path === where.file && one.side === where.side && one.last === where.number && !line.gone)
    .map((one) => {
      const state = one.delivery === "submitted" ? one.fate : one.delivery;
      const text = `▷ ${plain(one.text)} [${state}]`;
      return h("tr.said", h("td"), h("td.isolate", { colspan: columns() - 1 }, text));
    });
}

/* With the shift key: from the line that was clicked before. */
let begun = { file: "", side: "", first: 0 };
function range(event, where, value) {
  const same = event.shiftKey && begun.file === where.file && begun.side === where.side;
  const first = same ? Math.min(begun.first, value) : value;
  const last = same ? Math.max(begun.first, value) : value;
  begun = { ...where, first: value };
  return { ...where, first, last };
}

/* Text with the kinds of its parts, and the words that differ marked. */
function code({ text: whole, tokens = [], marks = [] }) {
  const text = [...whole]; // places count whole characters
  const places = new Set([0, text.length, ...[...tokens, ...marks].flatMap((span) => span.slice(0, 2))]);
  const sorted = [...places].filter((place) => place <= text.length).sort((one, other) => one - other);
  return sorted.slice(1).map((end, at) => {
    const begin = sorted[at];
    const within = ([first, last]) => first <= begin && end <= last;
    const kind = tokens.find(within)?.[2];
    const part = plain(text.slice(begin, end).join(""));
    const coloured = kind ? h(`span.k-${kind}`, part) : part;
    return marks.some(within) ? h("mark", coloured) : coloured;
  });
}

async function images(body, file, make) {
  const sides = [
    ["before", "old"],
    ["now", "new"],
  ].filter(([, side]) => file.kind !== (side === "old" ? "new" : "deleted"));
  try {
    const found = await Promise.all(
      sides.map(async ([word, side]) => {
        const { type, data, size } = await make.image(side === "old" ? file.former : file.path, side);
        const alt = `${file.path}, ${word}`;
        return h(
          "figure",
          data ? h("img", { src: `data:${type};base64,${data}`, alt: plain(alt) }) : h("p", "It cannot be shown."),
          h("figcaption.small.dim", `${word}, ${size} bytes`),
        );
      }),
    );
    replace(body, h("div.images", found));
  } catch (error) {
    replace(body, errorBox(error));
  }
}
