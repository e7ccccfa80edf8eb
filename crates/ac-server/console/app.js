// The page: what is chosen, what is shown, and what a person does with it.

import { SessionApi, controllers, token, whenUnauthorized } from "./api.js";
import { Composer } from "./composer.js";
import { Details } from "./details.js";
import { announce, el, icon, randomId, toast } from "./dom.js";
import { ThreadView } from "./session.js";
import { Threads } from "./threads.js";
import { deed } from "./tools.js";
import { Transcript } from "./transcript.js";
import { Waits, headline, kindWord } from "./waits.js";

const $ = (id) => document.getElementById(id);
const POLL = 8000;

const state = { controllers: [], controller: null, resource: null, modes: [], models: [], view: null, draft: {}, pending: [] };

/** What waits on other threads than the one that is shown. */
const elsewhere = () => state.pending.filter((wait) => ownerOf(wait)?.id !== state.view?.threadId);

// What is chosen stands in the address, so that a reload and a link lead to the same place.
const place = () => new URLSearchParams(location.hash.slice(1));
function remember() {
  const params = new URLSearchParams({ c: state.controller?.id ?? "", r: state.resource ?? "" });
  if (state.view) params.set("t", state.view.threadId);
  history.replaceState(null, "", `#${params}`);
}

const api = (scope) => new SessionApi(state.controller, state.resource, scope);
const run = (what) => async (...args) => {
  try {
    return await what(...args);
  } catch (error) {
    if (error.status !== 401) toast(error.message, "error");
    return undefined;
  }
};

/** Once, a while after the last time it was asked for. */
const soon = (what, wait) => {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(what, wait);
  };
};

// ---------------------------------------------------------------- parts of the page

for (const [id, name] of Object.entries({ "open-sidebar": "menu", "close-sidebar": "close", "open-details": "panel", "close-details": "close", attach: "clip", send: "send", stop: "stop" })) $(id).append(icon(name));
$("new-thread").append(icon("plus"), "New thread");

const transcript = new Transcript({ scroller: $("scroller"), list: $("transcript"), latest: $("latest") });
const composer = new Composer({ form: $("composer"), onSend: run(send), onStop: run(stop) });
const details = new Details({ host: $("details-body"), session: () => state.view.api, reload: () => state.view?.load("queue", "grants") });
const waits = new Waits({
  panel: $("wait"),
  answer: async (wait, body) => {
    // What another session started is answered there.
    const session = wait.sessionScope === undefined ? state.view.api : api(wait.sessionScope ?? undefined);
    await session.answer(wait.id, body);
    if (session.scope !== state.view.api.scope) state.view.load("pending");
    if (body.always) state.view.load("grants");
    reloadThreads();
  },
  planText: (path) => transcript.fileText(path),
});
const threads = new Threads({
  list: $("threads"),
  onOpen: run(async (thread) => {
    showSidebar(false);
    $("message").focus();
    await openThread(thread);
  }),
  onRename: run(async (thread, title) => {
    await (await begun(thread)).rename(thread.id, title);
    await reloadThreads();
  }),
  onDelete: run(async (thread) => {
    const session = await begun(thread);
    if (state.view?.threadId === thread.id) newThread();
    await session.remove(thread.id);
    announce("Deleted.");
    await reloadThreads();
  }),
});

// ---------------------------------------------------------------- threads

/**
 * The session of a thread. Each has one of its own, so that looking at one never stops another; one that a client made in a session that
 * moves between threads is looked at through that session while it is there.
 */
async function sessionOf(thread) {
  const scope = thread.sessionScope ?? undefined;
  if (thread.sessionScope === undefined || scope === thread.id) return api(thread.id);
  const { threadId } = await api(scope).state();
  return api(threadId === thread.id ? scope : thread.id);
}

/** The same, begun and bound to the thread. */
async function begun(thread) {
  const session = await sessionOf(thread);
  await session.create(thread.id);
  return session;
}

/** The thread on whose page a wait is answered: a subagent works on a thread that is not listed. */
const ownerOf = (wait) => threads.find(wait.threadId) ?? threads.threads.find((thread) => thread.sessionScope && thread.sessionScope === wait.sessionScope);

/** A list that cannot be had right now is no news: the connection says it. */
async function reloadThreads() {
  try {
    await readThreads();
  } catch (error) {
    if (error.status && error.status !== 401 && error.status < 500) toast(error.message, "error");
  }
}

async function readThreads() {
  if (!state.controller) return;
  const [list, pending] = await Promise.all([api().threads(), api().pending(true)]);
  threads.threads = list;
  state.pending = pending.filter((wait) => ownerOf(wait));
  threads.set(list, new Set(state.pending.map((wait) => ownerOf(wait).id)));
  drawTitle();
  drawWaiting();
}

