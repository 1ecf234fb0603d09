// One node's CPUs: sockets hold NUMA nodes, these L3 groups, these cores, these CPUs. The colour is the pool's, the
// height of the fill is how busy the CPU is. Elements are made once a topology; a frame changes styles alone.

const POOL_COLOURS = { reclaim: "reclaimed", reserve: "system", share: "shared" };

export function colourOfPool(pool) {
  return POOL_COLOURS[pool] ?? (pool.startsWith("share") ? "shared" : "dedicated");
}

export class CpuMap {
  constructor(holder) {
    this.holder = holder;
    this.clear();
  }

  clear() {
    this.topology = "";
    this.cells = [];
    this.holder.replaceChildren();
  }

  show(map) {
    const topology = JSON.stringify(map.cpus.map((cpu) => cpu.slice(0, 5)));
    if (topology !== this.topology) this.build(map, topology);
    map.cpus.forEach((cpu, at) => this.paint(this.cells[at], cpu, map.of[at].map((number) => map.pools[number])));
  }

  build(map, topology) {
    this.clear();
    this.topology = topology;
    let path = [];
    const boxes = [];
    for (const [socket, numa, l3, core, id] of map.cpus) {
      const wanted = [socket, numa, l3, core];
      const same = wanted.findIndex((value, level) => value !== path[level]);
      for (let level = same < 0 ? 4 : same; level < 4; level++) {
        const parent = level === 0 ? this.holder : boxes[level - 1].inner;
        boxes[level] = box(level, wanted[level]);
        parent.append(boxes[level].outer);
      }
      path = wanted;
      const cell = document.createElement("span");
      cell.className = "cpu";
      cell.dataset.cpu = id;
      boxes[3].inner.append(cell);
      this.cells.push(cell);
    }
  }

  paint(cell, cpu, pools) {
    const [socket, numa, , core, id, busy] = cpu;
    // Reclaimed work that shares a CPU with tenants: the tenant's colour, a dashed frame.
    const shown = pools.find((pool) => pool !== "reclaim" && pool !== "reserve") ?? pools[0];
    cell.style.setProperty("--pool", shown === undefined ? "var(--machine)" : `var(--${colourOfPool(shown)})`);
    cell.style.setProperty("--busy", (busy ?? 0) / 100);
    cell.classList.toggle("both", pools.length > 1);
    const used = busy === null ? "not measured" : `${busy} % busy`;
    cell.title = `CPU ${id}: ${pools.join(" and ") || "no pool"}, ${used}, core ${core}, NUMA ${numa}, socket ${socket}`;
  }
}

function box(level, number) {
  const outer = document.createElement("div");
  outer.className = ["socket", "numa", "l3", "core"][level];
  if (level > 1) return { outer, inner: outer };
  const label = document.createElement("b");
  label.textContent = level === 0 ? `socket ${number}` : `NUMA ${number}`;
  outer.append(label);
  if (level === 0) return { outer, inner: outer };
  const inner = document.createElement("div");
  inner.className = "cores";
  outer.append(inner);
  return { outer, inner };
}
