// A tool call on the page: what it does in words, its arguments, what came of it.

import { el } from "./dom.js";
import { codeBlock } from "./markdown.js";

const FOLD_LINES = 14;
const FOLD_CHARS = 1600;
/** What is put on the page of one value at most; the rest can be copied from where it came. */
const MOST_CHARS = 200_000;

const text = (value) => (typeof value === "string" ? value : "");
const line = (value, most = 96) => {
  const first = text(value).trim().split("\n", 1)[0];
  return first.length > most ? `${first.slice(0, most)}…` : first;
};

/** What a call does: a verb and what it is about. */
export function describe(tool, args = {}) {
  const path = line(args.path) || "this folder";
  switch (tool) {
    case "view":
      return ["Read", path];
    case "write_file":
      return ["Write", path];
    case "string_replace":
      return ["Change", path];
    case "find_files":
      return ["Look for files in", path];
    case "search_content":
      return ["Search", `${line(args.pattern, 48)} in ${path}`];
    case "diff":
      return ["Compare", path];
    case "delete":
      return ["Delete", path];
    case "move":
      return ["Move", `${line(args.from, 40)} → ${line(args.to, 40)}`];
    case "make_dir":
      return ["Make folder", path];
    case "execute_command":
      return ["Run", line(args.command)];
    case "ask_user":
      return ["Ask", line(args.question)];
    case "submit_plan":
      return ["Submit plan", line(args.path)];
    case "subagent":
      return ["Subagent", line(args.task)];
    case "task_write":
      return ["Plan tasks", Array.isArray(args.tasks) ? `${args.tasks.length}` : ""];
    default: {
      const known = args.path ?? args.url ?? args.query ?? args.name ?? args.text;
      return [tool, line(typeof known === "string" ? known : "")];
    }
  }
}

/** The same in one line of plain words. */
export const deed = (tool, args) => describe(tool, args).filter(Boolean).join(" ");

function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** A block of text; a long one shows its beginning and a button for the rest. */
export function folded(value, language = "") {
  const whole = value.length > MOST_CHARS ? `${value.slice(0, MOST_CHARS)}\n… ${value.length - MOST_CHARS} more characters` : value;
  const lines = whole.split("\n");
  const isDiff = language === "diff" || /^@@ .* @@/m.test(whole.slice(0, 4000));
  const show = (shown) => (isDiff ? diffBlock(shown) : codeBlock(shown, language));
  if (lines.length <= FOLD_LINES && whole.length <= FOLD_CHARS) return show(whole);
  const head = lines.slice(0, FOLD_LINES).join("\n").slice(0, FOLD_CHARS);
  const host = el("div", { class: "folded" }, show(head));
  const label = (open) => (open ? "Show less" : `Show all ${lines.length > 1 ? `${lines.length} lines` : `${whole.length} characters`}`);
  let open = false;
  const more = el("button", {
    type: "button",
    class: "link-button",
    text: label(false),
    "aria-expanded": "false",
    on: {
      click: () => {
        open = !open;
        host.firstChild.replaceWith(show(open ? whole : head));
        more.textContent = label(open);
        more.setAttribute("aria-expanded", String(open));
      },
    },
  });
  host.append(more);
  return host;
}

function diffBlock(value) {
  const code = el("code");
  for (const row of value.split("\n")) {
    const kind = row.startsWith("+") ? "added" : row.startsWith("-") ? "removed" : row.startsWith("@@") ? "hunk" : "same";
    code.append(el("span", { class: `diff-line ${kind}`, text: `${row}\n` }));
  }
  return el("div", { class: "code-block" }, el("pre", { tabIndex: 0, "aria-label": "Change" }, code));
}

const extension = (path) => /\.([a-z0-9]{1,6})$/i.exec(text(path))?.[1] ?? "";

function field(name, ...content) {
  return el("div", { class: "field" }, el("div", { class: "field-name", text: name }), ...content);
}

/** The arguments: files, commands and changes as such, anything else by name. */
export function argsView(tool, args) {
  if (args === null || typeof args !== "object" || Array.isArray(args)) return folded(pretty(args ?? null));
  const rest = { ...args };
  const out = el("div", { class: "args" });
  const take = (name) => {
    const value = rest[name];
    delete rest[name];
    return value;
  };
  if (tool === "execute_command" && typeof rest.command === "string") {
    out.append(folded(take("command"), "command"));
  } else if (tool === "string_replace") {
    const old = text(take("old_string") ?? take("old"));
    const fresh = text(take("new_string") ?? take("new"));
    const rows = [...old.split("\n").map((row) => `-${row}`), ...fresh.split("\n").map((row) => `+${row}`)];
    out.append(field(text(take("path")) || "change", folded(rows.join("\n"), "diff")));
  } else if (typeof rest.content === "string") {
    const path = text(take("path"));
    out.append(field(path || "content", folded(take("content"), extension(path))));
  }
  for (const [name, value] of Object.entries(rest)) {
    const shown = pretty(value);
    if (shown.length <= 120 && !shown.includes("\n")) out.append(field(name, el("span", { class: "value", text: shown })));
    else out.append(field(name, folded(shown)));
  }
  if (!out.children.length) out.append(el("p", { class: "quiet", text: "No arguments." }));
  return out;
}

