// The live page: hears a frame a second, keeps what it says, and draws what changed.

import { CpuMap } from "/cpu_map.js";
import { HeatMap, legendOf, ratio } from "/heat_map.js";

const SILENT_MS = 5000;
const SHOWN_EVENTS = 200;
const STATE_ORDER = ["late", "unready", "unknown", "ready"];
const one = (id) => document.getElementById(id);

const nodes = new Map();
const events = [];
let columns = [];
let source = null;
let opened = new URLSearchParams(location.hash.slice(1)).get("node");
let heardAt = Date.now();
let trouble = "";
let pause = "";

const map = new HeatMap(one("map"), open, (node) => { one("spoken").textContent = node ? inWords(node) : ""; });
const cpus = new CpuMap(one("cpus"));

function connect() {
  source?.close();
  source = new EventSource(opened ? `/v1/frames?node=${encodeURIComponent(opened)}` : "/v1/frames");
  source.onmessage = (message) => take(JSON.parse(message.data));
}

function take(frame) {
  heardAt = Date.now();
  if (frame.first) {
    // A connection begins with everything: what was known before may be of another life of the server.
    columns = frame.columns;
    nodes.clear();
    events.length = 0;
  }
  let moved = Boolean(frame.first) || frame.gone.length > 0;
  const changed = [];
  for (const row of frame.nodes) {
    const node = Object.fromEntries(columns.map((name, at) => [name, row[at]]));
    moved ||= !nodes.has(node.name);
    nodes.set(node.name, node);
    changed.push(node.name);
  }
  for (const name of frame.gone) nodes.delete(name);
  events.push(...frame.events);
  events.splice(0, events.length - SHOWN_EVENTS);
  trouble = frame.bus ? `silence is not judged: ${frame.bus}` : "";
  pause = [
    ...(frame.paused.length ? [`nothing is done to silent nodes: ${frame.paused.join("; ")}`] : []),
    ...(frame.evictions_paused || []).map((whom) => `evictions are paused: ${whom}`),
  ].join("; ");
  if (moved || (changed.length && (one("order").value !== "name" || one("search").value))) arrange();
  else map.update(changed);
  if (frame.events.length || frame.first) drawFeed();
  if (changed.length || moved) drawSummary();
  // One host has nothing to choose from.
  if (frame.first && nodes.size === 1 && !opened) open([...nodes.keys()][0]);
  else if (opened) drawNode(frame.cpus);
  drawBanner();
}

function arrange() {
  const wanted = matcher(one("search").value);
  const order = one("order").value;
  const shown = [...nodes.values()].filter(wanted);
  const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  const value = {
    name: () => 0,
    load: (node) => -(ratio(node.used_cpu_millis, node.cpu_millis) ?? -1),
    offer: (node) => -(node.offered_cpu_millis ?? -1),
    state: (node) => STATE_ORDER.indexOf(node.state),
  }[order];
  shown.sort((a, b) => value(a) - value(b) || byName(a, b));
  map.show(shown.map((node) => node.name), nodes, one("colour").value);
}

// Words with a colon compare a property, others must stand in the name.
function matcher(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (node) => words.every((word) => {
    const [key, value] = word.split(":", 2);
    return value === undefined ? node.name.includes(word) : String(node[key] ?? "").startsWith(value);
  });
}

function drawSummary() {
  const all = [...nodes.values()];
  const count = (state) => all.filter((node) => node.state === state).length;
  const sum = (key) => all.reduce((total, node) => total + (node[key] ?? 0), 0) / 1000;
  const words = [all.length === 1 ? "1 node" : `${all.length} nodes`];
  for (const state of ["ready", "unready", "late", "unknown"]) if (count(state)) words.push(`${count(state)} ${state}`);
  words.push(`${cores(sum("used_cpu_millis"))} of ${cores(sum("cpu_millis"))} CPUs used`);
  words.push(`${cores(sum("offered_cpu_millis"))} offered`);
  one("summary").textContent = words.join(" · ");
  drawRollout(all);
}

function drawRollout(all) {
  const revisions = new Map();
  for (const node of all) revisions.set(node.revision, (revisions.get(node.revision) ?? 0) + 1);
  const known = [...revisions.keys()].filter((revision) => revision !== null).sort((a, b) => b - a);
  const refused = all.filter((node) => node.refused).length;
  const bar = element("div", "bar");
  for (const revision of known) {
    const part = element("i", revision === known[0] ? "" : "old");
    part.style.width = `${(100 * revisions.get(revision)) / all.length}%`;
    part.title = `revision ${revision}: ${revisions.get(revision)} nodes`;
    bar.append(part);
  }
  const words = known.slice(0, 4).map((revision) => `revision ${revision}: ${revisions.get(revision)}`);
  if (revisions.has(null)) words.push(`not told: ${revisions.get(null)}`);
  if (refused) words.push(`refused on ${refused}`);
  one("rollout").replaceChildren(bar, element("p", "soft", words.join(" · ") || "no node yet"));
}

