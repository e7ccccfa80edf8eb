// What there is besides the conversation: tasks, queue, usage, changed files, what is allowed without asking.

import { el, iconButton, toast } from "./dom.js";

const count = (number) => (number ?? 0).toLocaleString();

/** A section that is only there when it has something to show. */
function section(title, ...content) {
  return el("section", { class: "detail" }, el("h3", { text: title }), ...content);
}

export class Details {
  /** `session()` is the session that is shown, `reload()` asks for queue and grants again. */
  constructor({ host, session, reload }) {
    Object.assign(this, { host, session, reload });
    this.parts = { tasks: [], queue: [], usage: null, files: {}, grants: [], yolo: false };
    this.drawn = "";
  }

  set(parts) {
    Object.assign(this.parts, parts);
    const now = JSON.stringify(this.parts);
    if (now === this.drawn) return;
    this.drawn = now;
    this.draw();
  }

  draw() {
    const focused = this.host.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
    const { tasks, queue, usage, files, grants, yolo } = this.parts;
    const sections = [];
    if (tasks.length) sections.push(this.tasks(tasks));
    if (queue.length) sections.push(this.queue(queue));
    const changed = Object.entries(files);
    if (changed.length) {
      const rows = changed.map(([path, { operations }]) =>
        el("li", {}, el("code", { text: path }), operations.length > 1 ? el("span", { class: "quiet", text: ` ×${operations.length}` }) : null),
      );
      sections.push(section("Changed files", el("ul", { class: "plain" }, rows)));
    }
    if (yolo || grants.length) sections.push(this.allowed(grants, yolo));
    sections.push(this.usage(usage));
    sections.push(shortcuts());
    this.host.replaceChildren(...sections);
    if (focused) this.host.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  tasks(tasks) {
    const done = tasks.filter((task) => task.status === "completed").length;
    const words = { completed: "done", in_progress: "under way", pending: "not begun" };
    const rows = tasks.map((task) =>
      el(
        "li",
        { class: "task-row", data: { status: task.status } },
        el("span", { class: "tick", "aria-hidden": "true" }),
        el("span", { text: task.status === "in_progress" ? task.activeForm || task.content : task.content }),
        el("span", { class: "visually-hidden", text: `, ${words[task.status] ?? task.status}` }),
      ),
    );
    return section(`Tasks · ${done} of ${tasks.length}`, el("ol", { class: "plain" }, rows));
  }

  queue(items) {
    const later = items.filter((item) => item.kind === "follow_up");
    const rows = items.map((item) => {
      const at = later.indexOf(item);
      const swap = (by) => this.act((api) => api.reorder(moved(later, at, by).map((each) => each.id)));
      const short = item.text.slice(0, 40);
      return el(
        "li",
        { class: "queue-row" },
        el("span", { class: "queue-text" }, el("span", { class: "eyebrow", text: at >= 0 ? "after this run" : "at the next step" }), el("span", { text: item.text || "(files)" })),
        el(
          "span",
          { class: "queue-tools" },
          at > 0 ? iconButton("up", `Earlier: ${short}`, () => swap(-1), { data: { focus: `up-${item.id}` } }) : null,
          at >= 0 && at < later.length - 1 ? iconButton("down", `Later: ${short}`, () => swap(1), { data: { focus: `down-${item.id}` } }) : null,
          iconButton("close", `Take back: ${short}`, () => this.act((api) => api.unqueue(item.id)), { data: { focus: `out-${item.id}` } }),
        ),
      );
    });
    return section("Queue", el("ul", { class: "plain" }, rows));
  }

  allowed(grants, yolo) {
    const rows = grants.map((grant) =>
      el(
        "li",
        { class: "grant-row" },
        el("span", { text: grant.toolName ? grant.toolName : `every “${grant.category}” tool` }),
        el("button", { type: "button", class: "link-button", text: "Take back", "aria-label": `Take back ${grant.toolName ?? grant.category}`, on: { click: () => this.act((api) => api.revoke(grant.id)) } }),
      ),
    );
    const all = yolo ? el("p", { class: "warning", text: "Every tool runs without asking." }) : null;
    return section("Allowed without asking", all, el("ul", { class: "plain" }, rows));
  }

  usage(usage) {
    const rows = [
      ["Read", usage?.promptTokens],
      ["of it from cache", usage?.cachedInputTokens],
      ["Written", usage?.completionTokens],
      ["of it thinking", usage?.reasoningTokens],
    ].filter(([, value], index) => value || index === 0 || index === 2);
    const list = el("dl", { class: "usage" }, rows.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: count(value) })]));
    return section("Tokens", list);
  }

  async act(what) {
    try {
      await what(this.session());
    } catch (error) {
      toast(error.message, "error");
    }
    this.reload();
  }
}

function moved(items, at, by) {
  const order = [...items];
  const [item] = order.splice(at, 1);
  order.splice(at + by, 0, item);
  return order;
}

function shortcuts() {
  const keys = [
    ["Enter", "send"],
    ["Shift Enter", "new line"],
    ["Alt W", "to what waits for you"],
    ["Alt N", "new thread"],
    ["Alt M", "to the message field"],
    ["Alt S", "stop the run"],
  ];
  return section("Keyboard", el("dl", { class: "keys" }, keys.flatMap(([key, what]) => [el("dt", {}, el("kbd", { text: key })), el("dd", { text: what })])));
}
