// The conversation.  It is kept in this tab alone: a reload shows it again, a closed tab forgets it.

import {announce, count, el, name, store, stored, visible} from "./dom.js";
import {request} from "./api.js";
import {answered, refused, turnCard} from "./answer.js";

const KEPT = "kgqa-conversation", MOST = 30, SENT_TURNS = 30, LONGEST = 4000;

export function askPage(main, server) {
  const turns = (stored(KEPT) ?? []).filter(turn => typeof turn?.question === "string");
  let pending = null;
  const input = el("textarea", {id: "question", rows: 1, maxlength: LONGEST, placeholder: "Ask a question", autocomplete: "off", enterkeyhint: "send", "aria-describedby": "ask-note"});
  const button = el("button", {class: "primary"}, "Ask");
  const anyway = el("input", {type: "checkbox", id: "anyway"});
  const fresh = el("button", {type: "button", class: "plain", onclick: () => { stop(); turns.length = 0; save(); draw(); input.focus(); announce("A new conversation"); }}, "New conversation");
  const list = el("div", {class: "turns"});
  const actions = {save, feedback: server.feedback, view: server.graph_view,
    again: (turn, {question, ...changes}) => ask(question ?? turn.question, {topics: turn.topics, anyway: turn.anyway, alone: turn.alone, ...changes}, turn)};
  const form = el("form", {class: "ask card", onsubmit: event => { event.preventDefault(); if (pending) stop(); else ask(input.value); }},
    el("label", {for: "question", class: "hidden-text"}, "Question"), el("div", {class: "ask-line"}, input, button),
    el("div", {class: "options"}, el("label", {for: "anyway", title: "Give an answer however low its confidence"}, anyway, " Answer anyway, however unsure"), fresh),
    el("p", {id: "ask-note", class: "hidden-text"}, "Enter asks, Shift and Enter begin a new line."));
  input.addEventListener("keydown", event => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); if (!pending) ask(input.value); }
    else if (event.key === "Escape" && pending) { event.preventDefault(); stop(); }
  });
  input.addEventListener("input", grow);
  main.replaceChildren(el("h1", {class: "hidden-text"}, "Ask the graph"), form, list);
  const prefilled = new URLSearchParams(location.search).get("q");
  if (prefilled) { input.value = prefilled.slice(0, LONGEST); grow(); }  // another site's link may fill the field, and asks nothing
  draw();
  input.focus({preventScroll: true});

  function grow() { input.rows = Math.min(6, Math.max(1, input.value.split("\n").length)); }
  function save() {
    const last = turns.slice(-MOST);
    store(KEPT, last.length ? last : null);
  }
  function stop() { pending?.abort(); pending = null; }

  /** Earlier turns as the server takes them. */
  function dialogue(before) {
    const earlier = before.filter(turn => turn.served).slice(-SENT_TURNS);
    return earlier.flatMap(turn => [{role: "user", content: turn.question.slice(0, LONGEST)},
      {role: "assistant", content: (answered(turn) ? turn.served.answer : "I do not know.").slice(0, LONGEST)}]);
  }

  async function ask(text, given = {}, replaced = null) {
    const question = text.trim();
    if (!question || pending) return;
    const mine = pending = new AbortController();
    const turn = {question, topics: given.topics ?? [], anyway: given.anyway ?? anyway.checked, alone: given.alone ?? false, reading: given.reading ?? 0, words: given.words};
    const place = replaced ? turns.indexOf(replaced) : -1, before = place >= 0 ? turns.slice(0, place) : turns;
    if (!replaced) { input.value = ""; grow(); }
    waiting(question);
    const earlier = turn.alone ? [] : dialogue(before);
    turn.earlier = earlier.length;
    try {
      turn.served = await request("/ask", {question, topics: turn.topics, dialogue: earlier, ...(turn.anyway ? {min_confidence: 0} : {}), ...(turn.reading ? {reading: turn.reading} : {})}, mine.signal);
    } catch (fault) {
      if (fault.name === "AbortError") { if (pending === mine) pending = null; if (!replaced && !input.value) { input.value = question; grow(); } draw(); return; }
      turn.fault = fault.message;
    }
    if (pending !== mine) return;
    pending = null;
    if (place >= 0 && !turn.fault) turns.splice(place, 1);  // asked anew: the last turn is always the newest
    turns.push(turn); save(); draw();
    announce(turn.fault ? `Error: ${visible(turn.fault)}` : answered(turn) ? `Answer: ${visible(turn.served.answer, 300)}` : refused(turn));
  }

  function waiting(question) {
    button.textContent = "Stop"; list.setAttribute("aria-busy", "true");
    list.prepend(el("article", {class: "turn card waiting"}, el("header", {class: "question"}, el("h2", {}, name(question, 4000))), el("p", {class: "soft"}, "Looking for the answer …")));
    announce("Looking for the answer");
  }

  function draw() {
    button.textContent = "Ask"; list.removeAttribute("aria-busy");
    fresh.hidden = !turns.length;
    const [newest, ...earlier] = [...turns].reverse();
    if (!newest) {
      list.replaceChildren(el("div", {class: "welcome"}, el("p", {class: "lead"}, "Ask about ", el("b", {}, name(server.graph, 80)), " in your own words."),
        el("p", {class: "soft"}, "An answer comes with its confidence and with the triples that prove it. What the graph does not hold is said to be missing. Later questions may refer to earlier ones.")));
      return;
    }
    list.replaceChildren(turnCard(newest, actions), ...(earlier.length ? [el("h2", {class: "earlier"}, "Earlier in this conversation")] : []), ...earlier.map(turn => {
      const said = turn.fault ? "could not be answered" : answered(turn) ? turn.served.answer : refused(turn);
      const box = el("details", {class: "past card"}, el("summary", {}, name(turn.question, 300), el("span", {class: "soft"}, " ", name(said, 120))));
      box.addEventListener("toggle", () => { if (box.open && box.children.length === 1) box.append(turnCard(turn, actions)); });
      return box;
    }));
    if (turns.length > MOST) list.append(el("p", {class: "soft"}, `A reload shows the last ${count(MOST, "question")}.`));
  }
}
