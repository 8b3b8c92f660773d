// The conversation.  It is kept in this tab alone: a reload shows it again, a closed tab forgets it.

import {BASE, address, announce, count, el, name, relationName, store, stored, visible} from "./dom.js";
import {get, request} from "./api.js";
import {answered, refused, turnCard} from "./answer.js";
import {namesBox} from "./names.js";
import {uploadBox} from "./upload.js";

const KEPT = `kgqa-conversation${BASE}`, PAST = `kgqa-history${BASE}`, REMEMBERED = 50, TOP = 12, MOST = 30, SENT_TURNS = 30, LONGEST = 4000;

export function askPage(main, server) {
  const turns = (stored(KEPT) ?? []).filter(turn => typeof turn?.question === "string");
  let pending = null;
  const input = el("textarea", {id: "question", rows: 1, maxlength: LONGEST, placeholder: "Ask a question", autocomplete: "off", enterkeyhint: "send", "aria-describedby": "ask-note"});
  const button = el("button", {class: "primary"}, "Ask");
  const anyway = el("input", {type: "checkbox", id: "anyway"});
  const fresh = el("button", {type: "button", class: "plain", onclick: () => { stop(); turns.length = 0; save(); draw(); input.focus(); announce("A new conversation"); }}, "New conversation");
  const list = el("div", {class: "turns"}), past = el("details", {class: "card fold"});
  const schema = server.graph_view ? get("/page/start").catch(() => null) : Promise.resolve(null);
  const actions = {save, feedback: server.feedback, view: server.graph_view, naming: server.naming, schema: {relations: [], types: []},
    again: (turn, {question, ...changes}) => ask(question ?? turn.question, {topics: turn.topics, anyway: turn.anyway, alone: turn.alone, named: turn.named, ...changes}, turn)};
  schema.then(known => Object.assign(actions.schema, known));
  const form = el("form", {class: "ask card", onsubmit: event => { event.preventDefault(); if (pending) stop(); else ask(input.value); }},
    el("label", {for: "question", class: "hidden-text"}, "Question"), el("div", {class: "ask-line"}, input, button),
    el("div", {class: "options"}, el("label", {for: "anyway", title: "Give an answer however low its confidence"}, anyway, " Answer anyway, however unsure"), fresh),
    el("p", {id: "ask-note", class: "hidden-text"}, "Enter asks, Shift and Enter begin a new line."));
  input.addEventListener("keydown", event => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); if (!pending) ask(input.value); }
    else if (event.key === "Escape" && pending) { event.preventDefault(); stop(); }
  });
  input.addEventListener("input", grow);
  main.replaceChildren(el("h1", {class: "hidden-text"}, "Ask the graph"), form, past, list);
  const fill = () => {  // another site's link, or the way back, may fill the field, and asks nothing
    const text = new URLSearchParams(location.search).get("q") ?? "";
    if (text !== turns.at(-1)?.question) { input.value = text.slice(0, LONGEST); grow(); }
  };
  fill();
  addEventListener("popstate", fill);
  draw();
  input.focus({preventScroll: true});

  function grow() { input.rows = Math.min(6, Math.max(1, input.value.split("\n").length)); }
  function save() {
    const last = turns.slice(-MOST);
    store(KEPT, last.length ? last : null);
  }
  /** This browser alone has the questions of earlier days; none where it keeps nothing. */
  function remember(question) {
    store(PAST, [question, ...(stored(PAST, "localStorage") ?? []).filter(one => one !== question)].slice(0, REMEMBERED), "localStorage");
    drawPast();
  }
  function drawPast() {
    const known = (stored(PAST, "localStorage") ?? []).filter(one => typeof one === "string");
    past.hidden = !known.length;
    past.replaceChildren(el("summary", {}, `Asked in this browser: ${count(known.length, "question")}`), el("ul", {class: "matches"}, known.map(askButton)),
      el("button", {type: "button", class: "plain small", onclick: () => { store(PAST, null, "localStorage"); drawPast(); input.focus(); announce("The history is cleared"); }}, "Clear history"),
      el("span", {class: "soft"}, " It is kept in this browser, and not on the server."));
  }
  function askButton(question) { return el("li", {}, el("button", {type: "button", class: "plain reading", onclick: () => { if (!pending) ask(question); }}, name(question, 300))); }
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
    const turn = {question, topics: given.topics ?? [], anyway: given.anyway ?? anyway.checked, alone: given.alone ?? false, reading: given.reading ?? 0, words: given.words, named: given.named};
    const place = replaced ? turns.indexOf(replaced) : -1, before = place >= 0 ? turns.slice(0, place) : turns;
    if (!replaced) { input.value = ""; grow(); }
    remember(question);
    if (location.pathname + location.search !== askAddress(question)) history.pushState(null, "", askAddress(question));
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

  /** What is in the graph: types, relations, names that were given. */
  function overview({counts, types, relations}) {
    const chips = (title, all, chip) => [el("h3", {}, title), el("p", {class: "chips"}, all.slice(0, TOP).map(chip), all.length > TOP ? el("details", {}, el("summary", {}, `${all.length - TOP} more`), el("span", {class: "chips"}, all.slice(TOP, 100).map(chip))) : null)];
    return [el("section", {class: "card"}, el("h2", {}, "What is in it"), el("p", {class: "soft"}, [count(counts.entities ?? 0, "thing"), count(counts.triples ?? 0, "fact"), count(relations.length, "relation"), count(types.length, "type")].join(" · ")),
        types.length ? chips("Types", types, one => el("a", {class: "chip", href: address(one.type)}, name(one.type, 60), ` ${one.entities.toLocaleString("en")}`)) : null,
        chips("Relations", relations, one => el("span", {class: "chip"}, relationName(one), ` ${one.triples.toLocaleString("en")}`))),
      namesBox(actions.schema)].filter(Boolean);
  }

  function draw() {
    button.textContent = "Ask"; list.removeAttribute("aria-busy");
    fresh.hidden = !turns.length; drawPast();
    const [newest, ...earlier] = [...turns].reverse();
    if (!newest) {
      list.replaceChildren(el("div", {class: "welcome"}, el("p", {class: "lead"}, "Ask about ", el("b", {}, name(server.graph, 80)), " in your own words."),
        el("p", {class: "soft"}, "An answer comes with its confidence and with the triples that prove it. What the graph does not hold is said to be missing. Later questions may refer to earlier ones.")));
      schema.then(known => {
        if (!list.querySelector(".welcome")) return;
        if (known) list.append(...overview(known));
        if (server.upload_mb) list.append(uploadBox(server));
      });
      get("/page/examples").then(({questions}) => {
        const welcome = list.querySelector(".welcome");
        if (questions.length && welcome) welcome.after(el("section", {class: "card"}, el("h2", {}, "It answers, for example"), el("ul", {class: "matches examples"}, questions.map(askButton))));
      }).catch(() => { /* the rest of the page does without */ });
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

/** Address of the page with a question filled in. */
function askAddress(question) { return `${BASE}/?${new URLSearchParams({q: question})}`; }
