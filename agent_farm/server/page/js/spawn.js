// @ts-check
/* The spawn form: what to do and with which runtime, and whatever else `spawn` takes under More. */
import { actOnSeveral } from "./api.js";
import { h, plain, replace } from "./dom.js";
import { control, fieldsOf, labelOf, labelsOf, refusedOf, textField } from "./fields.js";
import { worded } from "./hints.js";
import { agreeing, errorBox, toast } from "./messages.js";
import { offer } from "./spawn_offers.js";
import { planBoxes, resultsBox } from "./spawn_results.js";

/* The ways to say what to do, each by the field that makes it; `beside` and `more` are fields that go with it. */
const KINDS = {
  task: { more: ["files"] },
  tasks: { more: ["files"] },
  issue: { more: ["protocol", "args"] },
  project: { more: ["protocol", "args"] },
  spec: { beside: ["item"], more: [] },
  protocol: { beside: ["args"], more: [] },
  shell: { more: [] },
};
const OF_KINDS = new Set(Object.entries(KINDS).flatMap(([name, { beside = [], more }]) => [name, ...beside, ...more]));
const ELSEWHERE = new Set(["runtime", "dry_run", "yes"]); // a field of its own, a button, an answer to a question
const LOOKS = {
  task: { rows: 5, placeholder: "Fix the login redirect" },
  tasks: { rows: 8, placeholder: "Fix the login redirect\n\nTest the currency rounding at midnight" },
  args: { rows: 3, placeholder: '{"hypothesis": "Redis is faster"}' },
  files: { placeholder: "src/auth.py, src/login.py" },
  issue: { placeholder: "42" },
  spec: { placeholder: "specs/003-login" },
  project: { select: true },
  protocol: { select: true },
  runtime: { select: true },
  on: { select: true },
};
/* Said of how builders work here, and so of the next one, too. */
const STAYS = new Set(["kind", "runtime", "model", "permissions", "on"]);
const DRAFTS = "agent-farm.spawn";

