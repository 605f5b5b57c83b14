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
  const height = 18 * rows.length + 4;
  const bar = (one, index) => {
    const width = most ? (of(one) / most) * WIDTH * 0.5 : 0;
    const y = 18 * index + 2;
    const text = { y: y + 11, "font-size": 11, fill: "currentColor" };
    return [
      s("text", { x: 0, ...text }, one.name),
      s("rect", { class: "bar-2", x: WIDTH * 0.3, y, width: Math.max(1, width).toFixed(1), height: 14, rx: 1.5 }),
      s("text", { x: (WIDTH * 0.3 + width + 4).toFixed(1), ...text }, show(of(one))),
    ];
  };
  const says = `${title}: ${rows.map((one) => `${one.name} ${show(of(one))}`).join(", ")}`;
  return h(
    "figure.plot.card",
    h("h2", title),
    s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": says, class: "names" },
      ...rows.flatMap(bar),
    ),
  );
}
