// Requests. Everything goes to this server, below the prefix that the page was given.

const PREFIX = document.querySelector('meta[name="ac-prefix"]').content;
/** Where the routes are, also below a path at which a host mounts them. */
const ROOT = new URL(`.${PREFIX}/agent-controller`, document.baseURI).href;
const TOKEN = "ac-token";

export class ApiError extends Error {
  constructor(status, body, fallback) {
    const issue = body?.issues?.[0];
    super(issue ? `${issue.field}: ${issue.message}` : (body?.error ?? fallback));
    this.status = status;
    this.code = body?.code ?? "";
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN),
  set(value, remember) {
    token.clear();
    (remember ? localStorage : sessionStorage).setItem(TOKEN, value);
  },
  clear() {
    sessionStorage.removeItem(TOKEN);
    localStorage.removeItem(TOKEN);
  },
};

/** Called when the server wants to know who asks. */
let onUnauthorized = () => {};
export function whenUnauthorized(listener) {
  onUnauthorized = listener;
}

export function url(path, query = {}) {
  const params = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  return `${ROOT}${path}${params.size ? `?${params}` : ""}`;
}

export function headers(more = {}) {
  const bearer = token.get();
  return bearer ? { authorization: `Bearer ${bearer}`, ...more } : more;
}

export async function request(method, path, { query, body, signal } = {}) {
  let response;
  try {
    response = await fetch(url(path, query), {
      method,
      headers: headers(body === undefined ? {} : { "content-type": "application/json" }),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      credentials: "same-origin",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, null, "The server cannot be reached; nothing was sent.");
  }
  const answer = await response.json().catch(() => null);
  if (response.status === 401) onUnauthorized();
  if (!response.ok) throw new ApiError(response.status, answer, `The server answered ${response.status}.`);
  return answer ?? {};
}

const enc = encodeURIComponent;

/** The routes of one controller. */
export class Controller {
  constructor(id) {
    this.id = id;
    this.path = `/${enc(id)}`;
  }
  modes = async () => (await request("GET", `${this.path}/modes`)).modes;
  models = async () => (await request("GET", `${this.path}/models`, { query: { all: "1" } })).models;
}

/** The routes of one session: what a person reads and does. */
export class SessionApi {
  constructor(controller, resource, scope) {
    Object.assign(this, { controller, resource, scope });
    this.path = `${controller.path}/sessions/${enc(resource)}`;
  }
  call(method, path, options = {}) {
    return request(method, this.path + path, { ...options, query: { sessionScope: this.scope, ...options.query } });
  }
  /** Makes the session, bound to this thread. */
  create(threadId) {
    return request("POST", `${this.controller.path}/sessions`, { body: { resourceId: this.resource, sessionScope: this.scope, threadId } });
  }
  state = (threadId) => this.call("GET", "", { query: { threadId } });
  streamUrl = () => url(`${this.path}/stream`, { events: "all", sessionScope: this.scope });
  threads = async () => (await this.call("GET", "/threads", { query: { all: "1" } })).threads;
  messages(threadId, page, perPage) {
    return this.call("GET", `/threads/${enc(threadId)}/messages`, { query: { page, perPage } });
  }
  send = (message, files) => this.call("POST", "/messages", { body: files.length ? { message, files } : { message } });
  steer = (message) => this.call("POST", "/steer", { body: { message } });
  followUp = (message) => this.call("POST", "/follow-up", { body: { message } });
  abort = () => this.call("POST", "/abort");
  mode = (modeId) => this.call("POST", "/mode", { body: { modeId } });
  model = (modelId) => this.call("POST", "/model", { body: { modelId } });
  rename = (threadId, title) => this.call("PUT", `/threads/${enc(threadId)}`, { body: { title } });
  remove = (threadId) => this.call("DELETE", `/threads/${enc(threadId)}`);
  pending = async (all) => (await this.call("GET", "/pending", { query: all ? { all: "1" } : {} })).pending;
  answer = (pendingId, body) => this.call("POST", `/pending/${enc(pendingId)}`, { body });
  queue = async () => (await this.call("GET", "/queue")).queue;
  reorder = (order) => this.call("PUT", "/queue", { body: { order } });
  unqueue = (messageId) => this.call("DELETE", `/queue/${enc(messageId)}`);
  grants = async () => (await this.call("GET", "/grants")).grants;
  revoke = (grantId) => this.call("DELETE", `/grants/${enc(grantId)}`);
  resources = async () => (await this.call("GET", "/resources")).resourceIds;
}

export async function controllers() {
  const { agentControllers } = await request("GET", "");
  return agentControllers.map(({ id }) => new Controller(id));
}
