// Thumbs, and the right answer where the one that was given is wrong.

import {announce, el, name, svg, visible} from "./dom.js";
import {request} from "./api.js";
import {entityField} from "./search.js";

const MOST = 100;

/** A thumb, drawn: not every system has the sign. */
function thumb(way) {
  return svg("svg", {viewBox: "0 0 24 24", class: `thumb ${way}`, "aria-hidden": "true"}, svg("path", {d: "M3 11h4v10H3zM7 11l4.5-8.5c2 .2 2.7 1.6 2.3 3.4L13 9h6.2c1.4 0 2.1 1.1 1.8 2.3l-2 8c-.3 1.1-1 1.7-2 1.7H7"}));
}

/** The box under an answer that has an id.  save: keeps the turn. */
export function feedbackBox(turn, save) {
  const box = el("div", {class: "feedback", role: "group", "aria-label": "Feedback on this answer"});
  const note = el("span", {class: "soft"});
  const up = el("button", {type: "button", class: "plain", "aria-pressed": "false"}, thumb("up"), "Right");
  const down = el("button", {type: "button", class: "plain", "aria-pressed": "false"}, thumb("down"), "Wrong");
  const more = el("div", {class: "correction", hidden: true});
  box.append(up, down, note, more);
  if (!turn.served.answers?.length) up.hidden = true;

  function pressed() {
    up.setAttribute("aria-pressed", String(turn.verdict === "up"));
    down.setAttribute("aria-pressed", String(turn.verdict === "down"));
  }
  async function send(body, thanks) {
    for (const one of [up, down]) one.disabled = true;
    try {
      await request("/feedback", {answer_id: turn.served.answer_id, ...body});
      turn.verdict = body.verdict; save(); pressed();
      note.className = "soft"; note.textContent = thanks; announce(thanks);
      return true;
    } catch (fault) { note.className = "bad"; note.textContent = `Not kept: ${visible(fault.message)}`; announce(note.textContent); return false; }
    finally { for (const one of [up, down]) one.disabled = false; }
  }
  function correction() {
    const right = new Map();
    const chips = el("ul", {class: "chips"});
    const add = (value, text) => { if (right.size < MOST) right.set(value, text); show(); };
    const field = entityField({label: "The right answer", placeholder: "Name of an entity, or a value", hideLabel: false,
      choose: match => { add(match.key, match.name); field.input.focus(); }, submit: text => { add(text, text); field.input.focus(); }});
    const sendIt = el("button", {type: "button", class: "primary", disabled: true, onclick: async () => {
      if (await send({verdict: "down", correction: [...right.keys()]}, "Thank you: the correction is kept.")) { more.hidden = true; down.focus(); }
    }}, "Send correction");
    const cancel = el("button", {type: "button", class: "plain", onclick: () => { more.hidden = true; down.focus(); }}, "No, thank you");
    function show() {
      chips.replaceChildren(...[...right].map(([value, text]) => el("li", {class: "chip"}, name(text, 80),
        el("button", {type: "button", class: "remove", "aria-label": `Remove ${visible(text, 80)}`, onclick: () => { right.delete(value); show(); field.input.focus(); }}, "×"))));
      sendIt.disabled = !right.size;
    }
    more.replaceChildren(field.box, chips, el("div", {class: "buttons"}, sendIt, cancel));
    more.hidden = false;
    field.input.focus();
  }
  more.addEventListener("keydown", event => { if (event.key === "Escape" && !more.hidden) { event.stopPropagation(); more.hidden = true; down.focus(); } });
  up.addEventListener("click", () => { more.hidden = true; send({verdict: "up"}, "Thank you."); });
  down.addEventListener("click", async () => { if (await send({verdict: "down"}, "Thank you. Do you know the right answer?")) correction(); });
  pressed();
  if (turn.verdict) note.textContent = "Your feedback is kept.";
  return box;
}
