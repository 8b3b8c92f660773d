// A picture of triples: nodes are dragged, the ground moves and zooms, a click adds the neighbours of a node.
//
// Nodes repel each other and edges pull (Fruchterman and Reingold 1991), cooled to a stop; the start is a spiral in
// the order in which nodes came, so one graph has one picture.

import {address, announce, count, el, svg, visible} from "./dom.js";
import {get} from "./api.js";

const WIDTH = 900, NARROW = 460, HEIGHTS = [[3, 200], [8, 340], [Infinity, 520]], REST = 105, MOST = 150, EXPANDED = 12, KINDS = 12, DOUBLE = 260, STILL = matchMedia("(prefers-reduced-motion: reduce)"), PHONE = matchMedia("(max-width: 36rem)");

/** What a node is filtered by; empty where its types are not known yet. */
const kindOf = node => node.kind === "literal" ? "value" : node.types ? node.types[0] ?? "no type" : "";

/** A picture.  Its `box` is the element; `add` takes nodes and edges as `/page/neighbourhood` has them. */
export class Picture {
  constructor(label) {
    this.nodes = new Map(); this.edges = new Map(); this.width = PHONE.matches ? NARROW : WIDTH; this.height = HEIGHTS[0][1]; this.expanded = new Set();
    this.view = {x: 0, y: 0, scale: 1}; this.heat = 0; this.moved = false; this.selected = null; this.focused = null; this.frame = 0;
    this.ground = svg("g");
    this.edgeLayer = svg("g"); this.nodeLayer = svg("g");
    this.ground.append(this.edgeLayer, this.nodeLayer);
    this.arrow = `arrow-${Math.random().toString(36).slice(2)}`;
    this.drawing = svg("svg", {viewBox: `0 0 ${this.width} ${this.height}`, class: "drawing", role: "application", tabindex: "0",
      "aria-label": `${label}. Arrow keys go from node to node, Enter shows the neighbours of a node, O opens it, plus and minus zoom.`},
      svg("defs", {}, svg("marker", {id: this.arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"},
        svg("path", {d: "M0 0 8 4 0 8z", class: "arrowhead"}))), this.ground);
    this.kinds = el("div", {class: "kinds", role: "group", "aria-label": "Types that are shown", hidden: true}); this.without = new Set();
    this.about = el("div", {class: "about"}, el("span", {class: "soft"}, "Click a node for its neighbours, twice to open it; drag, and zoom with wheel or pinch."));
    const button = (sign, name, act) => el("button", {type: "button", class: "plain", "aria-label": name, title: name, onclick: act}, sign);
    this.box = el("figure", {class: "picture"}, this.drawing, el("div", {class: "tools"},
      button("+", "Zoom in", () => this.zoom(1.3)), button("−", "Zoom out", () => this.zoom(1 / 1.3)), button("⤢", "Show all", () => this.fit())), this.kinds, this.about);
    this.listen();
  }

  /** Adds what is new.  around: id of a node near which it appears.  answers: keys that are marked. */
  add(nodes, edges, around = null, marks = {}) {
    const near = around === null ? null : this.nodes.get(around);
    let refused = 0;
    this.heighten(new Set([...this.nodes.keys(), ...nodes.map(node => node.id)]).size);
    for (const node of nodes) {
      if (this.nodes.has(node.id)) { if (marks[node.id]) this.mark(this.nodes.get(node.id), marks[node.id]); continue; }
      if (this.nodes.size >= MOST) { refused += 1; continue; }
      const turn = (this.nodes.size - 1) * 2.4, reach = near ? 60 : 28 * Math.sqrt(this.nodes.size);
      const own = {...node, x: (near?.x ?? this.width / 2) + reach * Math.cos(turn), y: (near?.y ?? this.height / 2) + reach * Math.sin(turn) * (near ? 1 : this.height / this.width), fixed: false};
      this.nodes.set(node.id, own);
      this.drawNode(own);
      if (marks[node.id]) this.mark(own, marks[node.id]);
    }
    for (const edge of edges) {
      const id = JSON.stringify([edge.head, edge.relation.key, edge.tail]);
      if (this.edges.has(id) || !this.nodes.has(edge.head) || !this.nodes.has(edge.tail)) continue;
      this.edges.set(id, edge);
      this.drawEdge(edge);
    }
    this.spread(); this.drawKinds();
    this.heat = 1; this.moved = this.moved && near !== null;
    this.settle();
    return refused;
  }

  /** Types of nodes that came without, as those of a proof do. */
  async learnTypes() {
    const untyped = [...this.nodes.values()].filter(node => node.kind !== "literal" && !node.types);
    if (!untyped.length) return;
    const {types} = await get(`/page/types?${untyped.map(node => `id=${node.id}`).join("&")}`).catch(() => ({types: {}}));
    for (const node of untyped) node.types = types[node.id] ?? [];
    this.drawKinds();
  }

  /** A button for each type, which hides its nodes and shows them again. */
  drawKinds() {
    const counts = new Map();
    for (const node of this.nodes.values()) if (kindOf(node)) counts.set(kindOf(node), (counts.get(kindOf(node)) ?? 0) + 1);
    this.kinds.hidden = counts.size < 2;
    this.kinds.replaceChildren(...[...counts].sort((a, b) => b[1] - a[1]).slice(0, KINDS).map(([kind, number]) => {
      const button = el("button", {type: "button", class: "chip", "aria-pressed": String(!this.without.has(kind)), onclick: () => {
        if (this.without.has(kind)) this.without.delete(kind); else this.without.add(kind);
        button.setAttribute("aria-pressed", String(!this.without.has(kind)));
        announce(`${visible(kind, 40)} ${this.without.has(kind) ? "hidden" : "shown"}`);
        this.filter();
      }}, el("bdi", {}, visible(kind, 40)), ` ${number}`);
      return button;
    }));
    this.filter();
  }

  filter() {
    for (const node of this.nodes.values()) { node.away = this.without.has(kindOf(node)); node.element.classList.toggle("away", node.away); }
    for (const edge of this.edges.values()) for (const part of [edge.line, edge.text]) part.classList.toggle("away", this.nodes.get(edge.head).away || this.nodes.get(edge.tail).away);
    if (this.focused?.away) this.select(null);
  }

  /** Gives the drawing room for so many nodes; what is there stays in its middle. */
  heighten(number) {
    const next = HEIGHTS.find(([most]) => number <= most)[1];
    if (next <= this.height) return;
    for (const node of this.nodes.values()) node.y += (next - this.height) / 2;
    this.height = next;
    this.drawing.setAttribute("viewBox", `0 0 ${this.width} ${next}`);
  }

  /** Edges between the same two nodes bend apart. */
  spread() {
    const groups = new Map();
    for (const edge of this.edges.values()) {
      const pair = edge.head < edge.tail ? `${edge.head} ${edge.tail}` : `${edge.tail} ${edge.head}`;
      groups.set(pair, [...(groups.get(pair) ?? []), edge]);
    }
    for (const group of groups.values()) group.forEach((edge, place) => {
      edge.bend = (place - (group.length - 1) / 2) * 34 * (edge.head < edge.tail ? 1 : -1);
    });
  }

  drawNode(node) {
    node.shown = visible(node.name || node.key, 26);
    const full = visible(node.name || node.key, 200);
    node.label = svg("text", {"text-anchor": "middle"}, node.shown);
    node.element = svg("g", {class: `node ${node.kind}`, role: "img", "aria-label": full, id: `${this.arrow}-${node.id}`},
      svg("title", {}, full), node.kind === "literal" ? svg("rect", {x: -8, y: -8, width: 16, height: 16, rx: 3}) : svg("circle", {r: 10}), node.label);
    node.element.addEventListener("pointerdown", event => this.press(event, node));
    this.nodeLayer.append(node.element);
  }

  drawEdge(edge) {
    edge.line = svg("path", {class: "edge", "marker-end": `url(#${this.arrow})`});
    edge.text = svg("text", {class: "edge-name", "text-anchor": "middle"}, visible(edge.relation.name || edge.relation.key, 24).replaceAll("_", " "));
    this.edgeLayer.append(edge.line, edge.text);
  }

  mark(node, kind) { node.element.classList.add(kind); }

  // -- layout

  settle() {
    if (this.frame) return;
    if (STILL.matches) { while (this.heat > 0.02) this.step(); this.draw(); if (!this.moved) this.fit(); return; }
    const tick = () => {
      for (let turn = 0; turn < 2 && this.heat > 0.02; turn += 1) this.step();
      this.draw();
      if (!this.moved) this.fit();
      this.frame = this.heat > 0.02 ? requestAnimationFrame(tick) : 0;
      this.box.dataset.still = String(!this.frame);
    };
    this.box.dataset.still = "false";
    this.frame = requestAnimationFrame(tick);
  }

  step() {
    const all = [...this.nodes.values()];
    for (const node of all) { node.dx = (this.width / 2 - node.x) * 0.012; node.dy = (this.height / 2 - node.y) * 0.012 * this.width / this.height; }
    for (let i = 0; i < all.length; i += 1) for (let j = i + 1; j < all.length; j += 1) {
      const a = all[i], b = all[j];
      let x = a.x - b.x, y = (a.y - b.y) * 1.25;
      if (!x && !y) { x = 1; y = i - j; }
      const squared = x * x + y * y;
      if (squared > 250_000) continue;
      const push = 0.6 * REST * REST / squared;
      a.dx += x * push * 0.5; a.dy += y * push * 0.5; b.dx -= x * push * 0.5; b.dy -= y * push * 0.5;
    }
    for (const {head, tail} of this.edges.values()) {
      const a = this.nodes.get(head), b = this.nodes.get(tail);
      if (a === b) continue;
      const x = b.x - a.x, y = b.y - a.y, long = Math.hypot(x, y) || 1, pull = 0.12 * (long - REST) / long;
      a.dx += x * pull; a.dy += y * pull; b.dx -= x * pull; b.dy -= y * pull;
    }
    const most = 26 * this.heat;
    for (const node of all) {
      if (node.fixed) continue;
      const long = Math.hypot(node.dx, node.dy) || 1, way = Math.min(long, most) / long;
      node.x += node.dx * way; node.y += node.dy * way;
    }
    this.heat *= 0.975;
  }

  draw() {
    for (const node of this.nodes.values()) node.element.setAttribute("transform", `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`);
    for (const edge of this.edges.values()) {
      const a = this.nodes.get(edge.head), b = this.nodes.get(edge.tail);
      if (a === b) {
        edge.line.setAttribute("d", `M${a.x - 6} ${a.y - 9}c-26 -40 38 -40 12 0`);
        edge.text.setAttribute("x", a.x); edge.text.setAttribute("y", a.y - 42); continue;
      }
      const x = b.x - a.x, y = b.y - a.y, long = Math.hypot(x, y) || 1, u = x / long, v = y / long;
      const mx = (a.x + b.x) / 2 - v * edge.bend, my = (a.y + b.y) / 2 + u * edge.bend;
      const bx = b.x - mx, by = b.y - my, end = Math.hypot(bx, by) || 1;
      edge.line.setAttribute("d", `M${a.x.toFixed(1)} ${a.y.toFixed(1)}Q${mx.toFixed(1)} ${my.toFixed(1)} ${(b.x - 12 * bx / end).toFixed(1)} ${(b.y - 12 * by / end).toFixed(1)}`);
      const turn = Math.atan2(y, x) * 180 / Math.PI, upright = turn > 90 || turn < -90 ? turn + 180 : turn;
      const tx = (a.x + b.x) / 2 - v * edge.bend / 2, ty = (a.y + b.y) / 2 + u * edge.bend / 2;
      edge.text.setAttribute("transform", `translate(${tx.toFixed(1)} ${ty.toFixed(1)}) rotate(${upright.toFixed(1)}) translate(0 -4)`);
    }
  }

  // -- view

  /** Zooms so that all nodes are seen. */
  fit() {
    const all = [...this.nodes.values()];
    if (!all.length) return;
    const half = node => Math.max(40, 5.5 * node.shown.length * (PHONE.matches ? 1.3 : 1));  // of its name, about
    const [left, right] = [Math.min(...all.map(n => n.x - half(n))), Math.max(...all.map(n => n.x + half(n)))];
    const [top, bottom] = [Math.min(...all.map(n => n.y)) - 40, Math.max(...all.map(n => n.y)) + 50];
    const scale = Math.min(1.5, this.width / (right - left), this.height / (bottom - top));
    this.look(scale, this.width / 2 - scale * (left + right) / 2, this.height / 2 - scale * (top + bottom) / 2);
  }

  look(scale, x, y) {
    this.view = {scale, x, y};
    this.ground.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${scale.toFixed(4)})`);
    this.ground.style.setProperty("--letters", String(Math.min(2, Math.max(0.75, 1 / scale))));  // names stay readable
  }

  zoom(factor, at = {x: this.width / 2, y: this.height / 2}) {
    const {x, y, scale} = this.view, next = Math.min(4, Math.max(0.15, scale * factor)), real = next / scale;
    this.moved = true;
    this.look(next, at.x - (at.x - x) * real, at.y - (at.y - y) * real);
  }

  /** A point of the screen in units of the drawing. */
  point(event) {
    const matrix = this.drawing.getScreenCTM();
    return matrix ? new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse()) : {x: 0, y: 0};
  }

  // -- what people do

  listen() {
    const fingers = new Map();
    this.drawing.addEventListener("wheel", event => {
      if (!event.ctrlKey && document.activeElement !== this.drawing) return;  // the page goes on scrolling
      event.preventDefault();
      this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 300), this.point(event));
    }, {passive: false});
    this.drawing.addEventListener("pointerdown", event => {
      fingers.set(event.pointerId, this.point(event));
      if (!this.held && event.button === 0) this.drawing.setPointerCapture(event.pointerId);
    });
    this.drawing.addEventListener("pointermove", event => {
      const before = fingers.get(event.pointerId), now = this.point(event);
      if (!before) return;
      if (this.held && fingers.size === 1) { this.dragNode(now); return; }
      fingers.set(event.pointerId, now);
      this.moved = true;
      if (fingers.size === 2) {
        const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
        const ratio = Math.hypot(now.x - other.x, now.y - other.y) / (Math.hypot(before.x - other.x, before.y - other.y) || 1);
        this.zoom(ratio, {x: (now.x + other.x) / 2, y: (now.y + other.y) / 2});
      } else this.look(this.view.scale, this.view.x + now.x - before.x, this.view.y + now.y - before.y);
    });
    const release = event => { fingers.delete(event.pointerId); this.release(event.type === "pointerup"); };
    for (const name of ["pointerup", "pointercancel"]) this.drawing.addEventListener(name, release);
    this.drawing.addEventListener("keydown", event => this.key(event));
    this.drawing.addEventListener("focus", () => { if (!this.focused && this.drawing.matches(":focus-visible")) this.select([...this.nodes.values()].find(node => !node.away) ?? null); });
  }

  press(event, node) {
    if (event.button !== 0) return;
    this.held = {node, from: this.point(event), moved: false};
    this.drawing.setPointerCapture(event.pointerId);
  }

  dragNode(now) {
    const {held, view} = this;
    if (!held.moved && Math.hypot(now.x - held.from.x, now.y - held.from.y) < 4) return;
    held.moved = true; held.node.fixed = true; this.moved = true;
    held.node.x = (now.x - view.x) / view.scale; held.node.y = (now.y - view.y) / view.scale;
    this.heat = Math.max(this.heat, 0.12);
    this.draw(); this.settle();
  }

  release(whole) {
    const {held} = this;
    this.held = null;
    if (!held || held.moved || !whole) return;
    this.select(held.node);
    if (this.waiting?.node === held.node) { clearTimeout(this.waiting.timer); this.waiting = null; this.open(held.node); return; }
    if (this.waiting) clearTimeout(this.waiting.timer);
    this.waiting = {node: held.node, timer: setTimeout(() => { this.waiting = null; this.expand(held.node); }, DOUBLE)};
  }

  key(event) {
    const steps = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (steps[event.key]) this.step_to(...steps[event.key]);
    else if (event.key === "Enter" && this.focused) this.expand(this.focused);
    else if (event.key.toLowerCase() === "o" && this.focused) this.open(this.focused);
    else if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit();
    else if (event.key === "Escape" && this.focused) this.select(null);
    else return;
    event.preventDefault(); event.stopPropagation();
  }

  step_to(x, y) {
    const from = this.focused ?? [...this.nodes.values()].find(node => !node.away);
    if (!from) return;
    if (!this.focused) { this.select(from); return; }
    let best = null, least = Infinity;
    for (const node of this.nodes.values()) {
      const dx = node.x - from.x, dy = node.y - from.y, along = dx * x + dy * y, off = Math.abs(dx * y) + Math.abs(dy * x);
      if (!node.away && node !== from && along > 1 && along + 2 * off < least) { best = node; least = along + 2 * off; }
    }
    if (best) this.select(best);
  }

  select(node) {
    this.focused?.element.classList.remove("chosen");
    this.focused = node;
    if (!node) { this.drawing.removeAttribute("aria-activedescendant"); this.about.replaceChildren(); return; }
    node.element.classList.add("chosen");
    this.drawing.setAttribute("aria-activedescendant", node.element.id);
    const facts = node.degree === undefined ? "" : count(node.degree, "fact");
    const kinds = (node.types ?? []).slice(0, 3).map(type => visible(type, 40)).join(", ");
    this.about.replaceChildren(...[el("bdi", {class: "strong"}, visible(node.name || node.key, 160)), el("span", {class: "soft"}, [kinds, facts].filter(Boolean).join(" · ")),
      node.kind === "literal" ? "" : el("span", {class: "buttons"},
        el("button", {type: "button", class: "plain", disabled: this.expanded.has(node.id), onclick: () => this.expand(node)}, "Neighbours"),
        el("a", {class: "plain", href: address(node.key)}, "Open"))].filter(Boolean));
    announce(`${visible(node.name || node.key, 160)} ${kinds} ${facts}`);
  }

  /** Adds the neighbours of a node. */
  async expand(node) {
    if (node.kind === "literal" || this.expanded.has(node.id)) return;
    this.expanded.add(node.id);
    node.element.classList.add("loading");
    const note = text => { this.about.append(el("span", {class: "soft"}, text)); announce(text); };
    try {
      const found = await get("/page/neighbourhood", {key: node.key, limit: EXPANDED});
      const before = this.nodes.size, refused = this.add(found.nodes, found.edges, node.id);
      Object.assign(node, {degree: found.total, types: found.nodes[0].types});
      if (this.focused === node) this.select(node);
      const more = found.total - found.edges.length;
      if (refused) note(`The picture is full with ${MOST} nodes; open a node to go on from it.`);
      else note(`${count(this.nodes.size - before, "new node")}${more > 0 ? `; ${count(more, "fact")} not shown, open it to see all` : ""}.`);
    } catch (fault) { this.expanded.delete(node.id); note(fault.message); }
    finally { node.element.classList.remove("loading"); }
  }

  open(node) { if (node.kind !== "literal") location.assign(address(node.key)); }
}

/** Nodes and edges of facts. */
export function ofFacts(facts) {
  const nodes = new Map(), edges = [];
  for (const fact of facts) {
    nodes.set(fact.head.id, fact.head); nodes.set(fact.tail.id, fact.tail);
    edges.push({triple: fact.triple, head: fact.head.id, relation: fact.relation, tail: fact.tail.id});
  }
  return {nodes: [...nodes.values()], edges};
}