function closeView() {
  state.view?.close();
  state.view = null;
}

async function openThread(thread) {
  if (state.view?.threadId === thread.id) return state.view;
  closeView();
  threads.select(thread.id);
  const turn = {};
  state.opening = turn;
  const session = await sessionOf(thread);
  // Somebody was faster.
  if (state.opening !== turn) return state.view;
  state.view = new ThreadView({
    api: session,
    threadId: thread.id,
    transcript,
    on: {
      connection: drawConnection,
      change: drawView,
      threads: () => {
        reloadSoon();
        // A run is closed a moment after its last event.
        reloadLater();
      },
      isListed: (id) => Boolean(threads.find(id)),
      modeName: (id) => state.modes.find((mode) => mode.id === id)?.name ?? id,
      gone: () => {
        toast("This thread was deleted.");
        newThread();
        reloadThreads();
      },
      failed: (error) => {
        if (error.status === 401) return;
        toast(error.message, "error");
        newThread();
        reloadThreads();
      },
    },
  });
  // What works or waits has begun once; this process may not know it yet.
  if (thread.state === "active") state.view.api.create(thread.id).catch(() => {});
  remember();
  drawAll();
  return state.view;
}

const reloadSoon = soon(reloadThreads, 300);
const reloadLater = soon(reloadThreads, 2000);

function newThread() {
  closeView();
  state.opening = null;
  transcript.clear();
  waits.set([]);
  state.draft = {};
  threads.select(null);
  remember();
  drawConnection("none");
  drawAll();
  showSidebar(false);
  $("message").focus();
}

// ---------------------------------------------------------------- what a person does

async function send(text, files, how) {
  let { view } = state;
  if (!view) {
    const id = `thread-${randomId()}`;
    const session = api(id);
    await session.create(id);
    if (state.draft.mode) await session.mode(state.draft.mode);
    if (state.draft.model) await session.model(state.draft.model);
    view = await openThread({ id, title: "", state: "idle", sessionScope: id });
    await view.ready;
  } else {
    await view.api.create(view.threadId);
  }
  transcript.toEnd();
  if (how === "after") await view.api.followUp(text);
  else if (how === "instead") await view.api.steer(text);
  else await view.api.send(text, files);
  entitle(view, text);
  view.load("queue");
  return true;
}

/** A thread without a title is called by the first words that were said in it. */
const entitle = run(async (view, text) => {
  const title = text.trim().split("\n", 1)[0].slice(0, 80);
  if (title && !threads.find(view.threadId)?.title) await view.api.rename(view.threadId, title);
  await reloadThreads();
});

async function stop() {
  await state.view?.api.abort();
  announce("Stopping.");
}

$("mode").addEventListener("change", run(async () => {
  const id = $("mode").value;
  if (!state.view) {
    state.draft.mode = id;
    return;
  }
  try {
    await state.view.api.create(state.view.threadId);
    await state.view.api.mode(id);
  } finally {
    await state.view?.load("state");
  }
}));

$("model").addEventListener("change", run(async () => {
  const id = $("model").value;
  if (!state.view) {
    state.draft.model = id;
    return;
  }
  try {
    await state.view.api.create(state.view.threadId);
    await state.view.api.model(id);
  } finally {
    await state.view?.load("state");
  }
}));

$("new-thread").addEventListener("click", newThread);
$("earlier").addEventListener("click", run(() => state.view?.earlier()));
$("waiting").addEventListener("click", run(async () => {
  if (waits.shown) return waits.focus();
  const [next] = elsewhere();
  if (!next) return undefined;
  const view = await openThread(ownerOf(next));
  await view.ready;
  return waits.focus();
}));
$("controller").addEventListener("change", run(() => choose($("controller").value, null)));
$("resource").addEventListener("change", run(() => choose(state.controller.id, $("resource").value)));
$("sign-out").addEventListener("click", () => {
  token.clear();
  location.reload();
});

// ---------------------------------------------------------------- drawing

function drawAll() {
  drawTitle();
  drawView(state.view);
}

function drawTitle() {
  const thread = state.view && threads.find(state.view.threadId);
  const title = state.view ? threads.title(thread) : "New thread";
  $("title").textContent = title;
  const count = (state.view?.waits.length ?? 0) + elsewhere().length;
  document.title = `${count ? `(${count}) ` : ""}${title} · Console`;
}

