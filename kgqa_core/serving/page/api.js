// Requests to this server.  A token, where it wants one, is kept in this tab only and sent as `Authorization`.

import {BASE, el, stored, store} from "./dom.js";

const KEY = "kgqa-token";
let asking = null;

export class Fault extends Error {
  constructor(message, status) { super(message); this.status = status; }
}

/** JSON of a reply.  body: a record or a file, makes it a POST.  Raises Fault with what the server says, or that it is not there. */
export async function request(path, body, signal, base = BASE) {
  for (;;) {
    const headers = {}, token = stored(KEY);
    if (token) headers.Authorization = `Bearer ${token}`;
    const file = body instanceof Blob;
    if (body !== undefined) headers["Content-Type"] = file ? "application/octet-stream" : "application/json";
    let reply;
    try {
      reply = await fetch(base + path, {method: body === undefined ? "GET" : "POST", headers, signal, credentials: "omit", redirect: "error",
        body: body === undefined || file ? body : JSON.stringify(body)});
    } catch (fault) {
      if (fault.name === "AbortError") throw fault;
      throw new Fault("The server does not answer. Is kgqa serve still running?", 0);
    }
    if (reply.status === 401) { await login(token !== null); continue; }
    const read = await reply.json().catch(() => null);
    if (reply.ok && read !== null) return read;
    throw new Fault(read?.error?.message ?? `The server answered ${reply.status} and nothing else.`, reply.status);
  }
}

export function get(path, query = {}, signal) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return request(given.length ? `${path}?${new URLSearchParams(given)}` : path, undefined, signal);
}

/** Waits until somebody typed a token.  wrong: there was one, and it is not the server's. */
function login(wrong) {
  asking ??= new Promise(done => {
    const field = el("input", {type: "password", id: "token", autocomplete: "off", required: true, "aria-describedby": "token-note"});
    const dialog = el("dialog", {class: "card", "aria-labelledby": "login-title"},
      el("form", {method: "dialog", onsubmit: event => {
        event.preventDefault();
        const typed = field.value.trim();
        if (!/^[\x21-\x7e]+$/.test(typed)) return;
        store(KEY, typed);
        asking = null; dialog.close(); dialog.remove(); done();
      }},
        el("h2", {id: "login-title"}, "Token"),
        el("p", {id: "token-note"}, wrong ? "This is not the token of this server. " : "This server asks for its token: what its administrator set as KGQA_SERVE_TOKEN. ",
          "It stays in this tab until you close it."),
        el("label", {for: "token"}, "Token"), field,
        el("button", {class: "primary"}, "Continue")));
    dialog.addEventListener("close", () => { if (asking) { dialog.showModal(); field.focus(); } });  // Escape: there is nothing behind it
    document.body.append(dialog);
    dialog.showModal();
    field.focus();
  });
  return asking;
}
