// Markdown as elements. The library reads it; what it found is built here from a closed list of elements, so that nothing a model wrote
// is ever parsed as HTML: raw HTML is shown as the text that it is, pictures are not loaded, links lead to http, https and mail only.

import { Lexer } from "./vendor/marked.js";
import { el } from "./dom.js";

/** Longer blocks are shown as they are: reading them again and again would cost more than it is worth. */
const LONGEST_BLOCK = 60_000;
const DEEPEST = 24;

function lex(source, links) {
  const lexer = new Lexer({ gfm: true, breaks: false });
  // Definitions of links hold for the whole text, also for blocks that were settled before.
  lexer.tokens.links = links;
  return lexer.lex(source);
}

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", hellip: "…", mdash: "—", ndash: "–", copy: "©", rarr: "→", larr: "←" };

function unescape(text) {
  return text.replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|\w{2,8});/gi, (whole, name) => {
    if (name[0] !== "#") return ENTITIES[name] ?? whole;
    const code = name[1] === "x" || name[1] === "X" ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : whole;
  });
}

/** The address, if it is one that a person may follow from here. */
export function safeHref(href) {
  let url;
  try {
    // No base: what is relative would lead into this server, where the model's files are not.
    url = new URL(String(href));
  } catch {
    return null;
  }
  return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
}

function link(token, depth) {
  const href = safeHref(unescape(token.href ?? ""));
  const inside = token.tokens?.length ? inline(token.tokens, depth + 1) : [token.text ?? ""];
  if (!href) return el("span", { class: "dead-link", title: "This is no web address, so it is not a link here" }, inside);
  return el("a", { href, target: "_blank", rel: "noopener noreferrer nofollow", referrerPolicy: "no-referrer", title: href }, inside);
}

function inline(tokens, depth) {
  if (depth > DEEPEST) return tokens.map((token) => token.raw ?? "");
  return tokens.flatMap((token) => {
    switch (token.type) {
      case "strong":
      case "em":
      case "del":
        return el(token.type, {}, inline(token.tokens ?? [], depth + 1));
      case "codespan":
        return el("code", { text: token.text });
      case "br":
        return el("br");
      case "link":
        return link(token, depth);
      case "image": {
        // Loading it would tell its server that it was read, and by whom.
        const text = `Image: ${token.text || "no description"}`;
        return link({ href: token.href, text }, depth);
      }
      case "checkbox":
        return el("input", { type: "checkbox", checked: token.checked, disabled: true, "aria-label": token.checked ? "done" : "not done" });
      case "text":
        return token.tokens ? inline(token.tokens, depth + 1) : unescape(token.text);
      case "escape":
        return unescape(token.text);
      default:
        return token.raw ?? token.text ?? "";
    }
  });
}

/** A block of code with its language and a button that copies it. */
export function codeBlock(text, language = "") {
  const code = el("code", { text });
  const copy = el("button", {
    type: "button",
    class: "copy",
    text: "Copy",
    on: {
      click: async () => {
        try {
          await navigator.clipboard.writeText(code.textContent);
          copy.textContent = "Copied";
        } catch {
          copy.textContent = "Not allowed";
        }
        setTimeout(() => (copy.textContent = "Copy"), 1500);
      },
    },
  });
  const head = el("div", { class: "code-head" }, el("span", { text: language.slice(0, 24) }), copy);
  return el("div", { class: "code-block" }, head, el("pre", { tabIndex: 0, "aria-label": "Code" }, code));
}

function table(token, depth) {
  const cell = (tag) => (cell) => {
    const node = el(tag, {}, inline(cell.tokens, depth + 1));
    if (cell.align === "center" || cell.align === "right") node.classList.add(cell.align);
    return node;
  };
  const head = el("thead", {}, el("tr", {}, token.header.map(cell("th"))));
  const body = el("tbody", {}, token.rows.map((row) => el("tr", {}, row.map(cell("td")))));
  return el("div", { class: "table", tabIndex: 0, role: "region", "aria-label": "Table" }, el("table", {}, head, body));
}

