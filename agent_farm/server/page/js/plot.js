// @ts-check
/* Sums over equal spans of time as bars; two series are stacked. */
import { h, s } from "./dom.js";
import { moment } from "./format.js";

const WIDTH = 480;
const HEIGHT = 120;
const BASE = 104;

export function barPlot({ title, total, buckets, series, show }) {
  const sums = buckets.map((bucket) => series.reduce((sum, one) => sum + one.of(bucket), 0));
  const most = Math.max(...sums, 0);
  const step = WIDTH / buckets.length;
  const bars = buckets.flatMap((bucket, index) => {
    let y = BASE;
    return series.map((one) => {
      const height = most ? (one.of(bucket) / most) * (BASE - 16) : 0;
      if (!height) return null;
      y -= height;
      return s(
        "rect",
        {
          class: one.bar,
          x: (index * step + 1).toFixed(1),
          y: y.toFixed(1),
          width: Math.max(1, step - 2).toFixed(1),
          height: height.toFixed(1),
          rx: "1.5",
        },
        s("title", {}, `${moment(bucket.at)}: ${one.name} ${show(one.of(bucket))}`),
      );
    });
  });
  const says = `${title}: ${total}. Most in one span: ${show(most)}.`;
  return h(
    "figure.plot.card",
    h("h2", title, h("b", total)),
    s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": says, preserveAspectRatio: "none" },
      s("line", { class: "axis", x1: 0, x2: WIDTH, y1: BASE, y2: BASE }),
      ...bars,
    ),
    h(
      "div.legend",
      h("span.from", "since ", moment(buckets[0]?.at)),
      series.length > 1 ? series.map((one) => h("span", { class: one.legend }, one.name)) : null,
    ),
  );
}

/* A bar for each name, as long as its value. */
export function nameBars({ title, rows, of, show }) {
  const most = Math.max(...rows.map(of), 0);
  const bar = (one) => {
    const element = h("span.bar", { "aria-hidden": "true" });
    element.style.width = `${most ? (of(one) / most) * 100 : 0}%`;
    return element;
  };
  return h(
    "figure.plot.card",
    h("h2", title),
    h(
      "ul.bars",
      rows.map((one) =>
        h("li", h("span.name", { title: one.name }, one.name), h("span", bar(one)), h("span", show(of(one)))),
      ),
    ),
  );
}
