// Elements without markup: nothing in this page is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element. `on` holds listeners; `true` sets an empty attribute; `false`, `null` and `undefined` set nothing. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "on") {
      for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
    } else if (name === "class") {
      node.className = value;
    } else if (name === "text") {
      node.textContent = value;
    } else if (name === "data") {
      Object.assign(node.dataset, value);
    } else if (name in node && typeof node[name] !== "object" && !name.startsWith("aria")) {
      node[name] = value;
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const PATHS = {
  menu: "M3 6h18M3 12h18M3 18h18",
  plus: "M12 5v14M5 12h14",
  clip: "M21 11.5l-8.6 8.6a5.5 5.5 0 0 1-7.8-7.8l9-9a3.7 3.7 0 0 1 5.2 5.2l-9 9a1.8 1.8 0 0 1-2.6-2.6l8.3-8.3",
  send: "M12 19V5M5 12l7-7 7 7",
  stop: "M7 7h10v10H7z",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  pencil: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  panel: "M4 4h16v16H4zM15 4v16",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  auto: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  grow: "M4 14v6h6M20 10V4h-6M4 20l7-7M20 4l-7 7",
  key: "M14 10a4 4 0 1 0-3.5 4L12 12.500h2v2h2v2h3v-3z",
};

/** A drawing of one line; it says nothing to a screen reader, the button around it does. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", PATHS[name] ?? PATHS.file);
  svg.append(path);
  return svg;
}

/** A button that shows only a drawing. */
export function iconButton(name, label, onClick, props = {}) {
  return el("button", { type: "button", class: "icon-button", "aria-label": label, title: label, on: { click: onClick }, ...props }, icon(name));
}

/** Asks for one line of text, or for a yes. Resolves with the text, `true`, or `null` where it was called off. */
export function ask({ title, text, label, value, action, danger }) {
  const opener = document.activeElement;
  return new Promise((resolve) => {
    const input = label ? el("input", { type: "text", id: "ask-input", value: value ?? "", maxLength: 200, autocomplete: "off" }) : null;
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", { id: "ask-title", text: title }),
      text ? el("p", { text }) : null,
      input ? el("label", { for: "ask-input", text: label }) : null,
      input,
      el(
        "div",
        { class: "buttons end" },
        el("button", { type: "submit", value: "no", formNoValidate: true, text: "Cancel" }),
        el("button", { type: "submit", value: "yes", class: danger ? "danger" : "primary", text: action }),
      ),
    );
    const dialog = el("dialog", { class: "small-dialog", "aria-labelledby": "ask-title" }, form);
    // Enter in the field means yes, not the first button of the form.
    input?.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) {
        event.preventDefault();
        dialog.close("yes");
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      refocus(opener);
      resolve(dialog.returnValue === "yes" ? (input ? input.value.trim() : true) : null);
    });
    document.body.append(dialog);
    dialog.showModal();
    if (input) {
      input.focus();
      input.select();
    } else {
      // What cannot be undone is not one key away.
      form.querySelector(danger ? "button[value=no]" : "button[value=yes]").focus();
    }
  });
}

/** Puts the focus back, also where the element was drawn anew in the meantime: its label names it. */
export function refocus(element) {
  const label = element?.getAttribute?.("aria-label");
  const there = element?.isConnected ? element : label && document.querySelector(`[aria-label="${CSS.escape(label)}"]`);
  there?.focus();
}

/** Says something to a screen reader, and nothing on the screen. */
export function announce(text) {
  const region = document.getElementById("announcer");
  // The same words twice would not be spoken twice.
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

/** A short notice that goes away by itself. */
export function toast(text, kind = "info") {
  const notices = document.getElementById("notices");
  const notice = el("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" }, el("span", { text }));
  notice.append(iconButton("close", "Dismiss", () => notice.remove()));
  notices.append(notice);
  while (notices.children.length > 4) notices.firstChild.remove();
  setTimeout(() => notice.remove(), kind === "error" ? 12000 : 5000);
}

/** "just now", "5 min", "3 h", "12 Mar". */
export function ago(iso) {
  const then = Date.parse(iso);
  if (Number.isNaN(then)) return "";
  const minutes = Math.floor((Date.now() - then) / 60000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)} h`;
  return new Date(then).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** Random letters, also where the page is not on a secure origin. */
export function randomId(bytes = 12) {
  return [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
