// One turn of the conversation: the question with its mentions, the answer, and what it rests on.

import {BASE, address, announce, count, el, lines, name, nodeLink, percent, triple, visible} from "./dom.js";
import {get, request} from "./api.js";
import {Picture, ofFacts} from "./picture.js";
import {feedbackBox} from "./feedback.js";
import {give, given, nameForm} from "./names.js";
import {table, takeAlong} from "./table.js";

const PROOF = 100, LISTED = 20, PATHS_TO = 4, CANDIDATES = 6;
const UNREAD = "not understood", UNSURE = "not sure";  // kinds of a decline; the third is "not in this graph"
const ROADS = {labels: "found by relation names", retriever: "found by relation paths of the retriever", parser: "found by the trained parser"};

/** A turn.  actions: `again(turn, changes)` asks it anew, `save()` keeps what changed. */
export function turnCard(turn, actions) {
  const {served} = turn;
  const known = answered(turn);
  const card = el("article", {class: `turn card${known ? "" : " unanswered"}`});
  const answer = el("div", {class: "answer"}), evidence = el("div", {class: "evidence"});
  card.append(questionLine(turn, actions), answer, ...(turn.fault ? [] : [verdict(turn), evidence]));
  if (turn.fault) {
    answer.append(el("p", {class: "bad", role: "alert"}, visible(turn.fault, 1000)), el("button", {type: "button", class: "plain", onclick: () => actions.again(turn, {})}, "Ask again"));
    return card;
  }
  if (turn.named) card.insertBefore(given(turn.named, () => actions.again(turn, {named: null})), answer);
  if (known) writeAnswers(answer, served, new Map());
  else answer.append(...notHere(turn, actions));
  const nodes = new Map();
  const feedback = actions.feedback && served.answer_id ? feedbackBox(turn, actions.save) : null;
  if (feedback) card.append(feedback);
  card.append(how(served));
  show(turn, answer, evidence, nodes, actions).catch(fault => { if (fault.name !== "AbortError") evidence.append(el("p", {class: "soft"}, `No picture: ${visible(fault.message)}`)); });
  return card;
}

/** Whether a turn has an answer. */
export function refused(turn) {
  const {declined, missing} = turn.served, words = /^the question: |\?$/.test(missing ?? "") ? visible(missing, 200) : missing ? `“${visible(missing, 200).replaceAll(", ", "”, “")}”` : "the question";
  return declined === UNREAD ? `I did not understand ${words}` : declined === UNSURE ? "I am not sure" : declined ? "Not in this graph" : "No answer";
}
export function answered(turn) { return Boolean(turn.served) && turn.served.answer !== null && turn.served.answer !== undefined && turn.served.answerable !== false; }

// -- the question

function questionLine(turn, actions) {
  const topics = turn.served?.topics ?? [], text = turn.question, parts = [];
  const folded = text.toLowerCase(), places = [];
  for (const topic of topics) {
    const mention = topic.mention?.toLowerCase();
    if (!mention || folded.length !== text.length) continue;
    for (let start = folded.indexOf(mention); start >= 0; start = folded.indexOf(mention, start + 1)) {
      if (places.some(one => start < one.end && one.start < start + mention.length)) continue;
      places.push({start, end: start + mention.length, topic}); break;
    }
  }
  places.sort((a, b) => a.start - b.start);
  const below = el("div", {class: "mention-note", hidden: true});
  let at = 0;
  for (const {start, end, topic} of places) {
    const button = el("button", {type: "button", class: "mention", "aria-expanded": "false", title: `${visible(topic.name, 80)}: show what else it may mean`}, visible(text.slice(start, end)));
    button.addEventListener("click", () => candidates(turn, topic, button, below, actions));
    const sign = text.slice(end).match(/^[^\s\p{L}\p{N}]{1,3}(?=\s|$)/u)?.[0] ?? "";  // a question mark stays beside its word
    parts.push(visible(text.slice(at, start), 4000), el("span", {class: "together"}, button, visible(sign)));
    at = end + sign.length;
  }
  parts.push(visible(text.slice(at), 4000));
  const placed = new Set(places.map(place => place.topic));
  const others = topics.filter(topic => !placed.has(topic));
  const read = turn.served?.understood;
  return el("header", {class: "question"}, el("h2", {}, el("bdi", {}, parts)), read ? el("p", {class: "soft understood"}, "understood as: ", name(read, 400)) : null, below, others.length || turn.anyway || turn.reading ? el("p", {class: "chips"},
    others.map(topic => el("a", {class: "chip", href: address(topic.key)}, "about ", name(topic.name, 80))),
    others.length && turn.earlier ? el("button", {type: "button", class: "plain small", title: "Without the earlier questions", onclick: () => actions.again(turn, {alone: true})}, "Ask on its own") : null,
    turn.reading ? el("span", {class: "chip"}, "read as: ", name(turn.words, 200)) : turn.anyway ? el("span", {class: "chip"}, "answered anyway") : null) : null);
}

