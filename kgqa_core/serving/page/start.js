// What every page has: search, colours, and the view that belongs to its address.

import {address, el, name, visible} from "./dom.js";
import {get} from "./api.js";
import {askPage} from "./ask.js";
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

async function start() {
  colours();
  const server = await get("/page/state");
  document.getElementById("graph").replaceChildren(name(server.graph, 40));
  document.title = `${visible(server.graph, 60)} – kgqa`;
  if (server.graph_view) {
    const field = entityField({label: "Search entities", placeholder: "Search entities", choose: match => location.assign(address(match.key)), submit: text => location.assign(searchAddress(text))});
    document.getElementById("search").append(field.box);
    document.addEventListener("keydown", event => {
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, textarea, dialog")) { event.preventDefault(); field.input.focus(); }
    });
  }
  await (location.pathname === "/entity" ? entityPage(main, server) : askPage(main, server));
}

start().catch(fault => {
  main.replaceChildren(el("p", {class: "bad", role: "alert"}, visible(fault.message, 600)), el("button", {type: "button", class: "plain", onclick: () => location.reload()}, "Try again"));
});