function drawView(view) {
  if (view !== state.view) return;
  $("welcome").hidden = Boolean(view);
  const running = Boolean(view?.view.isRunning);
  const open = view?.waits ?? [];
  waits.set(open);
  composer.set({ running: running || open.length > 0, approvals: open.some((wait) => wait.kind === "approval") });
  fill($("mode"), state.modes.map((mode) => [mode.id, mode.name ?? mode.id]), view ? view.mode : (state.draft.mode ?? state.fresh?.modeId));
  const model = view ? view.model : (state.draft.model ?? state.fresh?.modelId);
  fill($("model"), state.models.map((one) => [one.id, one.hasApiKey ? one.id : `${one.id} (no key)`]), model);
  $("earlier").hidden = !view?.hasEarlier;
  const busy = running && !open.length;
  $("working").hidden = !busy;
  if (busy) $("working-text").textContent = activity(view.view);
  const status = open.length ? "Waiting for you" : running ? "Working" : "";
  if ($("status").textContent !== status) $("status").textContent = status;
  $("status").dataset.state = open.length ? "waiting" : running ? "running" : "idle";
  threads.now(view?.synced ? view.threadId : undefined, open.length ? "waiting" : running ? "active" : "idle");
  details.set({
    tasks: view?.view.tasks ?? [],
    queue: (view?.queue ?? []).filter((item) => item.threadId === view.threadId),
    usage: view?.view.tokenUsage ?? null,
    files: view?.view.modifiedFiles ?? {},
    grants: view?.grants ?? [],
    yolo: view?.settings.yolo === true,
  });
  drawWaiting();
}

/** What is being done, in a word or two. */
function activity(view) {
  const tools = Object.values(view.activeTools).filter((tool) => tool.status === "running");
  if (tools.length) return deed(tools.at(-1).name, tools.at(-1).args);
  const preparing = Object.values(view.toolInputBuffers).at(-1);
  return preparing ? `Preparing ${preparing.toolName}` : "Working";
}

function drawWaiting() {
  const here = state.view?.waits.filter((wait) => !waits.sent.has(wait.id)) ?? [];
  const bar = $("waiting");
  const all = [...here, ...elsewhere()];
  const total = all.length;
  const key = all.map((wait) => wait.id).join("\n");
  bar.hidden = !total;
  if (bar.dataset.key === key) return;
  bar.dataset.key = key;
  if (!total) return;
  const [first] = all;
  const more = total > 1 ? `${total - 1} more` : "";
  const where = here.length ? "" : `in “${threads.title(ownerOf(first))}”: `;
  bar.replaceChildren(
    el("span", { class: "dot", data: { state: "waiting" }, "aria-hidden": "true" }),
    el("strong", { text: "Waiting for you" }),
    el("span", { class: "waiting-what", text: `${where}${headline(first)}` }),
    el("span", { class: "badge", text: more, hidden: !more }),
  );
  bar.setAttribute("aria-label", `Waiting for you: ${kindWord[first.kind] ?? ""} ${where}${headline(first)}${more ? `, and ${more}` : ""}. Go there.`);
  drawTitle();
}

let countdown;
function drawConnection(status, detail) {
  clearInterval(countdown);
  const bar = $("connection");
  bar.dataset.state = status;
  if (status === "waiting") {
    const until = Date.now() + detail;
    const say = () => {
      const seconds = Math.max(0, Math.round((until - Date.now()) / 1000));
      bar.firstChild.textContent = `No connection. Trying again${seconds > 1 ? ` in ${seconds} s` : " now"}.`;
    };
    bar.replaceChildren(el("span", {}), el("button", { type: "button", class: "link-button", text: "Try now", on: { click: () => state.view?.stream.retry() } }));
    say();
    countdown = setInterval(say, 1000);
    bar.hidden = false;
  } else if (status === "live" || status === "none" || status === "refused") {
    bar.hidden = true;
  }
  document.body.dataset.connection = status;
}

function fill(select, options, value) {
  const all = value && !options.some(([id]) => id === value) ? [...options, [value, value]] : options;
  const key = JSON.stringify(all);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...all.map(([id, label]) => el("option", { value: id, text: label })));
  }
  select.closest("label").hidden = !all.length;
  if (value !== undefined && select.value !== value && document.activeElement !== select) select.value = value;
}

// ---------------------------------------------------------------- side panels, theme, keys

const narrow = matchMedia("(max-width: 820px)");

function showSidebar(open) {
  document.body.classList.toggle("sidebar-open", open);
  $("sidebar").inert = narrow.matches && !open;
  if (open) $("new-thread").focus();
}

function showDetails(open, focus = true) {
  document.body.classList.toggle("details-open", open);
  $("open-details").setAttribute("aria-expanded", String(open));
  $("details").inert = !open;
  if (focus) $(open ? "close-details" : "open-details").focus();
}

$("open-sidebar").addEventListener("click", () => showSidebar(true));
$("close-sidebar").addEventListener("click", () => {
  showSidebar(false);
  $("open-sidebar").focus();
});
$("open-details").addEventListener("click", () => showDetails(!document.body.classList.contains("details-open")));
$("close-details").addEventListener("click", () => showDetails(false));
$("scrim").addEventListener("click", () => {
  showSidebar(false);
  showDetails(false, false);
});
narrow.addEventListener("change", () => showSidebar(false));