async function candidates(turn, topic, button, below, actions) {
  const close = () => { below.hidden = true; below.replaceChildren(); button.setAttribute("aria-expanded", "false"); };
  const wasOpen = button.getAttribute("aria-expanded") === "true";
  for (const other of button.closest("header").querySelectorAll(".mention")) other.setAttribute("aria-expanded", "false");
  if (wasOpen) { close(); return; }
  button.setAttribute("aria-expanded", "true");
  below.hidden = false;
  const list = el("ul", {}), also = el("span", {class: "soft"}, "Looking for others …");
  below.replaceChildren(el("p", {}, "“", name(topic.mention, 80), "” is read as ", nodeLink({key: topic.key, name: topic.name, kind: "entity"}),
    topic.rho === undefined ? "" : el("span", {class: "soft"}, ` (link score ${topic.rho.toFixed(2)})`), ". ", also), list);
  below.onkeydown = event => { if (event.key === "Escape") { event.stopPropagation(); close(); button.focus(); } };
  button.onkeydown = event => { if (event.key === "Escape") close(); };
  try {
    const found = await get("/entities", {q: topic.mention.slice(0, 300), limit: CANDIDATES + 1});
    const others = found.matches.filter(match => match.key !== topic.key).slice(0, CANDIDATES);
    const rest = turn.served.topics.filter(one => one !== topic).map(one => one.key);
    list.replaceChildren(...others.map(match => el("li", {}, nodeLink({...match, kind: "entity"}),
      el("span", {class: "soft"}, ` ${[match.types.slice(0, 2).map(type => visible(type, 30)).join(", "), count(match.degree, "fact"), match.how === "typo" ? "similar name" : ""].filter(Boolean).join(" · ")} `),
      el("button", {type: "button", class: "plain small", onclick: () => actions.again(turn, {topics: [...rest, match.key]})}, "Ask about this"))));
    also.textContent = others.length ? "It may also be:" : "Nothing else in this graph has a name like it.";
  } catch (fault) { also.textContent = visible(fault.message); }
}

// -- the answer

function writeAnswers(answer, served, byName, values = null) {
  const take = values ? takeAlong(values.columns, values.rows, served, "answers") : takeAlong(["answer"], (served.answers?.length ? served.answers : [served.answer]).map(text => [text]), served, "answers");
  if (values) { answer.replaceChildren(table(values.columns, values.rows, "Answers"), take, ...(served.wording ? [el("p", {class: "text"}, el("bdi", {}, lines(served.wording)))] : [])); return; }
  const listed = served.answers?.length ? served.answers : [served.answer];
  const item = text => el("li", {}, byName.has(text) ? nodeLink(byName.get(text)) : listed.length > 1 ? name(text, 300) : el("bdi", {class: "text"}, lines(text)));
  const shown = listed.slice(0, LISTED), rest = listed.slice(LISTED);
  answer.replaceChildren(el("ul", {class: listed.length > 1 ? "answers several" : "answers"}, shown.map(item)),
    ...(rest.length ? [el("details", {}, el("summary", {}, `${count(rest.length, "more answer")}`), el("ul", {class: "answers several"}, rest.map(item)))] : []),
    ...(served.wording ? [el("p", {class: "text"}, el("bdi", {}, lines(served.wording)))] : []), take);
}

