// One schedule as a grid with a column for each thread, of which only the visible rows exist.

const ROW = 40;
const HEAD = 44;
const EXTRA_ROWS = 8;
/** Browsers do not lay out much more than this; longer lists scroll in larger steps. */
const TALLEST = 8000000;
const NUMBERS = 52;
const TEXT = 256;
const LEAST_TEXT = 165;
const NARROWEST = 40;

class Lane {
  constructor(schedule, number, actions) {
    this.schedule = schedule;
    this.number = number;
    this.actions = actions;
    this.current = -1;
    this.marked = new Set();
    this.found = new Set();
    this.shown = new Uint8Array(schedule.length);
    this.rows = [];
    this.made = new Map();
    this.sizer = element("div", { class: "sizer", role: "rowgroup" });
    this.arrows = svgElement("svg", { class: "arrows", "aria-hidden": "true" });
    this.head = element("div", { class: "heads", role: "row", "aria-rowindex": "1" });
    this.grid = element(
      "div",
      {
        class: "grid scroll",
        role: "grid",
        tabindex: "0",
        "aria-label": `${schedule.title}, one column for each thread`,
        "aria-readonly": "true",
      },
      element("div", { role: "rowgroup", class: "stick" }, this.head),
      this.sizer,
    );
    this.flows = element("ul", { class: "flows" });
    this.root = this.panel();
    this.grid.addEventListener("scroll", () => this.drawSoon());
    new ResizeObserver(() => requestAnimationFrame(() => this.layOut())).observe(this.grid);
    this.fold();
  }

  panel() {
    const { schedule } = this;
    const id = `lane-${this.number}`;
    const title = element("h2", { id }, schedule.title);
    const label = element("span", { class: "replay" }, schedule.replay);
    const parts = [element("div", { class: "title" }, title, label), this.grid];
    if (schedule.flows.length > 0) {
      parts.push(element("h3", {}, "Data-flows that only this one has"), this.flows);
      schedule.flows.forEach((flow, index) => this.flows.append(this.flowItem(flow, index)));
    }
    return element(
      "section",
      { class: `panel lane ${schedule.side}`, "aria-labelledby": id, "data-lane": this.number },
      ...parts,
    );
  }

  flowItem(flow, index) {
    const { schedule } = this;
    const end = (event) => `${threadOf(event).id} ${kindOf(event)} at ${frameOf(event).place}`;
    const from = flow.write === null ? "initial value" : end(flow.write);
    const name = text(events.object[flow.read]) ?? "";
    const causes = (flow.follows ?? []).map(end).join(" and ");
    const show = () => this.actions.showFlow(this, index);
    const hide = () => this.actions.hideFlow();
    const button = element(
      "button",
      {
        type: "button",
        class: "flow",
        "data-flow": index,
        onmouseenter: show,
        onmouseleave: hide,
        onfocus: show,
        onblur: hide,
        onclick: () => this.actions.go(this, schedule.stepOf.get(flow.read)),
      },
      element("code", {}, `${name} = ${text(flow.value) ?? "?"}`),
      element("span", {}, `${from} → ${end(flow.read)}`),
      causes ? element("em", {}, `follows from the other source of: ${causes}`) : null,
    );
    return element("li", {}, button);
  }

  /** Only the events that matter. */
  fold() {
    this.shown.fill(0);
    for (const event of this.schedule.shown) {
      const step = this.schedule.stepOf.get(event);
      if (step !== undefined) this.shown[step] = 1;
    }
    if (this.schedule.shown.length === 0) this.shown.fill(1);
    this.arrange();
  }

  unfold(from = 0, to = this.schedule.length) {
    this.shown.fill(1, from, to);
    this.arrange();
  }

  isUnfolded() {
    return !this.hasFolds;
  }

  reveal(step) {
    if (!this.shown[step]) this.unfold(step, step + 1);
  }