export function spawnView(view) {
  const drafts = readDrafts();
  let kind = Object.hasOwn(KINDS, drafts.kind) ? drafts.kind : "task";
  /** @type {Map<string, import('./fields.js').Field>} */
  let fields = new Map();
  /** @type {Record<string, any>} */
  let offered = {};
  /** @type {import('./fields.js').Control[]} */
  let first = [];
  /** @type {import('./fields.js').Control[]} */
  let general = [];
  const changed = () => {
    sessionStorage.setItem(DRAFTS, JSON.stringify(drafts));
    drawSet();
  };
  const make = (name) => {
    const made = control(fields.get(name) || textField(name), { form: "spawn", drafts, changed, ...LOOKS[name] });
    offer(made, { offered, fields, kind });
    return made;
  };

  const kindHelp = h("p.hint", { id: "kind-help" });
  const kinds = h(
    "fieldset.modes",
    { "aria-describedby": kindHelp.id },
    h("legend", "What should it do?"),
    Object.keys(KINDS).map((name) => h("label", radio(name), labelOf(name))),
  );
  const main = h("div.stack");
  const runtime = make("runtime");
  const set = h("span.small.dim.mono");
  const inside = h("div.inside");
  const more = h("details.more", h("summary", "More ", set), inside);
  const failed = h("div.stack");
  const results = resultsBox();
  const go = h("button", { type: "submit", class: "primary" }, "Spawn");
  const look = h("button", { type: "button", onclick: () => submit({ dry_run: true }) }, "Show the plan");
  const card = h("div.card", main, runtime.element, more);
  const ends = h("div.row-end", look, go);
  const form = h(
    "form.form",
    { novalidate: true },
    h("h1", "New builder"),
    h("div", kinds, kindHelp),
    card,
    failed,
    ends,
  );
  form.append(results.element);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit({});
  });
  view.show(form);

  function radio(name) {
    const onchange = () => {
      kind = drafts.kind = name;
      changed();
      draw();
    };
    return h("input", { type: "radio", name: "mode", value: name, checked: kind === name, onchange });
  }

  function draw() {
    const { beside = [], more: others } = KINDS[kind];
    const own = kind === "shell" ? [] : [kind, ...beside].map(make);
    replace(kindHelp, plain(fields.get(kind)?.help));
    for (const one of own) if (one.name === kind) one.describe("");
    main.hidden = !own.length;
    replace(
      main,
      own.map((one) => one.element),
    );
    first = [...own, runtime];
    general = fields.size ? [...others, ...[...fields.keys()].filter(isGeneral)].map(make) : [];
    const [boxes, texts] = [general.filter(isFlag), general.filter((one) => !isFlag(one))];
    const elements = (all) => all.map((one) => one.element);
    replace(inside, h("div.pair", elements(texts)), h("div.stack", elements(boxes)));
    drawSet();
  }

  const isFlag = (one) => fields.get(one.name)?.kind === "flag";
  const isGeneral = (name) => !OF_KINDS.has(name) && !ELSEWHERE.has(name) && (name !== "on" || offered.on?.length);

  /* What is set where nobody sees it. */
  function drawSet() {
    const names = general.filter((one) => one.value() !== null).map((one) => labelOf(one.name));
    set.textContent = names.join(" · ");
  }

  function order(extra) {
    const given = [...first, ...general].map((one) => [one.name, one.value()]);
    const what = kind === "shell" ? true : first[0].value() || "";
    return { ...Object.fromEntries(given), [kind]: what, ...extra };
  }

  async function submit(extra) {
    if (go.disabled) return;
    for (const one of [...first, ...general]) one.refuse(null);
    replace(failed);
    results.clear();
    const bad = general.find((one) => !one.input.checkValidity()); // a number out of its bounds
    if (bad) return refuse({ what: `--${bad.name}: ${bad.input.validationMessage}` }, extra);
    go.disabled = look.disabled = true;
    go.textContent = extra.dry_run ? "Spawn" : "Spawning …";
    try {
      finish(await actOnSeveral("spawn", order(extra), results.add));
    } catch (error) {
      refuse(error, extra);
    }
    go.disabled = look.disabled = false;
    go.textContent = "Spawn";
  }

  function finish({ builder, plan, notes, builders: made, plans, failed: refused }) {
    for (const note of notes) toast(note);
    if (plan || plans.length) return replace(failed, planBoxes(plan ? [plan] : plans));
    if (!refused.length) forget();
    if (builder) {
      const waits = builder.status.state === "queued";
      toast(waits ? `${builder.id} waits: ${builder.status.reason}` : `${builder.id} starts on ${builder.branch}`);
      if (!view.isOver) location.hash = `#/builder/${encodeURIComponent(builder.id)}`;
      return;
    }
    results.end();
    if (view.isOver) toast(`${made.length} builders made, ${refused.length} failed`);
  }

  function forget() {
    for (const name of Object.keys(drafts)) if (!STAYS.has(name)) delete drafts[name];
    changed();
    if (!view.isOver) draw();
  }

  /* At the field that it is about, as far as that can be told; the words of options become those of fields. */
  function refuse(error, extra) {
    if (view.isOver) return toast(`Not spawned: ${error.what || error.message}`);
    const labels = labelsOf(fields.values());
    const own = (one) => (error.code !== "usage" || /\baf /.test(one) ? one : worded(one, labels));
    const evidence = error.evidence?.map(own);
    const words = { what: worded(error.what, labels), why: worded(error.why, labels), evidence };
    const hint = error.hint?.startsWith("af spawn ") ? null : error.hint; // this form is what it shows
    const agree = agreeing(error, "Agree and spawn", (yes) => submit({ ...extra, yes }));
    const box = errorBox({ ...error, ...words, message: error.message, hint }, ...agree);
    const [at] = agree.length ? [] : refusedAt(error);
    if (at) at.refuse(box);
    else replace(failed, box);
    if (at && general.includes(at)) more.open = true;
    at?.input.focus();
    box.scrollIntoView({ block: "nearest" });
  }

  function refusedAt(error) {
    const found = refusedOf(error, [...first, ...general]);
    const isEmpty = error.code === "usage" && kind !== "shell" && !first[0].text();
    return found.length || !isEmpty ? found : first.slice(0, 1);
  }

  draw();
  Promise.all([fieldsOf("spawn"), view.read("choices")])
    .then(([described, choices]) => {
      if (view.isOver) return;
      [fields, offered] = [described, choices];
      offer(runtime, { offered, fields, kind });
      const was = first[0];
      settle(was);
    })
    .catch((error) => replace(failed, errorBox(error)));

  /* What is being written stays as it is. */
  function settle(was) {
    const writes = was.element.contains(document.activeElement);
    draw();
    if (!writes) return;
    const [now] = first;
    now.input.focus();
    if (was.input.selectionStart !== undefined)
      now.input.setSelectionRange(was.input.selectionStart, was.input.selectionEnd);
  }

  return { focus: () => (kind === "shell" ? go : first[0].input).focus() };
}

/** @returns {Record<string, any>} */
function readDrafts() {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFTS) || "{}");
  } catch {
    return {};
  }
}
