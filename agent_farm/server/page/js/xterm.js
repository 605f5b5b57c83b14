// @ts-check
/* xterm.js behind one small interface, under a policy that allows no inline style. */

const THEME = { background: "#0d110f", foreground: "#e6ece8", cursor: "#f5b52e", selectionBackground: "#3d5a54" };
const FONT =
  'ui-monospace, "SF Mono", "Cascadia Code", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

/**
 * @typedef {object} Options
 * @property {(keys: string) => void} [onKeys]
 * @property {() => void} [onLeave]
 * @property {() => void} [onWheelUp]
 * @property {() => void} [onPastEnd]
 * @property {number} [scrollback]
 */

/** @param {any} box @param {Options} options */
export async function makeTerminal(box, { onKeys, onLeave, onWheelUp, onPastEnd, scrollback = 0 }) {
  const [{ Terminal }, { FitAddon }] = await Promise.all([
    import("/static/vendor/xterm.mjs"),
    import("/static/vendor/addon-fit.mjs"),
    addStyles(),
  ]);
  const terminal = new Terminal({
    theme: THEME,
    fontFamily: FONT,
    scrollback,
    fontSize: matchMedia("(max-width: 720px)").matches ? 11 : 13,
    minimumContrastRatio: 4.5,
    cursorBlink: false,
    allowProposedApi: false,
    convertEol: false,
    linkHandler: {
      activate: (_, uri) => {
        if (/^https?:\/\//.test(uri)) window.open(uri, "_blank", "noopener,noreferrer");
      },
    },
  });
  const fitting = new FitAddon();
  terminal.loadAddon(fitting);
  const holder = document.createElement("div");
  holder.className = "holder";
  box.append(holder);
  const sheets = openWithoutStyleElements(terminal, holder);
  terminal.textarea?.setAttribute("aria-label", "Terminal of the builder. F6 leaves it.");
  if (onKeys) terminal.onData(onKeys);
  terminal.attachCustomKeyEventHandler((event) => {
    if (isCopy(event, terminal)) {
      if (event.type === "keydown") {
        event.preventDefault();
        copy(terminal);
      }
      return false;
    }
    if (isPaste(event)) return false; // the browser pastes by itself
    const leaves = event.key === "F6" || (event.key === "Escape" && terminal.options.disableStdin);
    if (leaves && event.type === "keydown") {
      event.preventDefault();
      event.stopPropagation();
      onLeave?.();
    }
    if (event.key === "Tab" && terminal.options.disableStdin) return false;
    return !leaves;
  });
  if (onWheelUp || onPastEnd) {
    terminal.attachCustomWheelEventHandler((event) => {
      const buffer = terminal.buffer.active;
      if (event.deltaY < 0 && onWheelUp) {
        onWheelUp();
        return false;
      }
      if (event.deltaY > 0 && onPastEnd && buffer.viewportY >= buffer.baseY) {
        onPastEnd();
        return false;
      }
      return true;
    });
  }
  return {
    fit() {
      const size = fitting.proposeDimensions();
      if (size && size.cols > 1 && size.rows > 1) terminal.resize(size.cols, size.rows);
      return { columns: terminal.cols, rows: terminal.rows };
    },
    write: (data, then) => terminal.write(data, then),
    writeLines(text, up) {
      terminal.write(text.replace(/\r?\n/g, "\r\n"), () => {
        terminal.scrollToBottom();
        terminal.scrollLines(-up);
      });
    },
    reset: () => terminal.reset(),
    resize: (columns, rows) => terminal.resize(columns, rows),
    readOnly(is) {
      terminal.options.disableStdin = is;
      terminal.options.cursorStyle = is ? "bar" : "block";
    },
    focus: () => terminal.focus(),
    dispose() {
      terminal.dispose();
      holder.remove();
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet));
    },
  };
}

/* Ctrl+C interrupts, unless something is selected; Ctrl+Shift+C always means to copy. */
function isCopy(event, terminal) {
  return (
    event.ctrlKey &&
    !event.altKey &&
    !event.metaKey &&
    event.key.toLowerCase() === "c" &&
    (event.shiftKey || terminal.hasSelection())
  );
}

function isPaste(event) {
  return event.ctrlKey && !event.altKey && !event.metaKey && event.key.toLowerCase() === "v";
}

function copy(terminal) {
  const text = terminal.getSelection();
  if (!text) return;
  const byEvent = () => document.execCommand("copy");
  if (navigator.clipboard) navigator.clipboard.writeText(text).catch(byEvent);
  else byEvent();
  terminal.clearSelection();
}

/** @type {Promise<unknown> | null} */
let styles = null;

function addStyles() {
  styles ??= new Promise((done) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = "/static/vendor/xterm.css";
    link.addEventListener("load", done);
    link.addEventListener("error", done);
    document.head.append(link);
  });
  return styles;
}

/* xterm.js writes style attributes and <style> elements, which the policy refuses. What it puts into them
   goes to the style property and to constructed style sheets instead, which are no markup. */

HTMLSpanElement.prototype.setAttribute = function setAttribute(name, value) {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};

function openWithoutStyleElements(terminal, holder) {
  const sheets = [];
  document.createElement = (name, options) => {
    const element = Document.prototype.createElement.call(document, name === "style" ? "template" : name, options);
    if (name === "style") redirect(element, sheets);
    return element;
  };
  try {
    terminal.open(holder);
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
  return sheets;
}

function redirect(element, sheets) {
  const sheet = new CSSStyleSheet();
  sheets.push(sheet);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set(value) {
      text = value;
      sheet.replaceSync(value);
    },
  });
  Object.defineProperty(element, "sheet", { get: () => sheet });
}
