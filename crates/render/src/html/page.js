// The page as a whole: which schedule and step is current, and what keys and buttons do.

class Page {
  constructor() {
    const actions = {
      go: (lane, step) => this.go(lane, step),
      unfold: (lane, from, to) => this.unfold(lane, from, to),
      showFlow: (lane, index) => this.showFlow(lane, index),
      hideFlow: () => this.hideFlow(),
      showFrame: (frame) => this.source.show(frame, this.standing()),
    };
    this.lanes = schedules.map((schedule, number) => new Lane(schedule, number, actions));
    this.source = new Source(byId("source"), byId("source-title"));
    this.details = new Details(byId("details"), actions);
    this.lane = this.lanes[0];
    this.matches = [];
    byId("lanes").append(...this.lanes.map((lane) => lane.root));
    this.addSides();
    this.arrangeColumns();
    this.addButtons();
    this.addKeys();
    this.addTheme();
    byId("figures").textContent = this.figures();
    this.go(this.lane, this.beginning(), { quiet: true });
  }

  /** The step to begin with: where the cause begins, or the first that is shown. */
  beginning() {
    const { stepOf } = this.lane.schedule;
    const steps = data.cause.map((event) => stepOf.get(event)).filter((step) => step !== undefined);
    return steps.length > 0 ? Math.min(...steps) : this.lane.extreme(1);
  }

  figures() {
    const { schedule } = this.lane;
    const shown = this.lane.rows.filter((row) => !row.fold).length;
    const all = `${schedule.length} events of ${data.threads.length} threads`;
    return shown === 1 ? `${all}; one is shown first.` : `${all}; ${shown} that matter are shown first.`;
  }

  /** One button for each schedule. */
  addSides() {
    this.sides = this.lanes.map((lane) => {
      const press = () => this.choose(lane);
      return element("button", { type: "button", class: lane.schedule.side, onclick: press }, lane.schedule.title);
    });
    byId("sides").append(...this.sides);
  }

  /** The same columns in all schedules, so that one reads across. */
  arrangeColumns() {
    const threads = new Set();
    for (const lane of this.lanes) for (const thread of lane.threadsShown()) threads.add(thread);
    const columns = [...threads].sort((a, b) => a - b);
    for (const lane of this.lanes) lane.setColumns(columns);
  }

  standing() {
    const { schedule, current } = this.lane;
    return schedule
      .threadsAt(current)
      .map((event, thread) => [thread, event])
      .filter(([, event]) => event !== undefined)
      .map(([thread, event]) => [thread, frameOf(event)]);
  }

  /** Makes a step the current one. */
  go(lane, step, { quiet = false } = {}) {
    if (step === undefined || step < 0 || step >= lane.schedule.length) return;
    if (!lane.shown[step]) {
      lane.reveal(step);
      this.arrangeColumns();
    }
    this.lane = lane;
    const event = lane.schedule.order[step];
    for (const other of this.lanes) {
      const own = other === lane;
      other.root.classList.toggle("active", own);
      other.current = own ? step : -1;
      other.twin = own ? undefined : event;
      const twin = own ? step : other.schedule.stepOf.get(event);
      if (twin !== undefined && other.shown[twin]) other.scrollTo(twin);
      other.draw();
    }
    this.sides.forEach((side, index) => {
      side.setAttribute("aria-pressed", this.lanes[index] === lane);
    });
    this.source.show(frameOf(event), this.standing());
    this.details.show(lane, step);
    byId("step").textContent = `${step + 1} / ${lane.schedule.length}`;
    const atEnd = (direction) => lane.neighbour(step, direction) === step;
    for (const id of ["first", "back"]) byId(id).setAttribute("aria-disabled", atEnd(-1));
    for (const id of ["forward", "last"]) byId(id).setAttribute("aria-disabled", atEnd(1));
    this.tellFold();
    this.tellMatches();
    if (!quiet) this.say(lane, step);
  }

  say(lane, step) {
    const event = lane.schedule.order[step];
    const words = lane.schedule.describe(event);
    const where = `${threadOf(event).id}: ${words}, ${frameOf(event).place}`;
    byId("said").textContent = `Step ${step + 1} of ${lane.schedule.length}, ${lane.schedule.title}. ${where}`;
  }

  move(direction, count = 1) {
    let step = this.lane.current;
    for (let done = 0; done < count; done += 1) step = this.lane.neighbour(step, direction);
    this.go(this.lane, step);
  }

  extreme(direction) {
    this.go(this.lane, this.lane.extreme(direction));
  }

  /** Steps through another schedule, from the same event if it has that. */
  choose(lane) {
    const event = this.lane.schedule.order[this.lane.current];
    const same = lane.schedule.stepOf.get(event);
    this.search(byId("search").value, lane);
    this.go(lane, same !== undefined && lane.shown[same] ? same : lane.extreme(1));
  }

  chooseNext() {
    this.choose(this.lanes[(this.lanes.indexOf(this.lane) + 1) % this.lanes.length]);
  }

  unfold(lane, from, to) {
    lane.unfold(from, to);
    this.arrangeColumns();
    this.go(lane, from);
    lane.grid.focus({ preventScroll: true });
  }

  foldOrUnfold() {
    const unfold = !this.lane.isUnfolded();
    for (const lane of this.lanes) {
      if (unfold) lane.unfold();
      else lane.fold();
    }
    this.arrangeColumns();
    const { current, shown } = this.lane;
    const near = shown[current] ? current : this.lane.neighbour(current, -1);
    this.go(this.lane, shown[near] ? near : this.lane.extreme(1));
  }

