// Rows as a table, and as what people take along: text to the clipboard, CSV and JSON as files.

import {announce, count, el, name, nodeLink} from "./dom.js";

const LISTED = 20;

/** A table; further rows than the first are folded.  caption: says to screen readers what it is.  Cells are texts, numbers or nodes of the graph. */
export function table(columns, rows, caption) {
  const line = row => el("tr", {}, row.map((cell, place) => el(place ? "td" : "th", {scope: place ? null : "row", class: typeof cell === "number" ? "number" : null},
    cell === null || cell === undefined ? el("span", {class: "soft"}, "–") : cell.kind ? nodeLink(cell) : name(cell, 400))));
  const whole = part => el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": caption}, el("table", {}, el("caption", {class: "hidden-text"}, caption),
    el("thead", {}, el("tr", {}, columns.map(column => el("th", {scope: "col"}, name(column, 120))))), el("tbody", {}, part.map(line))));
  const rest = rows.slice(LISTED);
  return el("div", {}, whole(rows.slice(0, LISTED)), rest.length ? el("details", {}, el("summary", {}, count(rest.length, "more row")), whole(rest)) : null);
}

/** Buttons that copy rows, or save them as CSV, or save `json`. */
export function takeAlong(columns, rows, json, file) {
  const plain = rows.map(row => row.map(cell => cell?.kind ? cell.name || cell.key : cell ?? ""));
  const note = el("span", {class: "soft"}), said = text => { note.textContent = text; announce(text); };
  const button = (text, title, act) => el("button", {type: "button", class: "plain small", title, onclick: act}, text);
  return el("div", {class: "buttons take", role: "group", "aria-label": "Take along"},
    button("Copy", "Copy the answers", async () => said(await copied(plain.map(row => row.join("\t")).join("\n")) ? "Copied" : "This browser lets nothing be copied")),
    button("CSV", "Save as a table", () => { save(`${file}.csv`, "text/csv", csv(columns, plain)); said("Saved as CSV"); }),
    button("JSON", "Save with everything that is known of it", () => { save(`${file}.json`, "application/json", JSON.stringify(json, null, 1)); said("Saved as JSON"); }), note);
}

/** Rows as CSV (RFC 4180).  What a spreadsheet would run as a formula gets an apostrophe, since names come from the graph. */
export function csv(columns, rows) {
  const cell = value => {
    const text = typeof value === "string" && /^[=+@\t\r]|^-(?![\d.])/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll("\"", "\"\"")}"` : text;
  };
  return [columns, ...rows].map(row => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

async function copied(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* no permission, or no secure context */ }
  const field = el("textarea", {class: "hidden-text", value: text, "aria-hidden": "true"}), focused = document.activeElement;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove(); focused?.focus();
  return done;
}

function save(file, type, text) {
  const address = URL.createObjectURL(new Blob([text], {type})), link = el("a", {href: address, download: file});
  document.body.append(link);
  link.click(); link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
