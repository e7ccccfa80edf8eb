// What waits for the person: approvals, questions, plans, calls in doubt. One panel shows one of them; nothing here is ever answered by
// itself, and no button that decides something gets the focus by itself.

import { announce, el, icon, iconButton, toast } from "./dom.js";
import { render } from "./markdown.js";
import { argsView, deed } from "./tools.js";

export const kindWord = { approval: "approval", question: "question", plan: "plan", in_doubt: "call in doubt" };

/** One line: what is asked. */
export function headline(wait) {
  switch (wait.kind) {
    case "approval":
      return `Allow: ${deed(wait.toolName, wait.args)}`;
    case "question":
      return wait.payload?.question ?? `${wait.toolName} asks`;
    case "plan":
      return "A plan waits for your decision";
    default:
      return `Was it done? ${deed(wait.toolName, wait.args)}`;
  }
}

export class Waits {
  /** `answer(wait, body)` sends; `planText(path)` finds what was written; `onShow()` is called when what is shown changed. */
  constructor({ panel, answer, planText }) {
    Object.assign(this, { panel, answer, planText });
    this.all = [];
    this.sent = new Set();
    this.shown = null;
    /** The focus was put elsewhere by this panel, and the person did nothing since. */
    this.lent = false;
    for (const type of ["keydown", "pointerdown"]) addEventListener(type, () => (this.lent = false), true);
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.panel.classList.contains("tall")) this.toggleHeight();
    });
  }

  set(waits) {
    const open = waits.filter((wait) => !this.sent.has(wait.id));
    for (const id of this.sent) if (!waits.some((wait) => wait.id === id)) this.sent.delete(id);
    const before = new Set(this.all.map((wait) => wait.id));
    for (const wait of open) if (!before.has(wait.id)) announce(`Waiting for you. ${headline(wait)}`);
    const changed = open.length !== this.all.length || open.some((wait) => !before.has(wait.id));
    this.all = open;
    const current = open.find((wait) => wait.id === this.shown?.id);
    if (!current) this.show(open[0] ?? null);
    else if (changed) this.drawCount();
  }

  /** Puts the focus where what waits is said; a second step decides. */
  focus() {
    this.panel.querySelector("h2")?.focus();
  }

  show(wait) {
    const hadFocus = this.lent || this.panel.contains(document.activeElement);
    this.shown = wait;
    this.panel.hidden = !wait;
    this.panel.classList.remove("tall");
    if (!wait) {
      this.panel.replaceChildren();
      if (hadFocus) document.getElementById("message").focus();
      this.lent = hadFocus;
      return;
    }
    this.panel.dataset.kind = wait.kind;
    this.count = el("span", { class: "count" });
    const nav = el("div", { class: "wait-nav" }, this.count);
    const title = el("h2", { tabIndex: -1, text: headline(wait) });
    this.body = el("div", { class: "wait-body" });
    this.actions = el("div", { class: "buttons" });
    this.extra = el("div", { class: "extra", hidden: true });
    this.failure = el("p", { class: "failure", role: "alert", hidden: true });
    const head = el("header", {}, el("span", { class: "eyebrow", text: this.eyebrow(wait) }), nav, title);
    this.panel.replaceChildren(head, this.body, this.failure, this.extra, this.actions);
    this.grow = iconButton("grow", "Make larger", () => this.toggleHeight());
    nav.append(this.grow);
    this.drawCount();
    if (wait.kind === "approval") this.drawApproval(wait);
    else if (wait.kind === "plan") this.drawPlan(wait);
    else if (wait.kind === "question") this.drawQuestion(wait);
    else this.drawDoubt(wait);
    if (hadFocus) this.focus();
  }

  eyebrow(wait) {
    const by = wait.parentToolCallId ? " · asked by a subagent" : "";
    return { approval: "Approval", question: "Question", plan: "Plan", in_doubt: "Interrupted" }[wait.kind] + by;
  }

  toggleHeight() {
    const tall = this.panel.classList.toggle("tall");
    this.grow.setAttribute("aria-pressed", String(tall));
  }

  drawCount() {
    const at = this.all.findIndex((wait) => wait.id === this.shown?.id);
    this.count.replaceChildren();
    if (this.all.length < 2) return;
    const step = (by) => {
      const next = this.all[(at + by + this.all.length) % this.all.length];
      this.show(next);
      this.focus();
    };
    this.count.append(
      iconButton("up", "Previous", () => step(-1)),
      el("span", { text: `${at + 1} of ${this.all.length}` }),
      iconButton("down", "Next", () => step(1)),
    );
  }

  async send(body, done) {
    const wait = this.shown;
    const buttons = [...this.panel.querySelectorAll("button")];
    // A disabled button loses the focus.
    this.lent = this.panel.contains(document.activeElement);
    for (const button of buttons) button.disabled = true;
    try {
      await this.answer(wait, body);
      announce(done);
      this.sent.add(wait.id);
      this.all = this.all.filter((other) => other.id !== wait.id);
      this.show(this.all[0] ?? null);
    } catch (error) {
      if (error.status === 404 || error.status === 409) {
        toast(`This was answered already, or is no longer asked. (${error.message})`);
        this.sent.add(wait.id);
        this.all = this.all.filter((other) => other.id !== wait.id);
        this.show(this.all[0] ?? null);
        return;
      }
      for (const button of buttons) button.disabled = false;
      this.focus();
      this.failure.textContent = error.message;
      this.failure.hidden = false;
    }
  }

  button(text, props, onClick) {
    return el("button", { type: "button", text, ...props, on: { click: onClick } });
  }

  drawApproval(wait) {
    this.body.append(argsView(wait.toolName, wait.args));
    const decline = this.button("Decline…", {}, () =>
      this.askText({
        label: "Why not? The agent is told. (You may leave this empty.)",
        action: "Decline",
        send: (reason) => this.send(reason ? { action: "decline", reason } : { action: "decline" }, "Declined."),
      }),
    );
    this.actions.append(
      this.button("Approve", { class: "primary" }, () => this.send({ action: "approve" }, "Approved.")),
      decline,
      this.button(`Always allow ${wait.toolName}`, {}, () => this.send({ action: "approve", always: "tool" }, "Approved, from now on without asking.")),
      this.button("Always allow this kind", { title: "Every tool of the same category, for this conversation" }, () =>
        this.send({ action: "approve", always: "category" }, "Approved, from now on without asking."),
      ),
    );
  }

  /** One more line of text before it is sent. */
  askText({ label, action, send, required }) {
    const input = el("textarea", { id: "wait-text", rows: 2, required: Boolean(required), maxLength: 10000 });
    const submit = () => {
      const text = input.value.trim();
      if (required && !text) input.focus();
      else send(text);
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
    });
    const back = () => {
      this.extra.hidden = true;
      this.actions.hidden = false;
      this.actions.querySelector("button").focus();
    };
    this.extra.replaceChildren(
      el("label", { for: "wait-text", text: label }),
      input,
      el("div", { class: "buttons" }, this.button(action, { class: "primary" }, submit), this.button("Back", { class: "quiet-button" }, back)),
    );
    this.extra.hidden = false;
    this.actions.hidden = true;
    input.focus();
  }

  drawPlan(wait) {
    const path = wait.payload?.path ?? wait.args?.path ?? "";
    const plan = wait.payload?.plan ?? this.planText(path);
    const from = el("p", { class: "quiet plan-path" }, icon("file"), el("span", { text: path }));
    if (plan) {
      const shown = render(plan);
      shown.classList.add("plan");
      shown.tabIndex = 0;
      this.body.append(from, shown);
    } else {
      this.body.append(from, el("p", { text: "The plan is in this file of the workspace. It was written before what is shown of this conversation: load earlier messages to read it here." }));
    }
    const title = /^#\s+(.+)$/m.exec(plan ?? "")?.[1];
    // What was read here is what was approved.
    const read = { ...(path && { path }), ...(title && { title: title.slice(0, 200) }), ...(plan && { plan }) };
    this.actions.append(
      this.button("Approve plan", { class: "primary" }, () => this.send({ action: "reply", value: { action: "approved", ...read } }, "Plan approved.")),
      this.button("Ask for changes…", {}, () =>
        this.askText({
          label: "What should be different?",
          action: "Send back",
          required: true,
          send: (feedback) => this.send({ action: "reply", value: { action: "rejected", feedback } }, "Plan sent back."),
        }),
      ),
      this.button("Reject", { class: "quiet-button" }, () => this.send({ action: "reply", value: { action: "rejected" } }, "Plan rejected.")),
    );
  }

  drawQuestion(wait) {
    const { options, selectionMode } = wait.payload ?? {};
    const reply = (value) => this.send({ action: "reply", value }, "Answered.");
    if (Array.isArray(options) && options.length) {
      const many = selectionMode === "multi_select";
      const choices = options.map((option, index) => {
        const input = el("input", { type: many ? "checkbox" : "radio", name: "choice", id: `choice-${index}`, value: String(index) });
        const words = el("span", { class: "choice-words" }, el("strong", { text: option.label }), option.description ? el("span", { text: option.description }) : null);
        return el("label", { class: "choice", for: input.id }, input, words);
      });
      const group = el("fieldset", {}, el("legend", { class: "visually-hidden", text: many ? "Choose any" : "Choose one" }), choices);
      const chosen = () => [...group.querySelectorAll("input:checked")].map((input) => options[Number(input.value)].label);
      const submit = this.button("Answer", { class: "primary", disabled: !many }, () => reply(many ? chosen() : chosen()[0]));
      group.addEventListener("change", () => (submit.disabled = !many && !chosen().length));
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && !submit.disabled) submit.click();
      });
      this.body.append(group);
      if (many) this.body.append(el("p", { class: "quiet", text: "Choose any number." }));
      this.actions.append(submit);
      return;
    }
    const free = takesText(wait.answerSchema);
    const input = el("textarea", { id: "reply", rows: free ? 2 : 4, "aria-label": "Your answer" });
    const submit = () => {
      if (free) return input.value.trim() ? reply(input.value) : input.focus();
      try {
        reply(JSON.parse(input.value));
      } catch (error) {
        this.failure.textContent = `This is no JSON: ${error.message}`;
        this.failure.hidden = false;
      }
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (free ? !event.shiftKey : event.ctrlKey || event.metaKey) && !event.isComposing) {
        event.preventDefault();
        submit();
      }
    });
    if (!wait.payload?.question) this.body.append(argsView(wait.toolName, wait.payload ?? wait.args));
    this.body.append(input);
    if (!free) this.body.append(el("p", { class: "quiet", text: "The tool takes JSON." }));
    this.actions.append(this.button("Answer", { class: "primary" }, submit));
  }

  drawDoubt(wait) {
    this.body.append(
      el("p", { text: "This call was running when the process ended. Nobody knows how far it came. Look before you decide: running it again may do it twice." }),
      argsView(wait.toolName, wait.args),
    );
    this.actions.append(
      this.button("Run it again", {}, () => this.send({ action: "run_again" }, "It runs again.")),
      this.button("Record it as failed", { class: "primary" }, () => this.send({ action: "record_failed" }, "Recorded as failed.")),
    );
  }
}

function takesText(schema) {
  if (!schema) return true;
  const some = schema.anyOf ?? schema.oneOf ?? [schema];
  return some.some((one) => one.type === "string" || (Array.isArray(one.type) && one.type.includes("string")) || one.type === undefined);
}