export function resultView(result) {
  if (result === undefined || result === null || result === "") return el("p", { class: "quiet", text: "Nothing was returned." });
  const content = typeof result === "object" && typeof result.content === "string" ? result.content : null;
  return folded(content ?? pretty(result));
}

const STATES = {
  preparing: "preparing",
  waiting: "waits for you",
  running: "running",
  done: "done",
  failed: "failed",
  declined: "not done",
  stopped: "stopped",
};

/** One call. The element stays the same while the call goes on, so an opened card stays open. */
export class ToolCard {
  constructor(id, name) {
    this.id = id;
    this.name = name;
    this.args = {};
    this.dot = el("span", { class: "dot", "aria-hidden": "true" });
    this.verb = el("span", { class: "verb" });
    this.target = el("span", { class: "target" });
    this.status = el("span", { class: "status" });
    this.summary = el("summary", {}, this.dot, el("span", { class: "what" }, this.verb, " ", this.target), this.status);
    this.body = el("div", { class: "card-body" });
    this.live = el("div", { class: "card-live", hidden: true });
    this.element = el("details", { class: "tool-card" }, this.summary, this.body, this.live);
    this.drawn = "";
    this.element.addEventListener("toggle", () => this.element.open && this.drawBody());
    this.set("preparing");
  }

  set(state) {
    this.state = state;
    this.element.dataset.state = state;
    this.status.textContent = STATES[state];
  }

  drawTitle() {
    const [verb, target] = describe(this.name, this.args);
    this.verb.textContent = verb;
    this.target.textContent = target;
    this.summary.title = target;
  }

  /** What the message says about the call. */
  update(invocation) {
    this.name = invocation.toolName;
    this.args = invocation.args ?? {};
    this.invocation = invocation;
    const { state } = invocation;
    if (state === "output-denied") this.set("declined");
    else if (state === "output-error" || invocation.isError) this.set("failed");
    else if (state === "result") this.set("done");
    else if (state === "partial-call") this.set("preparing");
    else if (this.state === "preparing") this.set("running");
    this.settled = ["done", "failed", "declined"].includes(this.state);
    if (this.settled) this.showLive("");
    this.drawTitle();
    this.drawn = "";
    if (this.element.open) this.drawBody();
  }

  /** Arguments that arrive. */
  prepare(size) {
    this.set("preparing");
    this.drawTitle();
    this.status.textContent = size > 400 ? `preparing · ${(size / 1024).toFixed(1)} KB` : STATES.preparing;
  }

  /** What the view says about the call while it is open. */
  view(active, waits) {
    if (this.settled) return;
    if (waits) this.set("waiting");
    else if (active?.status === "running") this.set("running");
    else if (active?.status === "error") this.set("stopped");
    else if (!active) this.set("stopped");
    this.showLive(active?.shellOutput || active?.partialResult || "");
  }

  agent(agent) {
    if (!agent) return;
    const calls = agent.toolCalls.map((call) => `${call.isError ? "✗" : "·"} ${call.name}`).join("\n");
    this.showLive([agent.textDelta, calls].filter(Boolean).join("\n\n"));
  }

  showLive(output) {
    this.live.hidden = !output;
    if (!output) {
      this.live.replaceChildren();
      return;
    }
    const tail = output.length > 4000 ? `…${output.slice(-4000)}` : output;
    let pre = this.live.firstChild;
    if (!pre) this.live.append((pre = el("pre", { tabIndex: 0, "aria-label": "Output so far" })));
    const atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
    pre.textContent = tail;
    if (atEnd) pre.scrollTop = pre.scrollHeight;
    // Opened once; who closes it wants it closed.
    if (!this.shown) this.element.open = true;
    this.shown = true;
  }

  drawBody() {
    const invocation = this.invocation;
    if (!invocation || this.drawn === invocation.state) return;
    this.drawn = invocation.state;
    const parts = [argsView(this.name, this.args)];
    if (invocation.state === "output-denied") {
      parts.push(field("not done", el("p", { text: invocation.approval?.reason || "It was not allowed." })));
    } else if (invocation.state === "output-error") {
      parts.push(field("error", folded(text(invocation.errorText))));
    } else if (invocation.state === "result") {
      parts.push(field(invocation.isError ? "error" : "result", resultView(invocation.result)));
    }
    this.body.replaceChildren(...parts);
  }
}