  /** The rows: an event's step, or the range of steps that a fold hides. */
  arrange() {
    this.rows = [];
    let step = 0;
    while (step < this.schedule.length) {
      if (this.shown[step]) {
        this.rows.push({ from: step, to: step + 1, fold: false });
        step += 1;
        continue;
      }
      const from = step;
      while (step < this.schedule.length && !this.shown[step]) step += 1;
      this.rows.push({ from, to: step, fold: true });
    }
    this.starts = this.rows.map((row) => row.from);
    this.hasFolds = this.rows.some((row) => row.fold);
    this.grid.setAttribute("aria-rowcount", this.rows.length + 1);
  }

  /** The row that has the step. */
  rowOf(step) {
    return countUpTo(this.starts, step) - 1;
  }

  /** The nearest event that is shown, from `step` on in a direction; `step` when there is none. */
  neighbour(step, direction) {
    let next = step + direction;
    while (next >= 0 && next < this.schedule.length && !this.shown[next]) next += direction;
    return next >= 0 && next < this.schedule.length ? next : step;
  }

  /** The shown event nearest to one of the ends. */
  extreme(direction) {
    const beyond = direction > 0 ? -1 : this.schedule.length;
    return this.neighbour(beyond, direction);
  }

  /** The threads that have shown events. */
  threadsShown() {
    const threads = new Set();
    for (const row of this.rows) {
      if (!row.fold) threads.add(events.thread[this.schedule.order[row.from]]);
    }
    return threads;
  }

  setColumns(threads) {
    this.columns = new Map(threads.map((thread, column) => [thread, column]));
    this.grid.setAttribute("aria-colcount", threads.length + 1);
    this.layOut();
  }

  /** Where the columns stand. A row has one event, so that its text may reach over later columns. */
  layOut() {
    if (!this.columns) return;
    const count = this.columns.size;
    const room = this.grid.clientWidth - NUMBERS - TEXT;
    const between = count > 1 ? Math.floor(room / (count - 1)) : 0;
    this.spacing = Math.max(NARROWEST, Math.min(between, TEXT));
    const across = NUMBERS + this.spacing * (count - 1);
    // What has to be scrolled anyway may be as wide as it likes.
    const fits = across + LEAST_TEXT <= this.grid.clientWidth;
    const width = fits ? this.grid.clientWidth : across + TEXT;
    this.width = width;
    this.sizer.style.width = `${width}px`;
    this.head.style.width = `${width}px`;
    this.head.replaceChildren(
      element("span", { class: "number", role: "columnheader", "aria-colindex": "1" }, "step"),
    );
    for (const [thread, column] of this.columns) {
      const { id, entry } = data.threads[thread];
      const head = element(
        "span",
        { class: `head ${threadColour(thread)}`, role: "columnheader", "aria-colindex": column + 2, title: `${id} ${entry}` },
        element("b", {}, id),
        element("small", {}, entry),
      );
      head.style.left = `${this.left(column)}px`;
      head.style.width = `${column === count - 1 ? LEAST_TEXT : this.spacing}px`;
      this.head.append(head);
    }
    // The rows that exist stand where the columns were.
    this.place(new Map());
    this.draw();
  }

  left(column) {
    return NUMBERS + column * this.spacing;
  }

  drawSoon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** From rows to the scrolled height and back, for lists that are taller than browsers lay out. */
  geometry() {
    const full = this.rows.length * ROW;
    const height = Math.min(full, TALLEST);
    const view = Math.max(this.grid.clientHeight - HEAD, ROW);
    const ratio = height > view ? (full - view) / (height - view) : 1;
    const top = this.grid.scrollTop * ratio;
    return { height, view, ratio, top, shift: this.grid.scrollTop - top };
  }