function drawFeed() {
  const rows = events.slice().reverse().map((event) => {
    const row = element("li");
    const time = element("time", "", new Date(event.at).toLocaleTimeString());
    time.dateTime = event.at;
    const phase = element("span", `phase ${event.phase}`, event.mode === "enforce" ? event.phase : `${event.phase}, ${event.mode}`);
    const pod = element("b", "", `${event.namespace}/${event.pod}`);
    const bound = event.observed === null || event.threshold === null ? "" : `: ${short(event.observed)} against ${short(event.threshold)}`;
    const why = element("div", "soft", `${event.node} · ${event.plugin}, ${event.scope}${bound}`);
    row.append(time, " ", phase, " ", pod, why, element("div", "", event.text));
    return row;
  });
  one("feed").replaceChildren(...(rows.length ? rows : [element("li", "soft", "none yet")]));
}

function drawNode(cpuMap) {
  const node = nodes.get(opened);
  one("node-name").textContent = opened;
  const facts = node ? factsOf(node) : [["state", "not heard of"]];
  one("facts").replaceChildren(...facts.flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)]));
  if (!cpuMap) return;
  cpus.show(cpuMap);
  const rows = cpuMap.pods.map(([namespace, name, pool, list, millis]) => {
    const row = element("tr");
    row.append(element("td", "", `${namespace}/${name}`), element("td", "", pool),
      element("td", "", millis === null ? "–" : cores(millis / 1000)), element("td", "", list || "–"));
    return row;
  });
  one("pods").tBodies[0].replaceChildren(...rows);
  one("left-out").textContent = cpuMap.pods_left_out ? `${cpuMap.pods_left_out} further pods are not shown` : "";
}

function factsOf(node) {
  const facts = [["state", node.why ? `${node.state}: ${node.why}` : node.state]];
  if (node.mode) facts.push(["mode", node.mode]);
  facts.push(["CPU", `${amount(node.used_cpu_millis)} of ${amount(node.cpu_millis)} used`]);
  facts.push(["memory", `${bytes(node.used_memory_bytes)} of ${bytes(node.memory_bytes)} used`]);
  facts.push(["offered", `${amount(node.offered_cpu_millis)} CPUs, ${bytes(node.offered_memory_bytes)}${node.stale ? " (stale)" : ""}`]);
  facts.push(["pods", node.pods.map((count, at) => `${count} ${["system", "dedicated", "shared", "reclaimed"][at]}`).join(", ")]);
  facts.push(["revision", node.revision === null ? "not told" : `${node.revision}${node.refused ? `, refused by ${node.refused} services` : ""}`]);
  return facts;
}

function inWords(node) {
  return `${node.name}, ${node.state}, ${amount(node.used_cpu_millis)} of ${amount(node.cpu_millis)} CPUs used, ${amount(node.offered_cpu_millis)} offered`;
}

function drawBanner() {
  const silent = Date.now() - heardAt > SILENT_MS;
  const words = silent ? `no news from Sublet for ${Math.round((Date.now() - heardAt) / 1000)} s: what you see is old` : trouble || pause;
  one("banner").className = silent ? "bad" : "";
  one("banner").textContent = words;
  one("banner").hidden = !words;
}

function open(name) {
  opened = name;
  one("node").hidden = !name;
  cpus.clear();
  one("pods").tBodies[0].replaceChildren();
  one("left-out").textContent = "";
  map.mark(name);
  history.replaceState(null, "", name ? `#node=${encodeURIComponent(name)}` : location.pathname);
  if (name) drawNode(null);
  connect();
}

function drawLegend() {
  one("legend").replaceChildren(...legendOf(one("colour").value).map(([word, name, alpha]) => {
    const entry = element("span");
    const mark = element("i");
    mark.style.background = `var(--${name})`;
    mark.style.opacity = alpha;
    entry.append(mark, word);
    return entry;
  }), element("span", "", "╱ not ready"));
}

function theme(change) {
  const dark = () => document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (change) document.documentElement.dataset.theme = dark() ? "light" : "dark";
  map.themeChanged();
}

function next(select) {
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  select.dispatchEvent(new Event("change"));
}

function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

const cores = (count) => (count >= 100 ? Math.round(count).toLocaleString() : (Math.round(count * 10) / 10).toString());
const amount = (millis) => (millis === null ? "–" : cores(millis / 1000));
const bytes = (count) => (count === null ? "–" : `${(count / 2 ** 30).toFixed(1)} GiB`);
const short = (number) => (Number.isInteger(number) ? number : Number(number.toPrecision(3))).toString();

one("search").addEventListener("input", arrange);
one("controls").addEventListener("submit", (event) => event.preventDefault());
one("order").addEventListener("change", arrange);
one("colour").addEventListener("change", () => { drawLegend(); arrange(); });
one("close").addEventListener("click", () => open(null));
one("theme").addEventListener("click", () => theme(true));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(false));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (document.activeElement === one("search") && one("search").value) { one("search").value = ""; arrange(); }
    else if (opened) open(null);
    one("map").focus({ preventScroll: true });
  }
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); one("search").focus(); }
  if (event.key === "c") next(one("colour"));
  if (event.key === "o") next(one("order"));
  if (event.key === "d") theme(true);
});
setInterval(drawBanner, 1000);
drawLegend();
if (opened) open(opened);
else connect();
