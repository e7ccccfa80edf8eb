// One thread, live: its history, then its events, and after a break what was missed.

import { announce, toast } from "./dom.js";
import { EventStream } from "./stream.js";

const PAGE = 40;
/** Views come up to sixty times a second; a person sees no more than this. */
const VIEW_EVERY = 60;

const NO_VIEW = {
  isRunning: false,
  activeTools: {},
  toolInputBuffers: {},
  activeSubagents: {},
  tokenUsage: null,
  tasks: [],
  modifiedFiles: {},
};

/** A view says everything, and is large: it is told from other events without reading it. */
const VIEW = /^\{"at":"[^"]*","displayState":/;

export class ThreadView {
  /** `on` is told `connection`, `change` (of anything below), `settled` (a segment ended) and `threads` (the list is old). */
  constructor({ api, threadId, transcript, on }) {
    Object.assign(this, { api, threadId, transcript, on });
    this.view = NO_VIEW;
    this.waits = [];
    this.queue = [];
    this.grants = [];
    this.settings = {};
    this.mode = "";
    this.model = "";
    this.page = 0;
    this.hasEarlier = false;
    this.buffer = null;
    this.inputs = new Map();
    this.syncs = 0;
    this.closed = false;
    transcript.clear();
    this.ready = new Promise((resolve) => (this.isReady = resolve));
    this.stream = new EventStream(api.streamUrl(), { onStatus: (...status) => this.status(...status), onFrame: (data) => this.frame(data) });
  }

  close() {
    this.closed = true;
    this.stream.close();
    clearTimeout(this.viewTimer);
    this.isReady();
  }

  status(status, detail) {
    if (status === "live") {
      if (!detail.resumed || !this.synced) {
        this.sync();
      } else {
        this.back = { lastId: this.transcript.lastId, away: Date.now() - (this.lostAt ?? Date.now()), told: false };
        // Events of that time are told again; views are not made where nobody looks.
        this.load("state", "pending", "queue", "grants");
      }
      if (this.lostAt) announce("Connected again.");
      this.lostAt = null;
    } else if (status === "waiting" && !this.lostAt) {
      this.lostAt = Date.now();
      announce("The connection is lost. It is tried again by itself.");
    } else if (status === "refused" && detail === 404) {
      toast("This thread is not there any more.", "error");
    }
    this.on.connection(status, detail);
  }

  frame(data) {
    if (this.buffer === null && VIEW.test(data)) {
      // Only the newest counts.
      this.latestView = data;
      this.viewTimer ??= setTimeout(() => this.readView(), VIEW_EVERY);
      return;
    }
    let event;
    try {
      event = JSON.parse(data);
    } catch {
      return;
    }
    if (event.type === "display_state_changed" && event.seq === undefined) return this.freshStart(event);
    if (this.buffer) this.buffer.push(event);
    else this.apply(event);
  }

  readView() {
    clearTimeout(this.viewTimer);
    this.viewTimer = undefined;
    const data = this.latestView;
    this.latestView = null;
    if (data) this.applyView(JSON.parse(data));
  }

  /** The server says how things stand: at the beginning, or because what was missed is not there any more. */
  freshStart(event) {
    if (this.buffer && !this.fresh) {
      this.fresh = event;
      this.buffer = [];
    } else {
      this.sync(event);
    }
  }

