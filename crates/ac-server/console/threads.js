// The list of threads: which there are, which work, which wait for the person.

import { ago, ask, el, iconButton, refocus } from "./dom.js";

export class Threads {
  constructor({ list, onOpen, onRename, onDelete }) {
    Object.assign(this, { list, onOpen, onRename, onDelete });
    this.threads = [];
    this.current = null;
    this.waiting = new Set();
    this.live = null;
    list.addEventListener("keydown", (event) => this.move(event));
  }

  /** Arrow keys move through the list, as in any list. */
  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [...this.list.querySelectorAll(".thread-open")];
    const at = links.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    links[Math.min(links.length - 1, Math.max(0, at + step))].focus();
  }

  set(threads, waiting) {
    this.threads = threads;
    this.waiting = waiting;
    this.draw();
  }

  select(id) {
    this.current = id;
    this.draw();
  }

  /** What the page itself knows of the thread that it shows: the list may be a moment behind. */
  now(id, state) {
    if (this.live?.id === id && (!id || this.live.state === state)) return;
    this.live = id ? { id, state } : null;
    this.draw();
  }

  find = (id) => this.threads.find((thread) => thread.id === id);

  title = (thread) => thread?.title || "Untitled thread";

  async rename(thread) {
    const title = await ask({ title: "Rename thread", label: "Title", value: thread.title, action: "Rename" });
    if (title) await this.onRename(thread, title);
  }

  async remove(thread) {
    const text = `“${this.title(thread)}” and everything in it will be gone. What works on it is stopped.`;
    if (await ask({ title: "Delete thread?", text, action: "Delete", danger: true })) await this.onDelete(thread);
  }

  draw() {
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    const rows = this.threads.map((thread) => {
      const state = this.live?.id === thread.id ? this.live.state : this.waiting.has(thread.id) ? "waiting" : thread.state;
      const says = { waiting: "waits for you", active: "at work" }[state] ?? ago(thread.updatedAt);
      const open = el(
        "button",
        { type: "button", class: "thread-open", "aria-label": `${this.title(thread)}, ${says}`, "aria-current": thread.id === this.current ? "true" : null, on: { click: () => this.onOpen(thread) } },
        el("span", { class: "dot", data: { state }, "aria-hidden": "true" }),
        el("span", { class: "thread-title", text: this.title(thread) }),
        el("span", { class: "thread-when", text: says }),
      );
      const tools = el(
        "span",
        { class: "thread-tools" },
        iconButton("pencil", `Rename ${this.title(thread)}`, () => this.rename(thread)),
        iconButton("trash", `Delete ${this.title(thread)}`, () => this.remove(thread)),
      );
      return el("li", { class: "thread", data: { id: thread.id, state } }, open, tools);
    });
    if (!rows.length) rows.push(el("li", { class: "quiet empty", text: "No threads yet." }));
    this.list.replaceChildren(...rows);
    if (focused) refocus(focused);
  }
}
