// Names that people give to what the graph has: a form, what was changed, and how it is undone.

import {announce, el, name, visible} from "./dom.js";
import {get, request} from "./api.js";
import {entityField} from "./search.js";

const SECTIONS = {relations: "a relation", types: "a type", entities: "a thing", values: "a value"};
let made = 0;

/** A line of a names file: JSON is YAML, too. */
const line = (section, key, word) => JSON.stringify({[section]: {[key]: [word]}});

/** Gives names, or takes them out.  Raises Fault. */
export const give = (lines, remove = false) => request("/names", {lines, remove});

/** What a name that was given says, with a button that undoes it.  undone: is called then. */
export function given({word, means, lines, file}, undone) {
  const note = el("p", {class: "given", role: "group", "aria-label": "A name that was given"}, "“", name(word, 120), "” now means “", name(means, 120), "”; it is in ", el("code", {}, file), " of the home. ");
  note.append(el("button", {type: "button", class: "plain small", onclick: async event => {
    event.target.disabled = true;
    try { await give(lines, true); announce("Undone"); undone(); }
    catch (fault) { event.target.disabled = false; note.append(el("span", {class: "bad"}, visible(fault.message, 400))); }
  }}, "Undo"));
  return note;
}

/** A form that says what a word means.  word: that was not understood.  done: is called with what `given` shows.  thing: the one that is named. */
export function nameForm(word, schema, done, thing = null) {
  const id = `name-${made += 1}`, fault = el("p", {class: "bad", role: "alert", hidden: true}), target = el("div", {class: "field"});
  const text = el("input", {type: "text", id: `${id}-word`, value: word, maxlength: 200, required: true, autocomplete: "off"});
  const kind = el("select", {id: `${id}-kind`}, Object.entries(SECTIONS).map(([key, one]) => el("option", {value: key}, one)));
  const button = el("button", {class: "primary"}, "Give this name");
  let key = null, means = null;
  const known = thing ? {} : {relations: schema.relations.map(one => [one.key, one.name]), types: schema.types.map(one => [one.type, one.type])};
  const form = el("form", {class: "name-form", "aria-label": "Give a name", onsubmit: event => { event.preventDefault(); send(); }},
    el("label", {for: text.id}, thing ? "Another name" : "In questions"), text, ...(thing ? [] : [el("label", {for: kind.id}, "means"), kind, el("span", {}, "which the graph calls"), target]), el("div", {class: "buttons"}, button), fault);

  function field() {
    const label = `What the graph calls ${SECTIONS[kind.value]}`;
    key = thing?.key ?? null; means = thing?.name ?? null;
    if (thing) return;
    if (kind.value === "entities") {
      const chosen = el("p", {class: "soft"});
      const search = entityField({label, placeholder: "Search entities", choose: match => { key = match.key; means = match.name || match.key; chosen.replaceChildren("chosen: ", name(means, 120)); search.input.required = false; }});
      search.input.required = true;
      target.replaceChildren(search.box, chosen);
      return;
    }
    const list = el("datalist", {id: `${id}-list`}, (known[kind.value] ?? []).map(([, shown]) => el("option", {value: shown})));
    const input = el("input", {type: "text", id: `${id}-target`, list: list.id, maxlength: 1000, required: true, autocomplete: "off", "aria-label": label});
    input.addEventListener("input", () => {
      means = input.value.trim();
      key = (known[kind.value] ?? []).find(([own, shown]) => [own, shown].some(one => one.toLowerCase() === means.toLowerCase()))?.[0] ?? means;
    });
    target.replaceChildren(input, list);
  }
  async function send() {
    if (!key || !text.value.trim()) return;
    const lines = line(thing ? "entities" : kind.value, key, text.value.trim());
    button.disabled = true; fault.hidden = true; announce("Giving the name");
    try {
      const reply = await give(lines);
      announce(`“${visible(text.value, 120)}” now means “${visible(means, 120)}”`);
      done({word: text.value.trim(), means, lines, file: reply.file, fault: reply.active ? null : reply.fault});
    } catch (caught) { fault.textContent = visible(caught.message, 600); fault.hidden = false; }
    button.disabled = false;
  }
  kind.addEventListener("change", field);
  field();
  return form;
}

/** The names of the home: what there is, each with a button that takes it out, and a form for more. */
export function namesBox(schema) {
  const list = el("div"), box = el("details", {class: "card fold"}, el("summary", {}, "Names that were given here"), list);
  async function draw(latest = null) {
    try {
      const reply = await get("/names"), rows = Object.entries(reply.names).flatMap(([section, keys]) => Object.entries(keys).flatMap(([key, words]) => words.map(word => ({section, key, word}))));
      const label = ({section, key}) => (section === "relations" ? schema.relations.find(one => one.key === key)?.name : null) ?? key;
      list.replaceChildren(...[latest ? given(latest, () => draw()) : null,
        rows.length ? el("ul", {class: "matches"}, rows.map(row => el("li", {}, "“", name(row.word, 120), "” means ", SECTIONS[row.section], ", “", name(label(row), 120), "” ",
          reply.writable ? el("button", {type: "button", class: "plain small", "aria-label": `Take out ${visible(row.word, 120)}`, onclick: async () => { try { await give(line(row.section, row.key, row.word), true); } catch (fault) { announce(fault.message); } draw(); }}, "Take out") : null)))
          : el("p", {class: "soft"}, "None yet."),
        reply.fault ? el("p", {class: "bad"}, visible(reply.fault, 600)) : null,
        reply.writable ? nameForm("", schema, draw) : el("p", {class: "soft"}, "They are not given over this server; put them into a file of ", el("code", {}, "--names"), ", or start it with ", el("code", {}, "--allow-naming"), "."),
        el("p", {class: "soft"}, "They are kept in ", el("code", {}, reply.file), " of the home, and everybody who asks here has them.")].filter(Boolean));
    } catch (fault) { list.replaceChildren(el("p", {class: "bad"}, visible(fault.message, 400))); }
  }
  box.addEventListener("toggle", () => { if (box.open && !list.children.length) draw(); });
  return box;
}