/** Answers with a value each, as columns and rows: those of a form that is a table, else values that the proof has of every answer; null where there are none. */
function valuesOf(found) {
  if (found.answers.length < 2) return null;
  if (found.values.length) return {columns: ["name", "value"], rows: found.answers.map((node, place) => [{...node, name: node.name.slice(0, -found.values[place].length - 2)}, found.values[place]])};
  const byRelation = new Map();
  for (const fact of found.proof) if (fact.tail.kind === "literal") {
    const own = byRelation.get(fact.relation.key) ?? {label: (fact.relation.name || fact.relation.key).replaceAll("_", " "), values: new Map()};
    byRelation.set(fact.relation.key, own);
    own.values.set(fact.head.id, [...(own.values.get(fact.head.id) ?? []), fact.tail]);
  }
  const columns = [...byRelation.values()].filter(one => found.answers.every(node => one.values.get(node.id)?.length === 1));
  if (!columns.length) return null;
  const rows = found.answers.map(node => [node, ...columns.map(one => one.values.get(node.id)[0])]);
  const size = row => Number.parseFloat(row[1].key.replaceAll(",", ""));
  return {columns: ["answer", ...columns.map(one => one.label)], rows: rows.every(row => Number.isFinite(size(row))) ? rows.sort((a, b) => size(b) - size(a)) : rows};
}

function notHere(turn, actions) {
  const {served} = turn, {declined} = served, say = text => el("bdi", {class: "strong"}, visible(text, 200));
  const anyway = turn.anyway || !served.model_answer ? null : el("button", {type: "button", class: "plain", onclick: () => actions.again(turn, {anyway: true})}, "Answer anyway");
  const readings = served.readings ?? [];
  const offer = (one, index) => el("li", {}, el("button", {type: "button", class: "plain reading", title: "Show this answer with its proof", onclick: () => actions.again(turn, {reading: index + 1, words: one.words})},
    el("span", {}, name(one.words, 300)), el("span", {class: "strong"}, name(one.answers.join(", ") || "none", 300), one.rows > one.answers.length && one.answers.length ? ` and ${count(one.rows - one.answers.length, "more", "more")}` : ""),
    el("span", {class: "soft"}, typeof one.confidence === "number" ? atMost(one.confidence) : "")));
  const meant = one => el("p", {}, say(one.words), ": did you mean ", turn.question.includes(one.words) ? el("button", {type: "button", class: "plain small", onclick: () => actions.again(turn, {question: turn.question.replace(one.words, () => one.name)})}, name(one.name, 80)) : say(one.name),
    "? ", actions.naming ? el("button", {type: "button", class: "plain small", onclick: event => named(event.target, one)}, "Always read it so") : "", el("span", {class: "soft"}, " As a line of the names file: "), el("code", {}, visible(one.line, 300)));
  const renamed = change => actions.again(turn, {named: change});
  async function named(button, one) {
    button.disabled = true;
    try { const reply = await give(one.line); renamed({word: one.words, means: one.name, lines: one.line, file: reply.file}); }
    catch (fault) { button.after(el("span", {class: "bad", role: "alert"}, visible(fault.message, 400))); }
  }
  const unread = declined === UNREAD && served.missing ? served.missing.split(", ").filter(word => turn.question.includes(word)) : [];
  const teach = actions.naming && unread.length ? el("details", {}, el("summary", {}, "Say what it means"), unread.slice(0, 3).map(word => nameForm(word, actions.schema, renamed))) : null;
  return [el("p", {class: "not-here"}, refused(turn)),
    declined && declined !== UNREAD && served.reason !== UNSURE ? el("p", {}, visible(served.reason, 400), served.missing ? [": ", say(served.missing)] : "", ". ", served.nearest ? ["Nearest in the graph: ", say(served.nearest), ". "] : "") : null,
    ...(served.suggestions ?? []).map(meant),
    ...(readings.length ? [el("p", {}, declined === UNREAD ? "Without these words it may mean:" : "It may mean one of these:"), el("ol", {class: "readings"}, readings.map(offer))] : []), teach, anyway].filter(Boolean);
}

