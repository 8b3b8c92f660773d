// A graph file of one's own, which the server builds and answers from until it ends.

import {announce, count, el, visible} from "./dom.js";
import {request} from "./api.js";

/** A form that sends a file.  server: what the page knows of it. */
export function uploadBox(server) {
  const fault = el("p", {class: "bad", role: "alert", hidden: true}), note = el("p", {class: "soft", hidden: true});
  const file = el("input", {type: "file", id: "graph-file", required: true});
  const text = el("input", {type: "text", id: "graph-name", maxlength: 64, pattern: "[\\p{L}\\p{N}_.\\-]{1,64}", required: true, autocomplete: "off", title: "Letters, digits, _, . and -"});
  const button = el("button", {class: "primary"}, "Read this graph");
  file.addEventListener("change", () => { text.value = (file.files[0]?.name ?? "").replace(/\..*$/, "").replace(/[^\p{L}\p{N}_.-]+/gu, "-").slice(0, 64); });
  async function send() {
    const [chosen] = file.files, name = text.value.trim();
    if (chosen.size > server.upload_mb * 2 ** 20) { say(`${visible(chosen.name, 80)} has ${Math.ceil(chosen.size / 2 ** 20).toLocaleString("en")} MB, and this server takes ${server.upload_mb}; it takes more with --upload-mb.`); return; }
    button.disabled = true; fault.hidden = true; note.hidden = false;
    note.textContent = `Reading ${visible(chosen.name, 80)} …`; announce(note.textContent);
    try {
      const made = await request(`/graphs?${new URLSearchParams({name, file: chosen.name})}`, chosen, undefined, "");
      announce(`${visible(name, 64)} is read: ${count(made.triples, "fact")}`);
      location.assign(made.address);
    } catch (caught) { say(caught.message); }
    note.hidden = true; button.disabled = false;
  }
  function say(message) { fault.textContent = visible(message, 600); fault.hidden = false; }
  const form = el("form", {class: "name-form", "aria-label": "Add a graph", onsubmit: event => { event.preventDefault(); if (!button.disabled) send(); }},
    el("label", {for: file.id}, "A graph file: a table, Turtle, N-Triples, GraphML and others"), file, el("label", {for: text.id}, "What it is called here"), text, el("div", {class: "buttons"}, button), note, fault);
  return el("details", {class: "card fold"}, el("summary", {}, "Ask a graph of your own"), form,
    el("p", {class: "soft"}, "Whoever reaches this server can ask it, until the server ends. ", el("code", {}, "kgqa serve --graph NAME=FILE"), " serves it each time."));
}
