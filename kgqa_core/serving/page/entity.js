// The page of an entity: its address has what is shown, so that back, reload and bookmarks work.

import {BASE, address, count, el, name, nodeLink, qualifiers, relationName, visible} from "./dom.js";
import {get} from "./api.js";
import {Picture} from "./picture.js";
import {given, nameForm} from "./names.js";

const PAGE = 25, ALIASES = 12, RELATIONS = 12;

export async function entityPage(main, server) {
  const asked = new URLSearchParams(location.search), key = asked.get("key") ?? "";
  if (!server.graph_view) { main.replaceChildren(el("p", {class: "bad"}, "The system that answers here reads no graph, so there is nothing to look up.")); return; }
  if (!key.trim()) { main.replaceChildren(el("h1", {}, "Entities"), el("p", {class: "lead"}, "Look for an entity by its name with the field above; typing errors do not matter.")); document.getElementById("search").querySelector("input")?.focus(); return; }
  if (asked.get("search")) { await searchPage(main, key); return; }
  let found;
  try { found = await get("/page/entity", {key, limit: PAGE}); }
  catch (fault) {
    main.replaceChildren(el("h1", {}, "Not found"), el("p", {class: "bad", role: "alert"}, visible(fault.message, 600)));
    if (fault.status === 400) await searchList(main, key);
    return;
  }
  const {entity} = found, title = visible(entity.name || entity.key, 160);
  document.title = `${title} – kgqa`;
  const picture = new Picture("The entity with its neighbours");
  main.replaceChildren(
    el("div", {class: "entity-head"}, el("h1", {}, name(entity.name || entity.key, 300)), entity.unit ? el("span", {class: "soft"}, visible(entity.unit)) : null,
      el("p", {class: "chips"}, found.types.map(type => nodeLink(type, {class: "chip"})), el("span", {class: "soft"}, count(found.degree, "fact"))),
      found.description ? el("p", {class: "lead text"}, el("bdi", {}, visible(found.description, 1500))) : null,
      el("dl", {class: "names"}, el("dt", {}, "Key"), el("dd", {}, el("code", {}, name(entity.key, 300))),
        entity.datatype ? [el("dt", {}, "Datatype"), el("dd", {}, visible(entity.datatype, 300))] : null,
        found.aliases.length ? [el("dt", {}, "Also called"), el("dd", {}, aliases(found))] : null,
        found.others.length ? [el("dt", {}, "Same name"), el("dd", {}, found.others.map((other, place) => [place ? ", " : "", nodeLink(other)]))] : null)),
    server.naming && entity.kind === "entity" ? naming(entity) : null,
    entity.kind === "entity" ? picture.box : null,
    el("div", {class: "sides"}, side(found, "out"), side(found, "in")));
  if (entity.kind === "entity") {
    const around = await get("/page/neighbourhood", {key: entity.key, limit: 24}).catch(() => null);
    if (around?.edges.length) {
      picture.add(around.nodes, around.edges, null, {[around.centre]: "topic"});
      picture.expanded.add(around.centre);
      if (around.total > around.edges.length) picture.about.append(el("span", {class: "soft"}, `${around.edges.length} of ${count(around.total, "fact")} are drawn.`));
    } else picture.box.remove();
  }
}

/** A form that gives the entity another name, folded. */
function naming(entity) {
  const box = el("details", {}, el("summary", {}, "Give it another name")), thing = {key: entity.key, name: entity.name || entity.key};
  const show = latest => box.append(latest ? given(latest, () => { box.lastChild.remove(); show(null); }) : nameForm("", null, one => { box.lastChild.remove(); show(one); }, thing));
  show(null);
  return box;
}

function aliases(found) {
  const some = found.aliases.slice(0, ALIASES), rest = found.aliases.slice(ALIASES), unseen = found.aliases_total - found.aliases.length;
  const list = names => names.map((alias, place) => [place ? ", " : "", name(alias, 120)]);
  return [list(some), rest.length ? el("details", {}, el("summary", {}, `${rest.length + unseen} more`), list(rest), unseen > 0 ? ` and ${count(unseen, "other")}` : "") : null];
}