function block(token, depth) {
  if (depth > DEEPEST) return el("p", { text: token.raw });
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // The page has its own first levels.
      return el(`h${Math.min(6, token.depth + 2)}`, { class: `h${token.depth}` }, inline(token.tokens, depth + 1));
    case "paragraph":
      return el("p", {}, inline(token.tokens, depth + 1));
    case "text":
      return el("span", {}, inline(token.tokens ?? [token], depth + 1));
    case "code":
      return codeBlock(token.text, token.lang ?? "");
    case "blockquote":
      return el("blockquote", {}, blocks(token.tokens, depth + 1));
    case "hr":
      return el("hr");
    case "table":
      return table(token, depth);
    case "list": {
      const list = el(token.ordered ? "ol" : "ul", { class: token.loose ? "loose" : "tight" });
      if (token.ordered && Number.isSafeInteger(token.start) && token.start !== 1) list.start = token.start;
      list.append(...token.items.map((item) => el("li", { class: item.task ? "task" : "" }, blocks(item.tokens, depth + 1))));
      return list;
    }
    case "checkbox":
      return inline([token], depth)[0];
    default:
      return el("p", { class: "raw", text: token.raw.trimEnd() });
  }
}

function blocks(tokens, depth) {
  return tokens.map((token) => block(token, depth)).filter(Boolean);
}

function plain(text) {
  return el("p", { class: "raw", text });
}

/** A whole text. */
export function render(text) {
  const stream = new MarkdownStream(el("div", { class: "markdown" }));
  stream.append(text);
  stream.flush();
  return stream.host;
}

/**
 * A text that grows. Blocks that cannot change any more are left alone; only the last one is read again, at most once a frame, and more
 * rarely where that takes long.
 */
export class MarkdownStream {
  constructor(host) {
    this.host = host;
    this.links = {};
    this.tail = "";
    this.tailNodes = [];
    this.pieces = [];
    this.timer = 0;
    this.cost = 0;
  }

  /** The whole text so far. */
  get text() {
    if (this.pieces.length > 1) this.pieces = [this.pieces.join("")];
    return this.pieces[0] ?? "";
  }

  append(delta) {
    if (!delta) return;
    this.pieces.push(delta);
    this.tail += delta.replaceAll("\r", "");
    if (this.timer) return;
    const wait = Math.max(16, this.cost * 8);
    this.timer = setTimeout(() => this.flush(), wait);
  }

  /** Becomes this text: goes on where it only grew, begins anew where it did not. */
  set(text) {
    const known = this.text;
    if (text === known) return;
    if (text.startsWith(known)) {
      this.append(text.slice(known.length));
    } else {
      clearTimeout(this.timer);
      this.host.replaceChildren();
      Object.assign(this, { links: {}, tail: "", tailNodes: [], pieces: [], timer: 0 });
      this.append(text);
    }
  }

  flush() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.tail) return;
    const begun = performance.now();
    if (this.tail.length > LONGEST_BLOCK) this.showPlain();
    else this.showTail();
    this.cost = performance.now() - begun;
  }

  showPlain() {
    const [only] = this.tailNodes;
    if (this.tailNodes.length === 1 && only.classList.contains("raw") && this.tail.startsWith(only.textContent)) {
      only.firstChild.appendData(this.tail.slice(only.textContent.length));
    } else {
      this.replaceTail([plain(this.tail)]);
    }
  }

  showTail() {
    let tokens;
    try {
      tokens = lex(this.tail, this.links);
    } catch {
      // Too deep to be read.
      this.replaceTail([plain(this.tail)]);
      return;
    }
    let last = tokens.length - 1;
    while (last > 0 && (tokens[last].type === "space" || tokens[last].type === "def")) last -= 1;
    const settled = tokens.slice(0, Math.max(0, last));
    if (settled.length) {
      this.replaceTail(blocks(settled, 0));
      this.tailNodes = [];
      this.tail = this.tail.slice(settled.reduce((sum, token) => sum + token.raw.length, 0));
    }
    const [only] = this.tailNodes;
    const open = tokens[last];
    if (open?.type === "code" && only?.classList.contains("code-block") && this.tailNodes.length === 1) {
      const shown = only.querySelector("code");
      const label = only.querySelector(".code-head span");
      const language = (open.lang ?? "").slice(0, 24);
      if (open.text.startsWith(shown.textContent) && shown.firstChild && label.textContent === language) {
        shown.firstChild.appendData(open.text.slice(shown.textContent.length));
        return;
      }
    }
    this.replaceTail(blocks(tokens.slice(Math.max(0, last)), 0));
  }

  replaceTail(nodes) {
    const [first] = this.tailNodes;
    if (first) first.before(...nodes);
    else this.host.append(...nodes);
    for (const node of this.tailNodes) node.remove();
    this.tailNodes = nodes;
  }
}
