// What every page has: search, colours, and the view that belongs to its address.

import {BASE, address, el, name, visible} from "./dom.js";
import {get} from "./api.js";
import {askPage} from "./ask.js";
import {consolePage} from "./console.js";
import {entityPage, searchAddress} from "./entity.js";
import {entityField} from "./search.js";

const main = document.getElementById("main");

function colours() {
  const button = document.getElementById("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => { const next = dark() ? "light" : "dark"; button.textContent = dark() ? "☀" : "☾"; button.title = `Switch to ${next} colours`; button.setAttribute("aria-label", button.title); };
  button.addEventListener("click", () => {
    const next = dark() ? "light" : "dark", own = next !== (system.matches ? "dark" : "light");
    if (own) document.documentElement.dataset.theme = next; else delete document.documentElement.dataset.theme;
    try { if (own) localStorage.setItem("kgqa-theme", next); else localStorage.removeItem("kgqa-theme"); } catch { /* this page alone has them */ }
    show();
  });
  system.addEventListener("change", show);
  show();
}

/** Which of several graphs is asked; each has an address of its own. */
function chooser(server) {
  const select = el("select", {"aria-label": "Graph", onchange: () => location.assign(`/g/${encodeURIComponent(select.value)}/`)},
    server.graphs.map(one => el("option", {value: one, selected: one === server.graph || null}, visible(one, 40))));
  return select;
}

async function start() {
  colours();
  const server = await get("/page/state");
  document.querySelector(".brand").setAttribute("href", `${BASE}/`);
  document.getElementById("graph").replaceChildren(server.graphs?.length > 1 ? chooser(server) : name(server.graph, 40));
  if (server.graph_view) document.getElementById("console").replaceChildren(el("a", {href: `${BASE}/console`}, "Console"));
  document.title = `${visible(server.graph, 60)} – kgqa`;
  if (server.graph_view) {
    const field = entityField({label: "Search entities", placeholder: "Search entities", choose: match => location.assign(address(match.key)), submit: text => location.assign(searchAddress(text))});
    document.getElementById("search").append(field.box);
    document.addEventListener("keydown", event => {
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, textarea, dialog")) { event.preventDefault(); field.input.focus(); }
    });
  }
  const pages = {"/entity": entityPage, "/console": consolePage};
  await (pages[location.pathname.slice(BASE.length)] ?? askPage)(main, server);
}

start().catch(fault => {
  main.replaceChildren(el("p", {class: "bad", role: "alert"}, visible(fault.message, 600)), el("button", {type: "button", class: "plain", onclick: () => location.reload()}, "Try again"));
});
