// Elements from text.  Nothing here or elsewhere on the page reads markup: names, questions and outputs are text.

/** What the addresses of a graph begin with: nothing, or `/g/NAME` of one of several. */
export const BASE = location.pathname.match(/^\/g\/[^/]+(?=\/|$)/)?.[0] ?? "";

const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 400;
const PROPERTIES = new Set(["value", "checked", "disabled", "open", "hidden", "tabIndex"]);
// controls of C0, C1 and DEL, of direction, of width zero, line separators, and halves of characters
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** A text of the graph or a model as it is shown: what cannot be seen as its code, and cut where it is very long. */
export function visible(text, longest = LONGEST) {
  const shown = String(text ?? "").slice(0, 20 * longest).replace(UNSEEN, sign =>
    sign === "\n" ? "↵" : sign === "\t" ? "⇥" : `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const signs = [...shown];
  return signs.length > longest ? `${signs.slice(0, longest - 1).join("")}…` : shown;
}

/** A text that may have several lines, each as `visible` shows it. */
export function lines(text, longest = 6000) {
  return String(text ?? "").slice(0, longest).replace(/\r\n?/g, "\n").split("\n").map(line => visible(line, longest)).join("\n");
}

/** An element.  given: attributes; `on…` are listeners, `data` a record, `class` its classes.  children: elements or text. */
export function el(tag, given = {}, ...children) { return fill(document.createElement(tag), given, children); }

/** The same in SVG. */
export function svg(tag, given = {}, ...children) { return fill(document.createElementNS(SVG, tag), given, children); }

function fill(made, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on") && typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (name.startsWith("on") || name === "style" || name === "srcdoc") throw new Error(`no ${name} here`);
    else if (name === "data") Object.assign(made.dataset, value);
    else if (PROPERTIES.has(name) && name in made) made[name] = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(3).filter(child => child !== null && child !== undefined && child !== false));
  return made;
}

/** A name of the graph, kept apart from the direction of the text around it. */
export function name(text, longest) { return el("bdi", {}, visible(text, longest)); }

/** Address of an entity's page. */
export function address(key, more = {}) {
  return `${BASE}/entity?${new URLSearchParams({key, ...more})}`;
}

/** A node of the graph: a link to its page, or the text of a literal. */
export function nodeLink(node, more = {}) {
  const text = name(node.name || node.key || "(no name)", 120);
  const unit = node.unit ? ` ${visible(node.unit, 40)}` : "";
  if (node.kind === "literal") return el("span", {class: "literal", title: node.datatype ? visible(node.datatype) : null}, text, unit);
  return el("a", {href: address(node.key), title: node.key === node.name ? null : visible(node.key), ...more}, text);
}

/** A triple whose ends are links. */
export function triple(fact) {
  return el("span", {class: "triple"}, nodeLink(fact.head), el("span", {class: "relation"}, relationName(fact.relation)), nodeLink(fact.tail),
    fact.rank && fact.rank !== "normal" ? el("span", {class: "badge"}, fact.rank) : null, qualifiers(fact));
}

/** What statements of a triple say of themselves. */
export function qualifiers(fact) {
  if (!fact.qualifiers || !fact.qualifiers.length) return null;
  return el("span", {class: "qualifiers"}, fact.qualifiers.map(own => el("span", {}, own.map((one, place) =>
    [place ? "; " : "", relationName(one.relation), ": ", nodeLink(one.value)]))));
}

/** The name of a relation, easier to read: `founded_by` as "founded by". */
export function relationName(relation) {
  return el("bdi", {title: visible(relation.key)}, visible(relation.name || relation.key, 120).replaceAll("_", " "));
}

/** Say something to screen readers. */
export function announce(text) { document.getElementById("status").textContent = text; }

/** A number between 0 and 1 in percent. */
export function percent(value) { return value > 0 && value < 0.01 ? "< 1 %" : value < 1 && value > 0.99 ? "> 99 %" : `${Math.round(100 * value)} %`; }

export function count(number, one, many = `${one}s`) { return `${number.toLocaleString("en")} ${number === 1 ? one : many}`; }

/** A value in the storage of this tab, or of this browser; null where there is none or storage is switched off. */
export function stored(key, place = "sessionStorage") { try { return JSON.parse(window[place].getItem(key)); } catch { return null; } }

export function store(key, value, place = "sessionStorage") {
  try {
    if (value === null) window[place].removeItem(key); else window[place].setItem(key, JSON.stringify(value));
  } catch { /* it is full or switched off: what is shown stays */ }
}
