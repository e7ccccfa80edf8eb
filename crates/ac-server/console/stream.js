// The event stream: read by hand, because it needs a header for the token and says where it left off.

import { headers } from "./api.js";

const FIRST_WAIT = 400;
const LONGEST_WAIT = 10_000;
/** The server says something at least every 25 seconds; silence for longer means that nobody is there. */
const SILENCE = 60_000;

/**
 * Listens to a session until closed. `onStatus(status, detail)` tells `connecting`, `live`, `waiting` (with the milliseconds until the
 * next attempt) and `refused` (with the HTTP status). `onFrame(data, id)` gets each frame as text.
 */
export class EventStream {
  constructor(url, { onStatus, onFrame }) {
    Object.assign(this, { url, onStatus, onFrame });
    this.lastId = null;
    this.closed = false;
    this.wake = () => {};
    this.online = () => this.wake();
    addEventListener("online", this.online);
    this.run();
  }

  close() {
    this.closed = true;
    removeEventListener("online", this.online);
    this.abort?.abort();
    this.wake();
  }

  /** Tries now instead of later. */
  retry() {
    this.wake();
  }

  async run() {
    let wait = FIRST_WAIT;
    while (!this.closed) {
      this.onStatus("connecting");
      try {
        const heard = await this.connect();
        if (heard) wait = FIRST_WAIT;
      } catch (error) {
        if (this.closed) return;
        if (error instanceof Refused && error.status !== 429 && error.status < 500) {
          this.onStatus("refused", error.status);
          return;
        }
      }
      if (this.closed) return;
      const pause = wait * (0.8 + Math.random() * 0.4);
      this.onStatus("waiting", pause);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = () => {};
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }

  /** One connection. Resolves when it ended, with whether it was ever open. */
  async connect() {
    this.abort = new AbortController();
    const more = this.lastId ? { "last-event-id": this.lastId } : {};
    let watch;
    const heard = () => {
      clearTimeout(watch);
      watch = setTimeout(() => this.abort.abort(), SILENCE);
    };
    heard();
    try {
      const response = await fetch(this.url, { headers: headers({ accept: "text/event-stream", ...more }), signal: this.abort.signal, cache: "no-store" });
      if (!response.ok) throw new Refused(response.status);
      this.onStatus("live", { resumed: this.lastId !== null });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const frames = new FrameReader((data, id) => {
        if (this.closed) return;
        if (id !== undefined) this.lastId = id;
        if (data) this.onFrame(data, id);
      });
      for (;;) {
        const { value, done } = await reader.read().catch(() => ({ done: true }));
        if (done) return true;
        heard();
        frames.push(value);
      }
    } finally {
      clearTimeout(watch);
    }
  }
}

class Refused extends Error {
  constructor(status) {
    super(`refused: ${status}`);
    this.status = status;
  }
}

/** Cuts a text into frames: `id:` and `data:` lines up to an empty one. */
export class FrameReader {
  constructor(onFrame) {
    this.onFrame = onFrame;
    this.rest = "";
    this.data = [];
    this.id = undefined;
  }

  push(text) {
    const all = this.rest + text;
    let from = 0;
    for (let end = all.indexOf("\n", from); end >= 0; end = all.indexOf("\n", from)) {
      this.line(all.slice(from, all[end - 1] === "\r" && end > from ? end - 1 : end));
      from = end + 1;
    }
    this.rest = all.slice(from);
  }

  line(line) {
    if (line === "") {
      if (this.data.length || this.id !== undefined) this.onFrame(this.data.join("\n"), this.id);
      this.data = [];
      this.id = undefined;
    } else if (line.startsWith("data:")) {
      this.data.push(line.slice(line[5] === " " ? 6 : 5));
    } else if (line.startsWith("id:")) {
      this.id = line.slice(line[3] === " " ? 4 : 3);
    }
  }
}