  tellFold() {
    const unfolded = this.lane.isUnfolded();
    const button = byId("fold");
    button.textContent = unfolded ? "Show what matters" : "Show all events";
    button.setAttribute("aria-pressed", unfolded);
  }

  showFlow(lane, index) {
    const flow = lane.schedule.flows[index];
    const ends = [flow.write, flow.read].filter((event) => event !== null);
    for (const other of this.lanes) {
      other.marked = new Set(ends);
      other.shownFlow = other === lane ? index : undefined;
    }
    const last = Math.max(...ends.map((event) => lane.schedule.stepOf.get(event)));
    const first = Math.min(...ends.map((event) => lane.schedule.stepOf.get(event)));
    for (const step of [last, first]) lane.scrollTo(step);
    for (const other of this.lanes) other.draw();
    this.source.showFlow(lane.schedule, flow);
  }

  hideFlow() {
    for (const lane of this.lanes) {
      lane.marked = new Set();
      lane.shownFlow = undefined;
      lane.draw();
    }
    this.source.hideFlow();
  }

  focusNextFlow() {
    const buttons = [...document.querySelectorAll("button.flow")].filter((one) => one.offsetParent);
    if (buttons.length === 0) return;
    const at = buttons.indexOf(document.activeElement);
    buttons[(at + 1) % buttons.length].focus();
  }

  search(query, lane = this.lane) {
    for (const other of this.lanes) other.found = new Set();
    this.matches = lane.schedule.search(query);
    this.query = query.trim();
    lane.found = new Set(this.matches);
    for (const other of this.lanes) other.draw();
    this.tellMatches();
  }

  tellMatches() {
    const at = countUpTo(this.matches, this.lane.current);
    const on = at > 0 && this.matches[at - 1] === this.lane.current;
    const count = this.matches.length;
    byId("matches").textContent = !this.query ? "" : on ? `${at} of ${count}` : `${count} found`;
  }

  nextMatch(direction) {
    const { matches } = this;
    if (matches.length === 0) return;
    const { current } = this.lane;
    const index = direction > 0 ? countUpTo(matches, current) : countUpTo(matches, current - 1) - 1;
    this.go(this.lane, matches[(index + matches.length) % matches.length]);
  }

  addButtons() {
    const click = (id, action) => byId(id).addEventListener("click", action);
    click("first", () => this.extreme(1));
    click("back", () => this.move(-1));
    click("forward", () => this.move(1));
    click("last", () => this.extreme(-1));
    click("fold", () => this.foldOrUnfold());
    click("next-match", () => this.nextMatch(1));
    click("previous-match", () => this.nextMatch(-1));
    click("help", () => this.help());
    byId("search").addEventListener("input", (event) => this.search(event.target.value));
    for (const button of document.querySelectorAll("header [data-event]")) {
      button.addEventListener("click", () => this.goTo(button.dataset.event));
    }
  }

  /** To an event by its name, in the current schedule if it has it. */
  goTo(name) {
    const event = eventByName.get(name);
    const lanes = [this.lane, ...this.lanes];
    const lane = lanes.find((one) => one.schedule.stepOf.has(event));
    if (lane) this.go(lane, lane.schedule.stepOf.get(event));
  }

  help() {
    const keys = byId("keys");
    keys.hidden = !keys.hidden;
    byId("help").setAttribute("aria-expanded", !keys.hidden);
  }

  addKeys() {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const action = this.keyAction(event);
      if (!action) return;
      action();
      event.preventDefault();
    });
  }

  keyAction(event) {
    const { key, target } = event;
    if (target === byId("search")) {
      if (key === "Enter") return () => this.nextMatch(event.shiftKey ? -1 : 1);
      if (key === "Escape") return () => this.lane.grid.focus();
      return null;
    }
    const letters = {
      s: () => this.chooseNext(),
      d: () => this.focusNextFlow(),
      u: () => this.foldOrUnfold(),
      "/": () => byId("search").focus(),
      "?": () => this.help(),
    };
    if (letters[key]) return byId("letters").checked ? letters[key] : null;
    const ahead = { ArrowRight: 1, ArrowLeft: -1 };
    if (ahead[key]) return () => this.move(ahead[key]);
    // The other keys scroll the panels, and move in a schedule.
    const lane = this.lanes.find((one) => one.grid === target);
    if (!lane && target !== document.body) return null;
    if (lane && lane !== this.lane) this.choose(lane);
    const within = {
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
      PageDown: () => this.move(1, 10),
      PageUp: () => this.move(-1, 10),
      Home: () => this.extreme(1),
      End: () => this.extreme(-1),
    };
    return within[key] ?? null;
  }

  addTheme() {
    const themes = [
      ["", "◐", "Colours: as the system has them"],
      ["light", "☀\uFE0E", "Colours: light"],
      ["dark", "☾", "Colours: dark"],
    ];
    let current = 0;
    const tell = () => {
      const [theme, sign, words] = themes[current];
      document.documentElement.dataset.theme = theme;
      byId("theme").textContent = sign;
      byId("theme").setAttribute("aria-label", words);
      byId("theme").title = words;
    };
    byId("theme").addEventListener("click", () => {
      current = (current + 1) % themes.length;
      tell();
    });
    tell();
  }
}

if (schedules.length > 0) {
  byId("app").hidden = false;
  new Page();
}