/** A confidence in percent, rounded down so that it does not look like the least that an answer needs. */
function atMost(confidence) { return percent(confidence < 0.01 ? confidence : Math.floor(100 * confidence) / 100); }

function verdict(turn) {
  const {served} = turn, parts = [], least = served.min_confidence, withheld = served.answerable === false, unsure = served.declined === UNSURE;
  const known = typeof served.confidence === "number" && served.calibrated;
  if (known && (!withheld || unsure)) {  // of the answer, given or withheld
    parts.push(el("span", {class: "confidence"}, svgBar(served.confidence, least), el("span", {}, `confidence ${withheld ? "of the best answer " : ""}${withheld ? atMost(served.confidence) : percent(served.confidence)}`),
      el("span", {class: "soft"}, least ? `needs ${percent(least)}` : "")));
  } else if (served.calibrated === false && !withheld) parts.push(el("span", {class: "soft"}, "confidence not calibrated"));
  if (served.road) parts.push(el("span", {class: "badge", title: "Which part of the answerer proposed the form"}, ROADS[served.road] ?? `found by ${visible(served.road, 40)}`));
  parts.push(el("span", {class: "soft"}, `${visible(served.model, 60)} · ${served.seconds < 10 ? served.seconds.toFixed(2) : Math.round(served.seconds)} s`));
  return el("p", {class: "verdict"}, parts);
}

function svgBar(value, least) {
  const meter = el("meter", {min: 0, max: 1, "aria-label": "confidence"});
  meter.value = value;
  if (least > 0 && least < 1) { meter.low = least; meter.high = least; meter.optimum = 1; }
  return meter;
}

// -- what it rests on

async function show(turn, answer, evidence, nodes, actions) {
  const {served} = turn, texts = served.proof?.length ? served.proof : [];
  let facts = [], marks = {}, picture = null, proved = false, values = null;
  if (!actions.view) { if (texts.length) evidence.append(proofOfTexts(texts, served.proof_rows)); return; }
  if (served.form && answered(turn)) {
    const found = await request("/query", {form: served.form, limit: PROOF}).catch(fault => { if (fault.status === 0) throw fault; return null; });
    if (found) {
      facts = found.proof; proved = facts.length > 0;
      if (found.answers.length === (served.answers?.length ?? 0)) values = valuesOf(found);
      for (const node of found.answers) { nodes.set(node.name, node); marks[node.id] = "answer"; }
      if (found.why) evidence.append(el("p", {class: "soft"}, visible(found.why)));
    }
  }
  if (!facts.length && answered(turn)) facts = await chains(served, nodes, marks);
  if (nodes.size) writeAnswers(answer, served, nodes, values);
  const topics = new Set((served.topics ?? []).map(topic => topic.key));
  if (facts.length) {
    evidence.append(el("h3", {}, proved ? "Proof" : "How topic and answer are connected"), el("ul", {class: "facts"}, facts.slice(0, 12).map(fact => el("li", {}, triple(fact)))));
    if (facts.length > 12) evidence.append(el("details", {}, el("summary", {}, count(facts.length - 12, "more triple")), el("ul", {class: "facts"}, facts.slice(12).map(fact => el("li", {}, triple(fact))))));
    if (proved && served.proof_rows > facts.length) evidence.append(el("p", {class: "soft"}, `${count(served.proof_rows, "triple")} in all.`));
    const drawn = ofFacts(facts.slice(0, 60));
    for (const node of drawn.nodes) if (topics.has(node.key)) marks[node.id] = "topic";
    picture = new Picture("The proof as a picture");
    evidence.append(picture.box);
    picture.add(drawn.nodes, drawn.edges, null, marks);
    picture.learnTypes();
  } else {
    if (texts.length) evidence.append(proofOfTexts(texts, served.proof_rows));
    const [topic] = served.topics ?? [];
    if (!topic) return;
    const around = el("details", {class: "around"}, el("summary", {}, "What the graph has around ", name(topic.name, 80)));
    around.addEventListener("toggle", async () => {
      if (!around.open || around.children.length > 1) return;
      picture = new Picture("Surroundings of the topic");
      around.append(picture.box);
      try {
        const found = await get("/page/neighbourhood", {key: topic.key, limit: 20});
        picture.add(found.nodes, found.edges, null, {[found.centre]: "topic"});
        picture.expanded.add(found.centre);
      } catch (fault) { picture.box.replaceWith(el("p", {class: "soft"}, `No picture: ${visible(fault.message)}`)); }
    });
    evidence.append(around);
  }
}