/** The facts of one direction; pages and relations are links of the same address. */
function side(found, way) {
  const asked = new URLSearchParams(location.search);
  const box = el("section", {class: "side", "aria-busy": "true"}, el("h2", {}, way === "out" ? "Facts" : "Is mentioned in"));
  const first = way === "out" ? found.facts : found.incoming;
  if (!first.total) { box.removeAttribute("aria-busy"); box.append(el("p", {class: "soft"}, way === "out" ? "No triple begins here." : "No triple ends here.")); return box; }
  const relation = asked.get(`${way}_relation`), offset = Math.max(0, Number.parseInt(asked.get(`${way}_offset`) ?? "0", 10) || 0);
  const link = (changes, text, more = {}) => {
    const next = new URLSearchParams(location.search);
    for (const [own, value] of Object.entries(changes)) if (value === null) next.delete(own); else next.set(own, value);
    return el("a", {href: `${BASE}/entity?${next}#${way}`, ...more}, text);
  };
  box.id = way;
  const chip = one => link({[`${way}_relation`]: one.key, [`${way}_offset`]: null}, [relationName(one), ` ${one.count.toLocaleString("en")}`], {class: "chip", "aria-current": one.key === relation ? "true" : null});
  const chips = first.relations.map(chip);
  box.append(el("nav", {class: "chips", "aria-label": "Relations"}, first.relations.length > 1 || relation ? [link({[`${way}_relation`]: null, [`${way}_offset`]: null}, `all ${first.total.toLocaleString("en")}`, {class: "chip", "aria-current": relation ? null : "true"}),
    chips.slice(0, RELATIONS), chips.length > RELATIONS ? el("details", {}, el("summary", {}, `${chips.length - RELATIONS + first.more_relations} more relations`), chips.slice(RELATIONS)) : null] : null));
  const show = page => {
    const groups = new Map();
    for (const fact of page.facts) groups.set(fact.relation.key, [...(groups.get(fact.relation.key) ?? []), fact]);
    box.append(el("dl", {class: "relations"}, [...groups.values()].map(group => [el("dt", {}, relationName(group[0].relation)), el("dd", {}, el("ul", {}, group.map(fact =>
      el("li", {class: fact.rank === "deprecated" ? "deprecated" : null}, nodeLink(way === "out" ? fact.tail : fact.head), fact.rank !== "normal" ? el("span", {class: "badge"}, fact.rank) : null, qualifiers(fact)))))])));
    if (page.total > PAGE || offset) box.append(el("nav", {class: "pages", "aria-label": "Pages"},
      offset > 0 ? link({[`${way}_offset`]: String(Math.max(0, offset - PAGE))}, "← earlier") : el("span"),
      el("span", {class: "soft"}, page.facts.length ? `${(offset + 1).toLocaleString("en")}–${(offset + page.facts.length).toLocaleString("en")} of ${page.total.toLocaleString("en")}` : `none of ${page.total.toLocaleString("en")}`),
      offset + PAGE < page.total ? link({[`${way}_offset`]: String(offset + PAGE)}, "further →") : el("span")));
    box.removeAttribute("aria-busy");
  };
  if (!relation && !offset) show(first);
  else get("/page/entity", {key: found.entity.key, limit: PAGE, offset, direction: way, relation})
    .then(page => { show(way === "out" ? page.facts : page.incoming); if (location.hash === `#${way}`) box.scrollIntoView(); })
    .catch(fault => { box.removeAttribute("aria-busy"); box.append(el("p", {class: "bad"}, visible(fault.message))); });
  return box;
}

async function searchPage(main, text) {
  document.title = `${visible(text, 60)} – search – kgqa`;
  main.replaceChildren(el("h1", {}, "Search: ", name(text, 120)));
  await searchList(main, text);
}

async function searchList(main, text) {
  try {
    const found = await get("/entities", {q: text.slice(0, 1000), limit: 30});
    if (!found.matches.length) { main.append(el("p", {}, "Nothing in this graph is called so, or nearly so.")); return; }
    main.append(el("ul", {class: "matches"}, found.matches.map(match => el("li", {class: "card"}, el("a", {href: address(match.key)}, name(match.name || match.key, 160)),
      el("span", {class: "soft"}, ` ${[match.types.slice(0, 3).map(type => visible(type, 40)).join(", "), count(match.degree, "fact"), match.how === "typo" ? "similar name" : ""].filter(Boolean).join(" · ")}`),
      match.description ? el("p", {}, name(match.description, 240)) : null))), found.more ? el("p", {class: "soft"}, "There are more; type more of the name.") : "");
  } catch (fault) { main.append(el("p", {class: "bad", role: "alert"}, visible(fault.message))); }
}

/** Address of the list of what a text may mean. */
export function searchAddress(text) { return address(text, {search: "1"}); }
