// The map of nodes: a cell each on one canvas, so that ten thousand of them scroll as one picture.
// Only cells that changed are drawn again; all of them only when their order, size or colours change.

const GAP = 2;
const LARGEST = 26;
const SMALLEST = 7;
const STATES = { ready: "good", unready: "reclaimed", late: "lack", unknown: "machine" };
const CLASS_COLOURS = ["system", "dedicated", "shared", "reclaimed"];

export function colourOf(node, by) {
  if (by === "state") return [STATES[node.state] ?? "machine", 1];
  if (by === "class") {
    const used = node.class_cpu_millis;
    const most = used.reduce((best, millis, at) => (millis !== null && (best < 0 || millis > used[best]) ? at : best), -1);
    return most < 0 ? ["machine", 0.25] : [CLASS_COLOURS[most], 0.85];
  }
  const part = ratio(by === "offer" ? node.offered_cpu_millis : node.used_cpu_millis, node.cpu_millis);
  return part === null ? ["machine", 0.25] : [by === "offer" ? "reclaimed" : "shared", 0.12 + 0.88 * Math.min(1, part)];
}

export function legendOf(by) {
  if (by === "state") return Object.entries(STATES).map(([word, name]) => [word, name, 1]);
  if (by === "class") {
    const words = ["system", "dedicated", "shared", "reclaimed"];
    return [...words.map((word, at) => [word, CLASS_COLOURS[at], 0.85]), ["not known", "machine", 0.25]];
  }
  const name = by === "offer" ? "reclaimed" : "shared";
  const steps = [0, 0.25, 0.5, 0.75, 1].map((part) => [`${part * 100} %`, name, 0.12 + 0.88 * part]);
  return [...steps, ["not known", "machine", 0.25]];
}

export function ratio(part, whole) {
  return part === null || part === undefined || !whole ? null : part / whole;
}

export class HeatMap {
  constructor(canvas, onOpen, onPoint) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.names = [];
    this.places = new Map();
    this.pointed = -1;
    this.opened = null;
    this.onOpen = onOpen;
    this.onPoint = onPoint;
    this.colours = new Map();
    canvas.addEventListener("click", (event) => this.open(this.at(event)));
    canvas.addEventListener("mousemove", (event) => this.point(this.at(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.layOut()).observe(canvas.parentElement);
  }

  // Show these nodes in this order.
  show(names, nodes, by) {
    const pointed = this.names[this.pointed];
    this.names = names;
    this.nodes = nodes;
    this.by = by;
    this.places = new Map(names.map((name, place) => [name, place]));
    this.pointed = this.places.get(pointed) ?? -1;
    this.canvas.dataset.nodes = names.length;
    this.layOut();
  }

  // Draw only these again.
  update(names) {
    for (const name of names) {
      const place = this.places.get(name);
      if (place !== undefined) this.draw(place);
    }
  }

  themeChanged() {
    this.colours.clear();
    this.layOut();
  }

  layOut() {
    const width = this.canvas.parentElement.clientWidth;
    if (!width || !this.nodes) return;
    // As large as still leaves most of the nodes on a screen of usual height.
    const wanted = Math.floor(Math.sqrt((width * 600) / Math.max(1, this.names.length))) - GAP;
    this.cell = Math.max(SMALLEST, Math.min(LARGEST, wanted));
    this.across = Math.max(1, Math.floor((width + GAP) / (this.cell + GAP)));
    const rows = Math.max(1, Math.ceil(this.names.length / this.across));
    const scale = window.devicePixelRatio || 1;
    const height = rows * (this.cell + GAP);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    for (let place = 0; place < this.names.length; place++) this.draw(place);
  }

  draw(place) {
    const context = this.context;
    const step = this.cell + GAP;
    const x = (place % this.across) * step;
    const y = Math.floor(place / this.across) * step;
    const node = this.nodes.get(this.names[place]);
    const [name, alpha] = colourOf(node, this.by);
    context.clearRect(x - 1, y - 1, step, step);
    context.globalAlpha = alpha;
    context.fillStyle = this.colour(name);
    context.fillRect(x, y, this.cell, this.cell);
    context.globalAlpha = 1;
    // Whatever the colour stands for, a node that is not well is marked: by shape, not by colour alone.
    if (node.state !== "ready") {
      context.strokeStyle = this.colour("ink");
      context.beginPath();
      context.moveTo(x + 1, y + this.cell - 1);
      context.lineTo(x + this.cell - 1, y + 1);
      context.stroke();
    }
    if (place === this.pointed || this.names[place] === this.opened) {
      context.strokeStyle = this.colour("ink");
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, this.cell - 2, this.cell - 2);
      context.lineWidth = 1;
    }
  }

  colour(name) {
    if (!this.colours.has(name)) {
      this.colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    }
    return this.colours.get(name);
  }

  at(event) {
    const step = this.cell + GAP;
    const column = Math.floor(event.offsetX / step);
    const place = Math.floor(event.offsetY / step) * this.across + column;
    return column < this.across && place < this.names.length ? place : -1;
  }

  point(place) {
    if (place === this.pointed) return;
    const before = this.pointed;
    this.pointed = place;
    for (const changed of [before, place]) if (changed >= 0 && changed < this.names.length) this.draw(changed);
    const node = place < 0 ? null : this.nodes.get(this.names[place]);
    this.canvas.title = node ? node.name : "";
    this.onPoint(node);
  }

  open(place) {
    if (place >= 0 && place < this.names.length) this.onOpen(this.names[place]);
  }

  mark(name) {
    const before = this.places.get(this.opened);
    this.opened = name;
    for (const changed of [before, this.places.get(name)]) if (changed !== undefined) this.draw(changed);
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.across, ArrowDown: this.across };
    if (event.key in steps) {
      event.preventDefault();
      const wanted = Math.max(0, this.pointed) + (this.pointed < 0 ? 0 : steps[event.key]);
      if (wanted >= 0 && wanted < this.names.length) this.point(wanted);
      this.scrollToPointed();
    } else if (event.key === "Enter") {
      this.open(this.pointed);
    }
  }

  scrollToPointed() {
    const top = this.canvas.getBoundingClientRect().top + Math.floor(this.pointed / this.across) * (this.cell + GAP);
    if (top < 0) window.scrollBy(0, top - 2 * this.cell);
    if (top > window.innerHeight - 2 * this.cell) window.scrollBy(0, top - window.innerHeight + 3 * this.cell);
  }
}