  /** Reads everything anew. Events that arrive meanwhile wait. */
  async sync(fresh = null) {
    const turn = ++this.syncs;
    this.buffer = [];
    this.fresh = fresh;
    const lastId = this.transcript.lastId;
    const again = this.synced;
    let answers;
    for (let wait = 300; ; wait = Math.min(wait * 2, 5000)) {
      try {
        answers = await Promise.all([
          this.api.messages(this.threadId, 0, PAGE),
          this.api.state(this.threadId),
          this.pending(),
          this.api.queue(),
          this.api.grants(),
        ]);
        break;
      } catch (error) {
        if (this.closed || turn !== this.syncs) return;
        if (error.status && error.status < 500 && error.status !== 429) {
          this.on.failed(error);
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
    if (this.closed || turn !== this.syncs) return;
    const [history, state, pending, queue, grants] = answers;
    const stick = this.transcript.stick;
    this.transcript.clear();
    this.inputs.clear();
    const messages = history.messages.toReversed();
    this.transcript.showHistory(messages);
    this.page = 1;
    this.hasEarlier = history.hasMore;
    this.takeState(state);
    this.grants = grants;
    const view = this.fresh?.displayState;
    if (view?.isRunning) {
      this.view = view;
      if (view.currentMessage && (view.currentMessage.threadId ?? this.threadId) === this.threadId) this.transcript.start(view.currentMessage);
    } else {
      this.view = { ...NO_VIEW, modifiedFiles: view?.modifiedFiles ?? {}, tasks: state.tasks, tokenUsage: state.tokenUsage, isRunning: state.running };
    }
    this.waits = pending;
    this.queue = queue;
    this.transcript.applyView(this.view, this.waits);
    if (again && lastId && this.transcript.lastId !== lastId && this.transcript.messages.has(lastId)) {
      this.transcript.divide(lastId, "While the connection was lost");
    }
    if (stick || !again) this.transcript.toEnd();
    this.synced = true;
    const buffered = this.buffer;
    this.buffer = null;
    for (const event of buffered) this.apply(event);
    this.changed();
    this.isReady();
  }

  /** What waits on this thread: what its session asks, and what another session left on it. */
  async pending() {
    const [own, all] = await Promise.all([this.api.pending(), this.api.pending(true)]);
    const known = new Set(own.map((wait) => wait.id));
    const mine = own.filter((wait) => wait.threadId === this.threadId || !this.on.isListed(wait.threadId));
    return [...mine, ...all.filter((wait) => wait.threadId === this.threadId && !known.has(wait.id))];
  }

  takeState(state) {
    this.view = { ...this.view, isRunning: state.running, tasks: state.tasks, tokenUsage: state.tokenUsage };
    this.mode = state.modeId;
    this.model = state.modelId;
    this.settings = state.settings ?? {};
  }

  /** Reads some of what has no events of its own. */
  async load(...what) {
    try {
      for (const name of what) {
        if (name === "grants") this.grants = await this.api.grants();
        else if (name === "queue") this.queue = await this.api.queue();
        else if (name === "pending") this.waits = await this.pending();
        else if (name === "state") this.takeState(await this.api.state(this.threadId));
      }
      this.transcript.applyView(this.view, this.waits);
      if (!this.closed) this.changed();
    } catch {
      // The connection says it already.
    }
  }

  async earlier() {
    const history = await this.api.messages(this.threadId, this.page, PAGE);
    if (this.closed) return;
    this.page += 1;
    this.hasEarlier = history.hasMore;
    this.transcript.showHistory(history.messages.toReversed(), true);
    this.changed();
  }

  changed() {
    this.on.change(this);
  }

  applyView(event) {
    // What another session left on this thread is in no view of this one.
    const foreign = this.waits.filter((wait) => wait.sessionScope !== undefined && (wait.sessionScope ?? undefined) !== this.api.scope);
    this.view = event.displayState;
    this.waits = [...(event.pending ?? []).filter((wait) => !foreign.some((other) => other.id === wait.id)), ...foreign];
    this.queue = event.queue ?? [];
    this.transcript.applyView(this.view, this.waits);
    this.changed();
  }

  missed(event) {
    const { back } = this;
    if (!back || back.told) return;
    back.told = true;
    if (back.away > 1500 && event.type !== "agent_end") this.transcript.divide(back.lastId, "While the connection was lost");
  }

  // One arm per event: the table of the wire's events.
  apply(event) {
    if (event.threadId && event.threadId !== this.threadId && event.type !== "thread_changed") {
      if (event.type.startsWith("thread_")) this.on.threads();
      return;
    }
    this.missed(event);
    const { transcript } = this;
    switch (event.type) {
      case "display_state_changed":
        return this.applyView(event);
      case "agent_start":
        this.view = { ...this.view, isRunning: true };
        this.on.threads();
        return this.changed();
      case "agent_end":
        if (this.latestView) this.readView();
        this.view = { ...this.view, isRunning: false };
        for (const message of transcript.messages.values()) message.settle();
        if (event.reason === "aborted") transcript.note("Stopped.");
        announce({ complete: "The reply is complete.", aborted: "Stopped.", error: "The run failed." }[event.reason] ?? "");
        this.load("grants");
        this.on.threads();
        return this.changed();
      case "message_start":
        return transcript.start(event.message);
      case "message_update":
        return transcript.update(event.id, event.event);
      case "message_end":
        return transcript.end(event.id);
      case "tool_input_start":
        this.inputs.set(event.toolCallId, { name: event.toolName, size: 0 });
        return transcript.prepare(event.toolCallId, event.toolName, 0);
      case "tool_input_delta": {
        const input = this.inputs.get(event.toolCallId);
        if (!input) return;
        input.size += event.argsTextDelta.length;
        return transcript.prepare(event.toolCallId, input.name, input.size);
      }
      case "tool_input_end":
        return this.inputs.delete(event.toolCallId);
      case "error":
        if (event.retryAttempt) toast(`The model did not answer. Trying again (${event.retryAttempt} of ${event.maxRetries}).`);
        else transcript.note(event.error?.message ?? "The run failed.", "failure");
        return;
      case "info":
        return toast(event.message);
      case "mode_changed":
        this.mode = event.modeId;
        transcript.note(`Mode: ${this.on.modeName(event.modeId)}`);
        return this.changed();
      case "model_changed":
        this.model = event.modelId;
        return this.changed();
      case "state_changed":
        this.settings = { ...this.settings, yolo: event.state?.yolo === true };
        return this.changed();
      case "goal_evaluation":
        if (event.payload?.reason && !event.payload.pending) transcript.note(`Goal: ${event.payload.reason}`);
        return;
      case "thread_deleted":
        return this.on.gone();
      case "thread_created":
      case "thread_changed":
      case "thread_title_updated":
        return this.on.threads();
      default:
    }
  }
}
