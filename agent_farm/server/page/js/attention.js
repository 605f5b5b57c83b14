// @ts-check
/* That somebody waits is said wherever one is: in the title, in the bar, and by the browser if asked to. */
import { line } from "./dom.js";
import { builders, farm, follow, hasLoaded } from "./live.js";
import { toast } from "./messages.js";
import { needsPerson } from "./states.js";

const WANTED = "agent-farm.notify";
const known = new Map();

export function watchAttention(badge, button) {
  follow((changed, removed, whole) => {
    const isFirst = whole && !known.size; // what has waited since before the page was opened is no news
    for (const id of removed) known.delete(id);
    for (const id of changed) {
      const builder = builders.get(id);
      const now = needsPerson(builder) ? `${builder.status.state} ${builder.status.at} ${builder.status.reason}` : null;
      const isNews = now && now !== known.get(id) && !isFirst;
      known.set(id, now);
      if (isNews) tell(builder);
    }
    count(badge);
  });
  button.hidden = !("Notification" in globalThis);
  button.addEventListener("click", () => turn(button));
  show(button);
}

/* What the view shows, in the tab's title: of several tabs each can be told from the others. */
let viewTitle = "";
export function setTitle(title) {
  viewTitle = title;
  drawTitle();
}

function drawTitle() {
  const number = [...builders.values()].filter(needsPerson).length;
  const name = hasLoaded() ? `${line(farm.name)} — agent-farm` : "agent-farm";
  const shown = viewTitle ? `${viewTitle} · ${name}` : name;
  document.title = number ? `(${number}) ${shown}` : shown;
}

function count(badge) {
  const number = [...builders.values()].filter(needsPerson).length;
  drawTitle();
  badge.hidden = !number;
  badge.textContent = number;
  badge.title = `${number} ${number === 1 ? "builder needs" : "builders need"} you`;
}

const isWanted = () => localStorage.getItem(WANTED) === "yes" && Notification.permission === "granted";

async function turn(button) {
  if (isWanted()) localStorage.removeItem(WANTED);
  else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(WANTED, "yes");
  else toast("The browser does not allow notifications from this address");
  show(button);
}

function show(button) {
  const on = !button.hidden && isWanted();
  button.setAttribute("aria-pressed", String(on));
  button.title = on
    ? "The browser tells you when a builder needs you; click to stop that"
    : "Let the browser tell you when a builder needs you";
}

/* Of several open tabs all tell; the browser shows one of the same tag. */
function tell(builder) {
  const address = `#/builder/${encodeURIComponent(builder.id)}`;
  if (!document.hidden && location.hash.startsWith(address)) return;
  const why = line(builder.status.reason || builder.status.state);
  if (!document.hidden) toast(`${builder.id}: ${why}`, address);
  if ("Notification" in globalThis && isWanted()) {
    const note = new Notification(`${line(farm.name)}: ${line(builder.title)}`, {
      body: why,
      tag: `${farm.root} ${builder.id} ${builder.status.at}`,
    });
    note.addEventListener("click", () => {
      focus();
      location.hash = address;
      note.close();
    });
  }
}
