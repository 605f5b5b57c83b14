// @ts-check
/* With whose work a builder's committed work conflicts, file by file and line by line. */
import { h, line, plain, replace } from "./dom.js";
import { errorBox } from "./messages.js";

export const NONE = "Its committed work conflicts with no other builder, nor with its base.";

/* `none` is shown where there are no conflicts. */
export function conflictsPanel(view, builder, none = h("p.empty", NONE)) {
  const read = view.newest();
  const place = h("div.stack", { "aria-live": "polite" }, h("p.loading", "Comparing …"));
  view.show(place);
  async function load() {
    try {
      const { conflicts, unknown } = await read("conflicts", { hunks: true });
      const own = (pair) => pair.one === builder.id || pair.other === builder.id;
      const found = [...conflicts.filter(own).map(conflictCard), ...unknown.filter(own).map(unknownLine)];
      replace(place, found.length ? found : none);
    } catch (error) {
      replace(place, errorBox(error));
    }
  }
  const other = (pair) => (pair.one === builder.id ? pair.other : pair.one);
  const conflictCard = (pair) =>
    h(
      "section.card.box",
      h("h2", "With ", h("span.mono", line(other(pair)))),
      h(
        "ul",
        pair.files.map((file) => h("li.mono.isolate", plain(file))),
      ),
      pair.hunks.map((hunk) => [
        h("h3.mono.isolate", `${plain(hunk.file)}:${hunk.line}`),
        h("pre.command", { tabindex: "0" }, plain(hunk.text)),
      ]),
    );
  const unknownLine = (pair) => h("p.isolate", `Not compared with ${line(other(pair))}: ${line(pair.reason)}`);
  load();
  return { update: view.rarely(2000, load) };
}