  draw() {
    if (!this.columns) return;
    const { height, view, top, shift } = this.geometry();
    const first = Math.max(0, Math.floor(top / ROW) - EXTRA_ROWS);
    const last = Math.min(this.rows.length, Math.ceil((top + view) / ROW) + EXTRA_ROWS);
    this.sizer.style.height = `${height}px`;
    const rows = new Map();
    let active = null;
    for (let index = first; index < last; index += 1) {
      const row = this.rows[index];
      const key = row.fold ? `${row.from}-${row.to}` : row.from;
      const made = this.made.get(key) ?? (row.fold ? this.foldRow(row) : this.eventRow(row));
      made.style.top = `${index * ROW + shift}px`;
      made.setAttribute("aria-rowindex", index + 2);
      if (!row.fold) this.mark(made, row.from);
      if (!row.fold && row.from === this.current) active = made.id;
      rows.set(key, made);
    }
    this.place(rows);
    if (active) this.grid.setAttribute("aria-activedescendant", active);
    else this.grid.removeAttribute("aria-activedescendant");
    this.drawArrows(height, shift, top, view);
  }

  /** Rows that stay are left where they are, so that a click or the focus is not lost. */
  place(rows) {
    for (const [key, row] of this.made) if (rows.get(key) !== row) row.remove();
    this.made = rows;
    let next = this.sizer.firstChild;
    for (const row of rows.values()) {
      if (row === next) next = next.nextSibling;
      else this.sizer.insertBefore(row, next);
    }
    if (!this.arrows.isConnected) this.sizer.append(this.arrows);
  }

  foldRow({ from, to }) {
    const count = to - from;
    const words = `${count} ${count === 1 ? "event" : "events"} folded`;
    const button = element(
      "button",
      { type: "button", class: "unfold", "aria-label": `${words}, unfold`, onclick: () => this.actions.unfold(this, from, to) },
      words,
    );
    return element(
      "div",
      { class: "row fold", role: "row" },
      element("span", { role: "gridcell", class: "all", "aria-colindex": "1", "aria-colspan": this.columns.size + 1 }, button),
    );
  }

  eventRow({ from: step }) {
    const { schedule } = this;
    const event = schedule.order[step];
    const column = this.columns.get(events.thread[event]) ?? 0;
    const { kind, object, value } = schedule.words(event);
    const cell = element(
      "span",
      { class: "event", role: "gridcell", "aria-colindex": column + 2 },
      element("span", { class: "unseen" }, `${threadOf(event).id} `),
      element(
        "span",
        { class: "what" },
        kind,
        ...(object ? [" ", element("b", {}, object)] : []),
        ...(value === null ? [] : [" = ", element("span", { class: "value" }, value)]),
      ),
      element(
        "span",
        { class: "where" },
        frameOf(event).place,
        ...this.notes(event).map((note) => element("em", { class: note.split(" ")[0] }, note)),
      ),
    );
    cell.style.left = `${this.left(column)}px`;
    cell.style.width = `${this.width - this.left(column)}px`;
    return element(
      "div",
      {
        role: "row",
        id: `row-${this.number}-${step}`,
        "data-step": step,
        "data-id": events.id[event],
        onclick: () => this.actions.go(this, step),
      },
      element("span", { class: "number", role: "rowheader", "aria-colindex": "1" }, `${step + 1}`),
      cell,
    );
  }

  /** What is to be said of an event beside what it does. */
  notes(event) {
    const notes = [];
    const named = data.cause.indexOf(event);
    if (named >= 0) notes.push(`cause ${named + 1}`);
    if (this.schedule.isFlipped.has(event)) notes.push("reordered");
    if (isAlone(event, this.schedule)) notes.push("only here");
    return notes;
  }

  /** How a row looks now. */
  mark(row, step) {
    const event = this.schedule.order[step];
    const classes = ["row", threadColour(events.thread[event])];
    if (event === data.failure) classes.push("failure");
    if (this.schedule.changed.has(event)) classes.push("changed");
    if (step === this.current) classes.push("current");
    if (event === this.twin) classes.push("twin");
    if (this.marked.has(event)) classes.push("marked");
    if (this.found.has(step)) classes.push("found");
    row.className = classes.join(" ");
    row.setAttribute("aria-selected", step === this.current);
  }

