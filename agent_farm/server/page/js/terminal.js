// @ts-check
/* The builder's terminal: watched by everybody, typed into by who asks for it. */
import { h, plain, replace } from "./dom.js";
import { nextStep } from "./hints.js";
import { farm } from "./live.js";
import { login, serverIsOurs } from "./login_store.js";
import { screenPanel } from "./screen.js";
import { openSocket } from "./server_proof.js";
import { makeTerminal } from "./xterm.js";

const KEYS = [
  ["Esc", "\x1b"],
  ["Tab", "\t"],
  ["↑", "\x1b[A"],
  ["↓", "\x1b[B"],
  ["←", "\x1b[D"],
  ["→", "\x1b[C"],
  ["Enter", "\r"],
  ["^C", "\x03"],
  ["1", "1"],
  ["2", "2"],
  ["3", "3"],
  ["y", "y"],
  ["n", "n"],
];
const HISTORY_LINES = 5000;

/** @typedef {Awaited<ReturnType<typeof makeTerminal>>} Terminal */

export function terminalPanel(view, builder) {
  if (farm.terminal !== "xterm") return screenPanel(view, builder);
  const { id } = builder;
  const says = h("span.says", { role: "status" }, "connecting …");
  const typing = h("button", { type: "button", id: "typing", "aria-pressed": "false" }, "Type");
  const back = h("button", { type: "button", id: "scrollback", "aria-pressed": "false" }, "Scrollback");
  const box = h("div.terminal-box", { id: "terminal" });
  const ended = h("div.terminal-ended", { hidden: true, role: "status" });
  const bar = h("div.key-bar", { role: "group", "aria-label": "Keys" });
  const card = h("div.terminal-card.card", h("div.terminal-bar", says, back, typing), box, bar);
  box.append(ended);
  view.show(card);

  /** @type {WebSocket | null} */
  let socket = null;
  /** @type {Promise<Terminal> | null} */
  let making = null;
  /** @type {any} */
  let terminal = null;
  let attempt = 0;
  let types = false;
  /** @type {{ holder: any, terminal: Terminal | null } | null} */
  let overlay = null;
  let fixed = false;
  let retry = 0;
  let state = builder.status.state;
  let run = builder.run;

  const send = (message) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
  for (const [name, keys] of KEYS)
    bar.append(
      h(
        "button",
        {
          type: "button",
          onclick: () => {
            send({ type: "input", data: keys });
            terminal?.focus();
          },
        },
        name,
      ),
    );

  /* One terminal, however often it is opened while its module is still on the way. */
  const makeOne = () =>
    makeTerminal(box, {
      onKeys: (data) => types && send({ type: "input", data }),
      onLeave: () => typing.focus(),
      onWheelUp: () => !overlay && showHistory(),
    });

  async function open() {
    const mine = ++attempt;
    clearTimeout(retry);
    socket?.close();
    socket = null;
    try {
      terminal = await (making ??= makeOne());
    } catch {
      making = null;
      says.textContent = "the terminal could not be loaded";
      if (!view.isOver && mine === attempt) retry = setTimeout(open, 1500);
      return;
    }
    const isOurs = await serverIsOurs();
    if (view.isOver || mine !== attempt) return;
    if (!isOurs) {
      retry = setTimeout(open, 500);
      return;
    }
    terminal.readOnly(!types);
    const { columns, rows } = terminal.fit();
    const path = `/api/builders/${encodeURIComponent(id)}/terminal`;
    listen(openSocket(`${path}?typing=${types}&columns=${columns}&rows=${rows}`, login()));
  }

  function listen(mine) {
    mine.binaryType = "arraybuffer";
    socket = mine;
    /** @type {any} */
    let reason = null;
    let told = null;
    mine.addEventListener("message", (event) => {
      if (socket !== mine) return;
      if (typeof event.data !== "string") {
        /* What the pane is set to, bracketed paste for one, is known with the first screen. */
        terminal.write(new Uint8Array(event.data), told ? sayAttached : undefined);
        told = null;
        return;
      }
      const message = JSON.parse(event.data);
      if (message.type === "ended") reason = message;
      else told = begin(message);
    });
    mine.addEventListener("close", () => {
      if (socket !== mine || view.isOver) return;
      socket = null;
      says.textContent = "not connected";
      showEnded(reason);
      if (!reason?.hint) retry = setTimeout(open, 1500);
    });
  }

  function begin(message) {
    ended.hidden = true;
    fixed = message.fixed;
    box.classList.toggle("fixed", fixed);
    terminal.reset();
    if (fixed) terminal.resize(message.columns, message.rows);
    return message;
  }

  const sayAttached = () => {
    says.textContent = types
      ? "typing: keys go to the builder (F6 leaves)"
      : fixed
        ? "watching at the size of another terminal"
        : "watching";
    if (types && !view.isOver) terminal.focus();
  };

  function showEnded(reason) {
    ended.hidden = false;
    replace(
      ended,
      h("strong", plain(reason?.reason || "The connection was lost")),
      reason?.why ? h("span", plain(reason.why)) : null,
      reason?.hint ? nextStep(reason.hint) : h("span", "connecting again …"),
    );
  }

  typing.addEventListener("click", () => {
    types = !types;
    typing.setAttribute("aria-pressed", String(types));
    typing.textContent = types ? "Stop typing" : "Type";
    card.classList.toggle("typing", types);
    hideHistory();
    open();
  });

  async function showHistory() {
    if (overlay) return;
    const holder = h("div.overlay", { id: "history" });
    overlay = { holder, terminal: null };
    back.setAttribute("aria-pressed", "true");
    back.textContent = "Back to now";
    try {
      const { screen } = await view.read("capture", { id, history: HISTORY_LINES, escapes: true });
      if (overlay?.holder !== holder) return;
      box.append(holder);
      const shown = await makeTerminal(holder, {
        scrollback: HISTORY_LINES + 1000,
        onLeave: hideHistory,
        onPastEnd: hideHistory,
      });
      if (overlay?.holder !== holder) return shown.dispose();
      overlay.terminal = shown;
      overlay.terminal.readOnly(true);
      overlay.terminal.fit();
      overlay.terminal.writeLines(screen.replace(/\n+$/, ""), 12);
    } catch (error) {
      hideHistory();
      says.textContent = plain(error.what || error.message);
    }
  }

  function hideHistory() {
    if (!overlay) return;
    overlay.terminal?.dispose();
    overlay.holder.remove();
    overlay = null;
    back.setAttribute("aria-pressed", "false");
    back.textContent = "Scrollback";
  }

  back.addEventListener("click", () => (overlay ? hideHistory() : showHistory()));
  const resized = new ResizeObserver(() => {
    overlay?.terminal?.fit();
    if (!terminal || fixed) return;
    const { columns, rows } = terminal.fit();
    send({ type: "resize", columns, rows });
  });
  resized.observe(box);
  open();
  view.onLeave(() => {
    clearTimeout(retry);
    resized.disconnect();
    hideHistory();
    socket?.close();
    making?.then(
      (made) => made.dispose(),
      () => {},
    );
  });

  return {
    /* A builder that was resumed has a new terminal. */
    update(now) {
      const comesBack =
        now.run !== run ||
        (["stopped", "lost", "queued", "creating"].includes(state) &&
          !["stopped", "lost", "queued"].includes(now.status.state));
      state = now.status.state;
      run = now.run;
      if (comesBack && !socket) open();
    },
  };
}