const THEMES = { auto: ["auto", "light"], light: ["sun", "dark"], dark: ["moon", "auto"] };
function drawTheme() {
  const theme = document.documentElement.dataset.theme in THEMES ? document.documentElement.dataset.theme : "auto";
  const [drawing, next] = THEMES[theme];
  const label = `Colours: ${theme === "auto" ? "as the system" : theme}. Change to ${next === "auto" ? "as the system" : next}.`;
  $("theme").replaceChildren(icon(drawing));
  $("theme").setAttribute("aria-label", label);
  $("theme").title = label;
}
$("theme").addEventListener("click", () => {
  const [, next] = THEMES[document.documentElement.dataset.theme] ?? THEMES.auto;
  document.documentElement.dataset.theme = next;
  localStorage.setItem("ac-theme", next);
  drawTheme();
});

const KEYS = {
  w: () => $("waiting").click(),
  n: newThread,
  m: () => $("message").focus(),
  s: () => $("stop").hidden || $("stop").click(),
};
addEventListener("keydown", (event) => {
  if (event.altKey && !event.ctrlKey && !event.metaKey && event.code.startsWith("Key")) {
    const action = KEYS[event.code.slice(3).toLowerCase()];
    if (action && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      action();
    }
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (document.body.classList.contains("sidebar-open")) $("close-sidebar").click();
    else if (document.body.classList.contains("details-open") && $("scrim").checkVisibility()) showDetails(false);
  }
});

// ---------------------------------------------------------------- who asks

whenUnauthorized(() => {
  const dialog = $("token-dialog");
  if (dialog.open) return;
  closeView();
  transcript.clear();
  $("token-failure").hidden = !token.get();
  $("token-failure").textContent = "The server does not know this token.";
  token.clear();
  dialog.showModal();
  $("token").focus();
});
// Without a token there is nothing behind the dialog.
$("token-dialog").addEventListener("cancel", (event) => event.preventDefault());
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set($("token").value.trim(), $("remember").checked);
  $("token").value = "";
  $("token-dialog").close();
  begin();
});

// ---------------------------------------------------------------- the beginning

/** A resource of this person: the one of the address, one that there is, else a new one. */
async function findResource(wanted) {
  const probe = new SessionApi(state.controller, `console-${randomId(8)}`);
  const known = await probe.resources();
  if (wanted && (known.includes(wanted) || !token.get())) return [wanted, known];
  if (known.length) return [known.includes("local") ? "local" : known[0], known];
  return [token.get() ? `console-${randomId(8)}` : "local", known];
}

async function choose(controllerId, resource, threadId) {
  closeView();
  state.controller = state.controllers.find((one) => one.id === controllerId) ?? state.controllers[0];
  const [chosen, known] = await findResource(resource);
  state.resource = chosen;
  fill($("controller"), state.controllers.map((one) => [one.id, one.id]), state.controller.id);
  $("controller-field").hidden = state.controllers.length < 2;
  fill($("resource"), [...new Set([chosen, ...known])].toSorted().map((id) => [id, id]), chosen);
  $("resource-field").hidden = new Set([chosen, ...known]).size < 2;
  [state.modes, state.models, state.fresh] = await Promise.all([
    state.controller.modes(),
    state.controller.models(),
    // A session that never begins tells how one would begin.
    api(`console-${randomId(8)}`).state(),
  ]);
  await readThreads();
  const thread = threadId && threads.find(threadId);
  if (thread) await openThread(thread);
  else newThread();
}

async function begin() {
  try {
    $("sign-out").hidden = !token.get();
    state.controllers = await controllers();
    const wanted = place();
    await choose(wanted.get("c"), wanted.get("r"), wanted.get("t"));
  } catch (error) {
    if (error.status === 401) return;
    drawConnection("none");
    toast(error.message, "error");
    setTimeout(begin, 3000);
  }
}

$("welcome").append(
  el("h2", { text: "What should be done?" }),
  el("p", { text: "Describe a task. The agent asks before it does anything that needs your permission, and what waits for you is shown at the top." }),
);
setInterval(() => document.visibilityState === "visible" && !$("token-dialog").open && state.controller && reloadQuietly(), POLL);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && state.controller && reloadQuietly());

/** Not while there is no connection. */
function reloadQuietly() {
  if (!["waiting", "connecting"].includes(document.body.dataset.connection)) reloadThreads();
}

drawTheme();
showSidebar(false);
showDetails(!narrow.matches && innerWidth >= 1240, false);
begin();
