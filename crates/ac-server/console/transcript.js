// The conversation. Each message is drawn once; what changes later touches only the part that changed.

import { ago, el, icon } from "./dom.js";
import { MarkdownStream } from "./markdown.js";
import { ToolCard, folded } from "./tools.js";

/** Pictures that a browser draws without running anything. */
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** A file that a person attached. */
export function fileView({ data = "", mediaType = "", mimeType = "", filename }) {
  const type = mediaType || mimeType;
  const name = filename || type || "file";
  if (PICTURES.includes(type) && !/^https?:/i.test(data)) {
    const source = data.startsWith("data:") ? data : `data:${type};base64,${data}`;
    return el("figure", { class: "picture" }, el("img", { src: source, alt: name, loading: "lazy" }), el("figcaption", { text: name }));
  }
  return el("span", { class: "file-chip" }, icon("file"), el("span", { text: name }));
}

/** An attached text, as the server puts it into the message: a line with its name, and a fence around it. */
const ATTACHED = /^(?:Attached file(?: (.+))?:|\[(?:File: (.+)|Attached file)\])\n(`{3,})[^\n]*\n([\s\S]*?)\n?\3\s*$/;

function attachedText(text) {
  const found = ATTACHED.exec(text);
  if (!found) return null;
  const name = found[1] ?? found[2] ?? "text";
  const chip = el("summary", { class: "file-chip" }, icon("file"), el("span", { text: name }));
  return el("details", { class: "file-text" }, chip, folded(found[4]));
}

class Message {
  constructor(transcript, message) {
    this.transcript = transcript;
    this.id = message.id;
    this.parts = [];
    this.element = el("article", { class: "message", data: { id: message.id } });
    this.replace(message);
  }

  /** This is now the message. Cards of the same calls stay. */
  replace(message) {
    this.role = message.role;
    this.createdAt = message.createdAt;
    const signal = message.content?.metadata?.signal;
    const kind = message.role === "signal" ? (message.type ?? signal?.type ?? "user") : message.role;
    this.person = kind === "user";
    this.element.className = `message ${this.person ? "person" : kind === "assistant" ? "assistant" : "note"}`;
    const author = this.person ? "You" : kind === "assistant" ? "Agent" : kind;
    const head = el("h2", { class: "visually-hidden", text: `${author}, ${ago(message.createdAt) || ""}` });
    this.element.replaceChildren(head);
    this.parts = [];
    const parts = message.content?.parts ?? [];
    const live = parts.find((part) => part.type === "data-user-message" || part.type === "data-signal");
    if (live) {
      const { contents } = live.data;
      this.setParts(typeof contents === "string" ? [{ type: "text", text: contents }] : (contents ?? []));
    } else {
      this.setParts(parts);
    }
  }

  setParts(parts) {
    parts.forEach((part, index) => this.setPart(index, part));
  }

  setPart(index, part) {
    const known = this.parts[index];
    if (known && known.type === part.type && known.update) {
      known.update(part);
      return;
    }
    const made = this.make(part);
    // A hole would be a part that was never told: it is filled when it is.
    while (this.parts.length < index) this.parts.push(this.place(this.parts.length, { type: "hole", element: el("span", { hidden: true }) }));
    if (known) known.element.replaceWith(made.element);
    else this.place(index, made);
    this.parts[index] = made;
  }

  place(index, made) {
    const after = this.parts[index - 1]?.element;
    if (after) after.after(made.element);
    else this.element.append(made.element);
    return made;
  }

  make(part) {
    switch (part.type) {
      case "text": {
        if (this.person) {
          const attached = attachedText(part.text);
          if (attached) return { type: "attached", element: attached };
          const element = el("div", { class: "said", text: part.text });
          return { type: "text", element, update: (part) => (element.textContent = part.text), append: (delta) => element.append(delta) };
        }
        const stream = new MarkdownStream(el("div", { class: "markdown" }));
        stream.append(part.text);
        if (part.text) stream.flush();
        return { type: "text", element: stream.host, stream, update: (part) => stream.set(part.text), append: (delta) => stream.append(delta) };
      }
      case "reasoning": {
        const body = el("div", { class: "thought", text: part.reasoning ?? "" });
        const element = el("details", { class: "reasoning" }, el("summary", { text: "Thinking" }), body);
        element.hidden = !part.reasoning;
        const grow = (delta) => {
          element.hidden = false;
          body.append(delta);
        };
        const update = (part) => {
          element.hidden = !part.reasoning;
          body.textContent = part.reasoning ?? "";
        };
        return { type: "reasoning", element, append: grow, update };
      }
      case "tool-invocation": {
        const card = this.transcript.card(part.toolInvocation.toolCallId, part.toolInvocation.toolName);
        card.update(part.toolInvocation);
        card.message = this;
        return { type: "tool-invocation", element: card.element, card, update: (part) => card.update(part.toolInvocation) };
      }
      case "file":
        return { type: "file", element: fileView(part) };
      case "error":
        return { type: "error", element: el("p", { class: "failure", text: part.error?.message ?? "It failed." }) };
      case "source":
        return { type: "source", element: el("p", { class: "quiet", text: `Source: ${part.source?.title ?? part.source?.url ?? ""}` }) };
      default:
        return { type: part.type, element: el("span", { hidden: true }) };
    }
  }

  textDelta(delta) {
    const last = this.parts.findLast((part) => part.type === "text");
    if (last) last.append(delta);
    else this.setPart(this.parts.length, { type: "text", text: delta });
  }

  /** Everything that was said is on the page now. */
  settle() {
    for (const part of this.parts) part.stream?.flush();
  }

  get text() {
    return this.parts.map((part) => part.stream?.text ?? (this.person ? part.element.textContent : "")).join("\n");
  }
}

export class Transcript {
  constructor({ scroller, list, latest }) {
    Object.assign(this, { scroller, list, latest });
    this.stick = true;
    let top = 0;
    let touched = -Infinity;
    for (const type of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      scroller.addEventListener(type, () => (touched = performance.now()), { passive: true });
    }
    scroller.addEventListener("scroll", () => {
      // Only a person who scrolls up leaves the end; what moves by itself does not make anybody leave it.
      if (scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48) this.stick = true;
      else if (scroller.scrollTop < top - 1 && performance.now() - touched < 1500) this.stick = false;
      top = scroller.scrollTop;
      this.latest.hidden = this.stick;
    });
    latest.addEventListener("click", () => this.toEnd());
    // Whatever makes the conversation longer: who was at its end stays there.
    const watch = new ResizeObserver(() => this.stick && this.jump());
    watch.observe(list);
    watch.observe(scroller);
    this.clear();
  }

  jump() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  toEnd() {
    this.stick = true;
    this.latest.hidden = true;
    this.jump();
  }

  clear() {
    this.messages = new Map();
    this.cards = new Map();
    /** Messages whose growth was told from their beginning: deltas of any other would be added twice. */
    this.followed = new Set();
    this.list.replaceChildren();
    this.stick = true;
    this.latest.hidden = true;
  }

  card(id, name) {
    let card = this.cards.get(id);
    if (!card) this.cards.set(id, (card = new ToolCard(id, name)));
    return card;
  }

  /** A page of history, oldest first: the newest, or one from before what is shown. */
  showHistory(messages, before = false) {
    const fresh = messages.filter((message) => !this.messages.has(message.id));
    const made = fresh.map((message) => {
      const view = new Message(this, message);
      return [message.id, view];
    });
    const height = this.scroller.scrollHeight;
    const elements = made.map(([, view]) => view.element);
    if (before) {
      this.list.prepend(...elements);
      this.messages = new Map([...made, ...this.messages]);
      this.scroller.scrollTop += this.scroller.scrollHeight - height;
    } else {
      this.list.append(...elements);
      for (const [id, view] of made) this.messages.set(id, view);
    }
  }

  /** `message_start`, or the message that the view says is under way. */
  start(message) {
    this.followed.add(message.id);
    const known = this.messages.get(message.id);
    if (known) {
      known.replace(message);
    } else {
      const made = new Message(this, message);
      this.messages.set(message.id, made);
      this.list.append(made.element);
    }
  }

  /** `message_update`. */
  update(id, event) {
    const message = this.messages.get(id);
    if (!message) return;
    if (event.type === "part") message.setPart(event.index, event.part);
    else if (!this.followed.has(id)) return;
    else if (event.type === "text-delta") message.textDelta(event.delta);
    else if (event.type === "reasoning-delta") {
      if (!message.parts[event.index]) message.setPart(event.index, { type: "reasoning", reasoning: "" });
      message.parts[event.index].append?.(event.delta);
    }
  }

  end(id) {
    this.messages.get(id)?.settle();
  }

  /** A call whose arguments arrive; its place is at the end until its message names it. */
  prepare(id, name, size) {
    const card = this.card(id, name);
    if (!card.element.isConnected) ([...this.messages.values()].at(-1)?.element ?? this.list).append(card.element);
    card.prepare(size);
  }

  /** What the view says about open calls. */
  applyView(view, waits) {
    const waiting = new Set(waits.map((wait) => wait.toolCallId));
    for (const [id, card] of this.cards) {
      if (card.settled || view.toolInputBuffers[id]) continue;
      card.view(view.activeTools[id], waiting.has(id));
      card.agent(view.activeSubagents[id]);
    }
  }

  /** Says where what was missed begins. */
  divide(afterId, text) {
    this.list.querySelector(".divider")?.remove();
    const divider = el("p", { class: "divider", role: "note" }, el("span", { text }));
    const after = this.messages.get(afterId)?.element;
    if (after) after.after(divider);
    else this.list.append(divider);
  }

  note(text, kind = "quiet") {
    this.list.append(el("p", { class: `event ${kind}`, role: kind === "failure" ? "alert" : "note", text }));
  }

  get lastId() {
    return [...this.messages.keys()].at(-1);
  }

  /** The text that a call last wrote to this file. */
  fileText(path) {
    const same = (other) => typeof other === "string" && other.replace(/^\.\//, "") === path.replace(/^\.\//, "");
    const written = [...this.cards.values()].filter((card) => same(card.args.path) && typeof card.args.content === "string" && card.state === "done");
    return written.at(-1)?.args.content ?? null;
  }
}