/** Triples of the shortest chains from a topic to the first answers, where no form proves them. */
async function chains(served, nodes, marks) {
  const [topic] = served.topics ?? [], facts = new Map();
  if (!topic) return [];
  for (const text of (served.answers ?? []).slice(0, PATHS_TO)) {
    if (!text || text.length > 300) continue;
    const found = await get("/paths", {start: topic.key, end: text, max_hops: 3, limit: 1}).catch(fault => { if (fault.status === 0) throw fault; return null; });
    const path = found?.paths[0];
    if (!path) continue;
    nodes.set(text, found.end); marks[found.end.id] = "answer";
    path.relations.forEach((relation, hop) => {
      const [a, b] = [path.example[hop], path.example[hop + 1]], [head, tail] = relation.inverse ? [b, a] : [a, b];
      const id = `${head.id} ${relation.key} ${tail.id}`;
      facts.set(id, {triple: id, head, relation: {...relation, inverse: false}, tail});
    });
  }
  return [...facts.values()];
}

function proofOfTexts(texts, rows) {
  return el("div", {}, el("h3", {}, "Proof"), el("ul", {class: "facts"}, texts.slice(0, 50).map(text => el("li", {}, name(text, 400)))),
    rows > texts.length ? el("p", {class: "soft"}, `${count(rows, "triple")} in all.`) : null);
}

function how(served) {
  const parts = [];
  if (served.form) parts.push(el("h3", {}, "Logical form"), el("pre", {tabindex: "0"}, lines(served.form)), el("p", {}, el("a", {href: `${BASE}/console?${new URLSearchParams({form: served.form})}`}, "Open in the console")));
  if (served.entities?.length) parts.push(el("h3", {}, "Candidates of the retriever"), el("ol", {class: "scores"}, served.entities.slice(0, 10).map(one =>
    el("li", {}, el("span", {class: "number"}, one.score.toFixed(3)), name(one.name, 120)))));
  if (served.facts?.length) parts.push(el("h3", {}, "Retrieved triples"), el("ol", {class: "scores"}, served.facts.slice(0, 20).map(fact =>
    el("li", {}, el("span", {class: "number"}, fact.score.toFixed(3)), name(fact.text, 300)))), served.facts.length > 20 ? el("p", {class: "soft"}, `and ${served.facts.length - 20} more`) : null);
  if (served.passages?.length) parts.push(el("h3", {}, "Passages"), served.passages.slice(0, 10).map(one => el("details", {}, el("summary", {}, name(one.title || one.document, 160)), el("p", {class: "text"}, el("bdi", {}, lines(one.text))))));
  if (served.effort) parts.push(el("h3", {}, "Steps"), el("ol", {}, served.effort.steps.slice(0, 50).map(step => el("li", {class: "text"}, el("bdi", {}, lines(step, 1500))))),
    el("p", {class: "soft"}, `${count(served.effort.calls, "call")}, ${count(served.effort.prompt_tokens + served.effort.completion_tokens, "token")}; ended: ${visible(served.effort.end, 60)}`));
  if (served.model_answer) parts.push(el("h3", {}, "Withheld answer"), el("p", {class: "text"}, el("bdi", {}, lines(served.model_answer))));
  parts.push(el("p", {class: "soft"}, `run ${visible(served.run, 60)} · ${visible(served.knowledge, 60)}`));
  const box = el("details", {class: "how"}, el("summary", {}, "How it was found"));
  box.addEventListener("toggle", () => { if (box.open && box.children.length === 1) { box.append(...parts.flat().filter(Boolean)); announce("Details shown"); } });
  return box;
}
