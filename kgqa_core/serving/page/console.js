// A console that only reads: logical forms, SPARQL and SQL, with the limits of the server; the address has what is asked.

import {BASE, announce, count, el, triple, visible} from "./dom.js";
import {get, request} from "./api.js";
import {table, takeAlong} from "./table.js";

const LANGUAGES = {
  form: {name: "Logical form", example: type => `(COUNT (TYPE <${type}>))`, note: "Names with spaces stand in <angle brackets>."},
  sparql: {name: "SPARQL", example: type => `SELECT ?x WHERE { ?x a <${type}> }`, note: "A SELECT of one variable, or ASK, that a logical form can say; keys and one-word labels stand in <angle brackets>."},
  sql: {name: "SQL", example: () => "SELECT key, kind FROM entities LIMIT 10", note: "DuckDB's SQL over the tables of the graph; SHOW TABLES lists them. Nothing can be changed."},
};

export function consolePage(main, server) {
  if (!server.graph_view) { main.replaceChildren(el("p", {class: "bad"}, "The system that answers here reads no graph, so there is nothing to look up.")); return; }
  const asked = new URLSearchParams(location.search), given = Object.keys(LANGUAGES).find(one => asked.has(one)) ?? "form";
  let pending = null, type = "country";
  const language = el("select", {id: "language"}, Object.entries(LANGUAGES).map(([key, one]) => el("option", {value: key, selected: key === given || null}, one.name)));
  const input = el("textarea", {id: "statement", rows: 5, maxlength: 20_000, spellcheck: "false", autocomplete: "off", class: "code", "aria-describedby": "statement-note"});
  const rows = el("input", {id: "rows", type: "number", min: 1, max: 1000, value: "100"});
  const run = el("button", {class: "primary"}, "Run"), note = el("p", {id: "statement-note", class: "soft"}), result = el("section", {class: "turns", "aria-label": "Result"});
  const form = el("form", {class: "card ask", onsubmit: event => { event.preventDefault(); if (pending) pending.abort(); else ask(); }},
    el("div", {class: "options"}, el("span", {}, el("label", {for: "language"}, "Language "), language), el("span", {}, el("label", {for: "rows"}, "Rows at most "), rows)),
    el("label", {for: "statement", class: "hidden-text"}, "Statement"), input, note, el("div", {class: "buttons"}, run));
  const describe = () => { const one = LANGUAGES[language.value]; input.placeholder = one.example(type); note.textContent = `${one.note} Ctrl and Enter run it; it ends after 10 seconds.`; };
  get("/page/start").then(({types}) => { type = types.find(one => /^\S+$/.test(one.type))?.type ?? type; describe(); }).catch(() => { /* the example is one of another graph */ });
  language.addEventListener("change", describe);
  input.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); if (!pending) ask(); }
    else if (event.key === "Escape" && pending) { event.preventDefault(); pending.abort(); }
  });
  input.value = (asked.get(given) ?? "").slice(0, 20_000);  // a link fills it in, and runs nothing
  describe();
  document.title = `Console – ${visible(server.graph, 60)} – kgqa`;
  main.replaceChildren(el("h1", {}, "Console"), form, result);
  input.focus({preventScroll: true});

  async function ask() {
    input.value = input.value.trim() || input.placeholder;
    const text = input.value, limit = Math.min(1000, Math.max(1, Number.parseInt(rows.value, 10) || 100)), kind = language.value;
    history.replaceState(null, "", `${BASE}/console?${new URLSearchParams({[kind]: text})}`);
    pending = new AbortController();
    run.textContent = "Stop"; result.setAttribute("aria-busy", "true"); announce("Running");
    try {
      const found = await (kind === "sql" ? request("/sql", {statement: text, limit}, pending.signal) : request("/query", {form: text, limit}, pending.signal));
      result.replaceChildren(kind === "sql" ? rowsOf(found) : answersOf(found));
    } catch (fault) {
      if (fault.name === "AbortError") announce("Stopped");
      else { result.replaceChildren(el("p", {class: "card bad", role: "alert"}, visible(fault.message, 1500))); announce(`Error: ${visible(fault.message, 300)}`); }
    }
    pending = null; run.textContent = "Run"; result.removeAttribute("aria-busy");
  }
}

function rowsOf(found) {
  announce(count(found.rows.length, "row"));
  return el("div", {class: "card"}, el("p", {class: "soft"}, `${count(found.rows.length, "row")}${found.more ? ", and there are more" : ""} · ${found.seconds.toFixed(2)} s`),
    found.rows.length ? table(found.columns, found.rows, "Rows of the statement") : null, takeAlong(found.columns, found.rows, found, "rows"));
}

function answersOf(found) {
  const value = found.value === null ? null : typeof found.value === "boolean" ? (found.value ? "yes" : "no") : `${found.value.toLocaleString("en")} ${found.unit ?? ""}`.trim();
  const columns = found.values.length ? ["name", "value"] : ["answer", "key"];
  const rows = found.answers.map((node, place) => found.values.length ? [{...node, name: node.name.slice(0, -found.values[place].length - 2)}, found.values[place]] : [node, node.key]);
  announce(value ?? count(found.answers.length, "answer"));
  return el("div", {class: "card"}, value === null ? el("p", {class: "soft"}, `${count(found.answers.length, "answer")}${found.more ? ", and there are more answers or triples" : ""} · ${found.seconds.toFixed(2)} s`)
    : el("p", {class: "answers"}, value), found.why ? el("p", {class: "soft"}, visible(found.why)) : null,
    rows.length ? table(columns, rows, "Answers") : null,
    el("pre", {tabindex: "0", "aria-label": "Logical form"}, visible(found.form, 6000)),
    found.proof.length ? el("details", {}, el("summary", {}, `Proof: ${count(found.proof.length, "triple")}`), el("ul", {class: "facts"}, found.proof.map(fact => el("li", {}, triple(fact))))) : null,
    takeAlong(value === null ? columns : ["value"], value === null ? rows : [[found.value]], found, "answers"));
}
