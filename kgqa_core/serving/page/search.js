// A field that suggests entities while one types (the combobox pattern of WAI-ARIA); typing errors are tolerated.

import {announce, count, el, visible} from "./dom.js";
import {get} from "./api.js";

const WAIT = 180, SHOWN = 8;
let made = 0;

/** The field, its list and label.  choose: called with a match.  submit: with the text, where none is chosen. */
export function entityField({label, placeholder = "", choose, submit = null, hideLabel = true}) {
  const id = `field-${made += 1}`;
  let matches = [], active = -1, timer = 0, pending = null;
  const list = el("ul", {id: `${id}-list`, role: "listbox", class: "suggestions", hidden: true, "aria-label": label});
  const input = el("input", {type: "search", id, placeholder, autocomplete: "off", spellcheck: "false", role: "combobox", maxlength: 300,
    "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": `${id}-list`});

  function close() { list.hidden = true; active = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); }
  function mark(place) {
    active = place;
    [...list.children].forEach((one, own) => one.setAttribute("aria-selected", String(own === place)));
    if (place >= 0) { input.setAttribute("aria-activedescendant", `${id}-${place}`); list.children[place].scrollIntoView({block: "nearest"}); }
    else input.removeAttribute("aria-activedescendant");
  }
  function take(match) { stop(); close(); input.value = ""; choose(match); }
  function stop() { clearTimeout(timer); pending?.abort(); pending = null; }
  function show(note = null) {
    list.replaceChildren(...(note ? [el("li", {class: "soft note", role: "presentation"}, note)] : matches.map((match, place) =>
      el("li", {id: `${id}-${place}`, role: "option", "aria-selected": "false", onpointerdown: event => event.preventDefault(), onclick: () => take(match)},
        el("bdi", {}, visible(match.name || match.key, 80)),
        el("span", {class: "soft"}, [match.types.slice(0, 2).map(type => visible(type, 30)).join(", "), count(match.degree, "fact")].filter(Boolean).join(" · "),
          match.how === "typo" ? " · similar" : "")))));
    list.hidden = false; active = -1;
    input.setAttribute("aria-expanded", String(!note));
  }
  async function look() {
    stop();
    const text = input.value.trim();
    if (!text) { matches = []; close(); return; }
    pending = new AbortController();
    const {signal} = pending;
    try {
      ({matches} = await get("/entities", {q: text, limit: SHOWN}, signal));
      if (signal.aborted) return;
      show(matches.length ? null : "Nothing in this graph is called so.");
      announce(matches.length ? `${count(matches.length, "suggestion")}` : "No suggestion");
    } catch (fault) { if (fault.name !== "AbortError") { matches = []; show(fault.message); } }
  }
  input.addEventListener("input", () => { stop(); timer = setTimeout(look, WAIT); });
  input.addEventListener("focus", () => { if (input.value.trim() && list.hidden) look(); });
  input.addEventListener("blur", () => { stop(); close(); });
  input.addEventListener("keydown", event => {
    if (event.isComposing) return;
    if (event.key === "Escape" && !list.hidden) { event.preventDefault(); event.stopPropagation(); close(); }
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden || !matches.length) return;
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark((active + step + matches.length + (active < 0 && step < 0 ? 1 : 0)) % matches.length);
    } else if (event.key === "Enter") {
      const text = input.value.trim();
      if (!text) return;
      event.preventDefault();
      if (active >= 0 && !list.hidden) take(matches[active]);
      else if (submit) { stop(); close(); input.value = ""; submit(text); }
      else if (matches.length && !list.hidden) take(matches[0]);
    }
  });
  return {input, box: el("div", {class: "field"}, el("label", {for: id, class: hideLabel ? "hidden-text" : null}, label), input, list)};
}