  /** The y of the middle of an event's row, within the whole list. */
  middle(event) {
    return this.rowOf(this.schedule.stepOf.get(event)) * ROW + ROW / 2;
  }

  drawArrows(height, shift, top, view) {
    this.arrows.setAttribute("width", this.width);
    this.arrows.setAttribute("height", view + 2 * ROW);
    // Only the visible part has a surface: a taller one would cost memory.
    const origin = top - ROW;
    this.arrows.style.top = `${origin + shift}px`;
    const drawn = [];
    this.schedule.flows.forEach((flow, index) => {
      const end = this.middle(flow.read);
      const begin = flow.write === null ? end - ROW : this.middle(flow.write);
      if (Math.max(begin, end) < origin || Math.min(begin, end) > top + view + ROW) return;
      drawn.push(this.arrow(flow, index, begin - origin, end - origin));
    });
    const blocks = data.blocks.map((block) => this.block(block, origin));
    this.arrows.replaceChildren(...blocks.filter((block) => block !== null), ...drawn);
  }

  /** A bracket beside what one thread should have done without others between. */
  block(block, origin) {
    const steps = block.map((event) => this.schedule.stepOf.get(event));
    if (steps.includes(undefined)) return null;
    const column = this.columns.get(events.thread[block[0]]) ?? 0;
    const begin = this.rowOf(Math.min(...steps)) * ROW - origin + 2;
    const end = (this.rowOf(Math.max(...steps)) + 1) * ROW - origin - 2;
    const right = this.left(column) - 1;
    return svgElement("path", { class: "block", d: `M ${right} ${begin} h -6 V ${end} h 6` });
  }

  arrow(flow, index, begin, end) {
    const x = (event) => this.left(this.columns.get(events.thread[event]) ?? 0) + 1;
    const right = x(flow.read);
    const left = flow.write === null ? NUMBERS - 12 : x(flow.write);
    const bend = flow.write === null ? 0 : Math.min(60, Math.abs(end - begin) / 2);
    const path = `M ${left} ${begin} C ${left - (left === right ? 30 : 0)} ${begin + bend}, ${right - 30} ${end - bend / 4}, ${right - 3} ${end}`;
    const tip = `M ${right - 9} ${end - 5} L ${right - 2} ${end} L ${right - 9} ${end + 5}`;
    const group = svgElement(
      "g",
      {
        class: `arrow${flow.follows ? " follows" : ""}${this.shownFlow === index ? " lit" : ""}`,
        "data-flow": index,
      },
      svgElement("path", { class: "near", d: path }),
      svgElement("path", { class: "line", d: path }),
      svgElement("path", { class: "line", d: tip }),
    );
    group.addEventListener("mouseenter", () => this.actions.showFlow(this, index));
    group.addEventListener("mouseleave", () => this.actions.hideFlow());
    return group;
  }

  /** Scrolls as little as needed so that the row of the step is visible, with a margin. */
  scrollTo(step) {
    const { view, ratio, top } = this.geometry();
    const y = this.rowOf(step) * ROW;
    const margin = Math.min(2 * ROW, view / 4);
    let target = top;
    if (y - margin < top) target = y - margin;
    else if (y + ROW + margin > top + view) target = y + ROW + margin - view;
    if (target !== top) this.grid.scrollTop = Math.max(0, target) / ratio;
    this.scrollAcross(this.left(this.columns.get(events.thread[this.schedule.order[step]]) ?? 0));
  }

  /** The same across, for what begins at `x`. */
  scrollAcross(x) {
    const { scrollLeft, clientWidth } = this.grid;
    if (x - NUMBERS < scrollLeft) this.grid.scrollLeft = x - NUMBERS;
    const end = Math.min(x + TEXT, this.width);
    if (end > scrollLeft + clientWidth) this.grid.scrollLeft = end - clientWidth;
  }
}
