// @ts-check
/* One result: its evidence, what is new in it, what was said of it, and what is decided. */
import { act } from "./api.js";
import { conflictsPanel, NONE } from "./conflicts.js";
import { h, line, plain, replace } from "./dom.js";
import { dropDraft, withDraft } from "./drafts.js";
import { keyedList } from "./keyed_list.js";
import { agreeing, ask, errorBox, toast } from "./messages.js";
import { proofDetails } from "./proof.js";
import { addressOf, progress } from "./review.js";
import { fileCard, WIDE } from "./review_diff.js";

export function resultView(view, id) {
  const read = view.newest();
  const whole = h("input", { type: "checkbox" });
  const head = h("div.stack");
  const failed = h("div", { "aria-live": "polite" });
  const files = h("div");
  /** @type {any} */
  let shown = null;
  whole.addEventListener("change", load);
  const conflicts = h("div");
  const none = h("p.empty", { hidden: true }, "Nothing is new since you read it.");
  view.show(h("div.stack", head, failed, conflicts, h("div", files, none)));
  conflictsPanel(view.part(conflicts), { id }, h("p.small.dim", NONE));
  const redraw = () => shown && draw();
  WIDE.addEventListener("change", redraw);
  view.onLeave(() => WIDE.removeEventListener("change", redraw));

  async function load() {
    try {
      shown = await read("review_show", { id, whole: whole.checked, tokens: true });
      draw();
      const { items } = await view.read("review");
      drawWhere(items);
    } catch (error) {
      replace(failed, errorBox(error));
    }
  }

  const where = h("nav.row", { "aria-label": "Results" });

  function drawWhere(items) {
    const at = items.findIndex((item) => item.id === id);
    const link = (item, text) => (item ? h("a.button.quiet", { href: addressOf(item.id) }, text) : null);
    const item = items[at];
    const shares = item?.overlaps.map((one) => h("a", { href: addressOf(one.id) }, plain(one.id)));
    replace(
      where,
      h("a.button.quiet", { href: "#/review" }, "All results"),
      link(items[at - 1], "Before"),
      link(items[at + 1], "Next"),
      item ? h("span.small.dim", `${at + 1} of ${items.length} · risk ${item.risk} · ${progress(item)}`) : null,
      shares?.length
        ? h(
            "span.small",
            " · shares files with ",
            shares.map((one) => [one, " "]),
          )
        : null,
    );
  }

  function draw() {
    const drafts = shown.comments.filter((one) => one.delivery === "draft");
    const button = (text, action, style = "") =>
      h(
        "button",
        { type: "button", class: style, "data-action": text.split(" ")[0].toLowerCase(), onclick: action },
        text,
      );
    replace(
      head,
      where,
      h("h1.isolate", line(shown.title) || plain(id)),
      shown.proof ? proofDetails(shown.proof) : h("p", "No check has run on it."),
      shown.decision
        ? h("p", h("strong", shown.decision.word), shown.decision.reason ? `: ${line(shown.decision.reason)}` : "")
        : null,
      shown.lost ? h("p.flag", "git no longer has the commits that you read: all of it is unread.") : null,
      shown.left_behind.length
        ? h("p.flag.isolate", `Uncommitted, so not included: ${shown.left_behind.slice(0, 8).map(line).join(", ")}`)
        : null,
      comments(shown.comments),
      h(
        "div.diff-head",
        h("label.check", whole, "Everything, even what you have read"),
        h("a.button.quiet", { href: `#/builder/${encodeURIComponent(id)}` }, "Builder"),
        button("Comment …", () => comment({})),
        drafts.length ? button(`Send ${drafts.length} …`, () => send(drafts)) : null,
        button("Read all", () => change("review_mark", {})),
        shown.undoable ? button("Undo", undo) : null,
        button("Reject …", reject),
        button("Approve …", approve, "primary"),
      ),
    );
    none.hidden = shown.files.length > 0;
    placeFiles(shown.files.map(drawn));
  }

  const make = {
    mark: (file, hunk, unread) => change("review_mark", { file, hunk, unread }),
    comment: (place) => comment(place),
    image: (file, side) => view.read("review_image", { id, tip: shown.tip, file, side }),
  };
  const drawn = (file) => ({
    file,
    comments: shown.comments.filter((one) => [file.path, file.former].includes(one.path)),
    isCut: shown.cut.includes(file.path),
    isWide: WIDE.matches,
  });
  const placeFiles = keyedList(
    files,
    ({ file, comments, isCut }) => fileCard(file, { ...make, comments }, isCut),
    // one that became a link, say, is a file that is gone and a new one
    (one) => `${one.file.kind === "deleted" ? "-" : "+"}${one.file.path}`,
  );

  async function change(verb, request) {
    replace(failed);
    try {
      const done = await act(verb, { id, tip: shown.tip, ...request });
      await load();
      return done;
    } catch (error) {
      replace(failed, errorBox(error));
      return null;
    }
  }

  async function undo() {
    try {
      const { undone } = await act("review_decide", { id, decision: "undo" });
      toast(`Undone: ${undone}`);
      await load();
    } catch (error) {
      replace(failed, errorBox(error));
    }
  }

  async function comment(place) {
    const about = place.file ? `${place.file}:${place.first}${place.last > place.first ? `-${place.last}` : ""}` : "";
    const title = `Comment on ${plain(about) || "all of it"}`;
    const draft = `comment ${id} ${JSON.stringify(place)}`;
    await words(draft, title, "Draft", (text) => change("review_comment", { ...place, text }));
  }

  async function send(drafts) {
    const agreed = await ask(`Send to ${plain(id)}`, (close) => [
      drafts.map((one) => h("div", h("span.small.dim.mono", plain(place(one))), h("p.isolate", plain(one.text)))),
      row(close, "Send"),
    ]);
    if (!agreed) return;
    try {
      const { delivery } = await act("review_send", { id });
      if (delivery) toast(`${id}: ${delivery.outcome}${delivery.reason ? `: ${delivery.reason}` : ""}`);
      await load();
    } catch (error) {
      replace(failed, errorBox(error));
    }
  }

  async function reject() {
    const title = "Why should it not land? Its builder gets your answer.";
    const send = (reason) => change("review_decide", { decision: "reject", reason });
    const done = await words(`reject ${id}`, title, "Reject", send);
    if (done) toast(`${id} rejected; its message was ${done.sent?.delivery?.outcome}`);
  }

  async function approve() {
    const unread = shown.files.reduce((sum, file) => sum + file.unread, 0);
    const said = await ask(`Approve ${plain(id)}`, (close) => {
      const refused = h("div");
      const go = async (/** @type {string | null} */ yes) => {
        try {
          close(await act("review_decide", { id, tip: shown.tip, decision: "approve", yes }));
        } catch (error) {
          replace(refused, errorBox(error, ...agreeing(error, "Agree and approve", go)));
        }
      };
      return [
        shown.proof ? proofDetails(shown.proof) : h("p", "No check has run on it."),
        unread ? h("p.flag", `${unread} changed ${unread === 1 ? "line is" : "lines are"} unread.`) : null,
        h("p", "It goes into the landing queue; its checks run before it lands."),
        refused,
        h(
          "div.row",
          h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
          h("button.primary", { type: "button", onclick: () => go(null) }, "Approve"),
        ),
      ];
    });
    if (!said) return;
    toast(`${id} is in the landing queue`);
    await load();
  }

  load();
}

function row(close, word) {
  return h(
    "div.row",
    h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
    h("button.primary", { type: "button", onclick: () => close(true) }, word),
  );
}

/* What was written into the dialog stays until `send` has sent it. */
async function words(draft, title, word, send) {
  const written = await ask(title, (close) => {
    const text = withDraft(draft, h("textarea", { rows: "4", "aria-label": title, required: true }));
    const form = h(
      "form.stack",
      text,
      h(
        "div.row",
        h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
        h("button.primary", { type: "submit" }, word),
      ),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      close(text.value.trim());
    });
    return form;
  });
  const done = written ? await send(written) : null;
  if (done) dropDraft(draft);
  return done;
}

export function place(one) {
  return one.path ? `${one.path}:${one.first}${one.last > one.first ? `-${one.last}` : ""}` : "all of it";
}

function comments(all) {
  if (!all.length) return null;
  const state = (one) => (one.delivery === "submitted" ? one.fate : one.delivery);
  return h(
    "ul.review-comments",
    all.map((one) =>
      h(
        "li",
        h("span.pill", state(one)),
        " ",
        h("span.mono.small", plain(place(one))),
        " ",
        h("span.isolate", line(one.text)),
      ),
    ),
  );
}
