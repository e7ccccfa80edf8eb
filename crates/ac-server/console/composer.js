// Where the person writes: text, files, and when it is to be read.

import { el, icon, iconButton, toast } from "./dom.js";

/** The server takes bodies up to 4.5 MiB, and base64 makes a third more of a file. */
const MOST_BYTES = 3 * 1024 * 1024;
const MOST_FILES = 20;

/** A type that the server knows, for files that the system has none for. */
function mediaType(file) {
  if (file.type) return file.type;
  return /\.(md|txt|rs|js|ts|py|toml|ya?ml|json|css|html|sh|c|h|cpp|go|java|log|csv)$/i.test(file.name) ? "text/plain" : "application/octet-stream";
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^data:[^;,]*/, `data:${mediaType(file)}`));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

export class Composer {
  /** `onSend(text, files, how)`: `how` is `now`, `after` or `instead`. Resolves with whether it was taken. */
  constructor({ form, onSend, onStop }) {
    Object.assign(this, { form, onSend, onStop });
    this.input = form.querySelector("#message");
    this.chips = form.querySelector("#attached");
    this.how = form.querySelector("#how");
    this.howLabel = form.querySelector("#how-field");
    this.sendButton = form.querySelector("#send");
    this.stopButton = form.querySelector("#stop");
    this.hint = form.querySelector("#hint");
    this.picker = form.querySelector("#files");
    this.files = [];
    this.busy = false;
    this.input.addEventListener("input", () => this.draw());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.send();
      }
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    form.querySelector("#attach").addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => {
      this.add(this.picker.files);
      this.picker.value = "";
    });
    this.stopButton.addEventListener("click", () => this.onStop());
    this.input.addEventListener("paste", (event) => {
      if (event.clipboardData?.files.length) {
        event.preventDefault();
        this.add(event.clipboardData.files);
      }
    });
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer?.files.length) this.add(event.dataTransfer.files);
    });
  }

  async add(list) {
    // A copy: the list of the field is emptied when the field is.
    for (const file of [...list]) {
      const size = this.files.reduce((sum, other) => sum + other.size, file.size);
      if (size > MOST_BYTES) toast(`${file.name} is too large: all files together may have 3 MB.`, "error");
      else if (this.files.length >= MOST_FILES) toast(`A message takes ${MOST_FILES} files at most.`, "error");
      else this.files.push({ filename: file.name, mediaType: mediaType(file), size: file.size, data: await dataUrl(file) });
    }
    this.draw();
  }

  /** What the session does decides what sending means. */
  set({ running, approvals }) {
    this.running = running;
    this.approvals = approvals;
    this.draw();
  }

  draw() {
    const chips = this.files.map((file, index) =>
      el(
        "li",
        { class: "file-chip" },
        icon("file"),
        el("span", { text: file.filename }),
        iconButton("close", `Remove ${file.filename}`, () => {
          this.files.splice(index, 1);
          this.draw();
          this.input.focus();
        }),
      ),
    );
    this.chips.replaceChildren(...chips);
    this.chips.hidden = !chips.length;
    this.howLabel.hidden = !this.running;
    this.stopButton.hidden = !this.running;
    this.sendButton.disabled = this.busy || (!this.input.value.trim() && !this.files.length);
    this.hint.textContent = this.approvals ? "Sending a message now declines what waits for your approval." : "";
    this.hint.hidden = !this.approvals;
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, innerHeight * 0.4)}px`;
  }

  async send() {
    const text = this.input.value;
    if (this.busy || (!text.trim() && !this.files.length)) return;
    const how = this.running ? this.how.value : "now";
    const files = this.files.map(({ filename, mediaType, data }) => ({ filename, mediaType, data }));
    if (files.length && how !== "now") {
      toast("Files can only be sent with a message that is read at the next step.", "error");
      return;
    }
    this.busy = true;
    this.draw();
    try {
      if (await this.onSend(text, files, how)) {
        // What was typed in the meantime stays.
        this.input.value = this.input.value.startsWith(text) ? this.input.value.slice(text.length) : this.input.value;
        this.files = [];
        this.how.value = "now";
      }
    } finally {
      this.busy = false;
      this.draw();
      // Who went on to something else in the meantime stays there.
      if (document.activeElement === document.body || this.form.contains(document.activeElement)) this.input.focus();
    }
  }
}
