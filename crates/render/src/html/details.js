// What holds at a step: the event, its call stack, variables, locks, threads.

/** So many variables beside those that matter, the last used first. */
const RECENT = 12;

class Details {
  constructor(root, actions) {
    this.root = root;
    this.actions = actions;
  }

  show(lane, step) {
    const { schedule } = lane;
    const event = schedule.order[step];
    this.root.replaceChildren(
      this.event(lane, event),
      this.variables(lane, step),
      this.locks(lane, step),
      this.threads(lane, step),
    );
  }

  event(lane, event) {
    const { schedule } = lane;
    const thread = threadOf(event);
    const parts = [
      element(
        "p",
        { class: "now" },
        element("b", { class: `chip ${threadColour(events.thread[event])}` }, thread.id),
        ` ${thread.entry}: `,
        element("code", {}, schedule.describe(event)),
        element("span", { class: "name" }, ` ${events.id[event]}`),
      ),
    ];
    for (const other of schedules) {
      if (other.side === schedule.side) continue;
      const words = this.elsewhere(schedule, other, event);
      if (words) parts.push(element("p", { class: "note" }, words));
      break;
    }
    const stack = framesOf(event).map((frame, depth) => {
      const name = text(frame.function);
      const words = `${frame.place}${name ? ` in ${name}` : ""}`;
      const show = () => this.actions.showFrame(frame);
      return element(
        "li",
        {},
        depth === 0 ? "at " : "called at ",
        element("button", { type: "button", class: "to", onclick: show }, words),
      );
    });
    parts.push(element("ul", { class: "stack", "aria-label": "Call stack" }, ...stack));
    return element("div", {}, ...parts);
  }

  elsewhere(schedule, other, event) {
    const step = other.stepOf.get(event);
    if (step === undefined) return `Does not happen in the ${other.title}.`;
    const value = other.value(event);
    if (value === schedule.value(event)) return null;
    return `In the ${other.title}: ${other.describe(event)}, step ${step + 1}.`;
  }

  /** The variables that matter, then those last used. */
  chosen(schedule, step) {
    const { variables } = schedule.histories();
    const chosen = new Map();
    const add = (event) => {
      const variable = ACCESSES.has(kindOf(event)) ? variables.get(keyOf(event)) : undefined;
      if (variable) chosen.set(variable.key, variable);
    };
    add(schedule.order[step]);
    schedule.shown.forEach(add);
    const most = chosen.size + RECENT;
    for (let at = step; at >= 0 && at > step - 2000 && chosen.size < most; at -= 1) {
      add(schedule.order[at]);
    }
    return [...chosen.values()];
  }

  variables(lane, step) {
    const { schedule } = lane;
    const now = schedule.order[step];
    const chosen = this.chosen(schedule, step);
    const names = new Map();
    for (const { name } of chosen) names.set(name, (names.get(name) ?? 0) + 1);
    const rows = chosen.map((variable) => {
      const state = variable.history.at(step);
      const value = state ? state.value ?? "(changed in part)" : variable.initial ?? "not used yet";
      // Two variables may have one name, like `node->next` of two nodes.
      const name = names.get(variable.name) > 1 ? `${variable.name} (${variable.key})` : variable.name;
      const own = ACCESSES.has(kindOf(now)) && keyOf(now) === variable.key;
      return element(
        "tr",
        { class: own ? "own" : null, "data-variable": variable.name, "data-key": variable.key },
        element("th", { scope: "row" }, element("code", {}, name)),
        element("td", { class: "value" }, element("code", {}, value)),
        element("td", {}, this.writer(lane, state?.by ?? null, state || variable.initial !== null)),
      );
    });
    return this.table("Variables", ["name", "value", "written by"], rows, "No variable was used yet.");
  }

  writer(lane, event, known) {
    if (event === null) return known ? "initial value" : "";
    const step = lane.schedule.stepOf.get(event);
    const words = `${threadOf(event).id} at step ${step + 1}, ${frameOf(event).place}`;
    const go = () => this.actions.go(lane, step);
    return element("button", { type: "button", class: "to", onclick: go }, words);
  }

  locks(lane, step) {
    const rows = lane.schedule.locksAt(step).map(({ name, holders }) =>
      element(
        "tr",
        { "data-lock": name },
        element("th", { scope: "row" }, element("code", {}, name)),
        element(
          "td",
          {},
          ...holders.map(({ event }) => {
            const since = lane.schedule.stepOf.get(event);
            const words = `${threadOf(event).id} since step ${since + 1}, ${frameOf(event).place}`;
            const go = () => this.actions.go(lane, since);
            return element("button", { type: "button", class: "to", onclick: go }, words);
          }),
        ),
      ),
    );
    return this.table("Locks", ["name", "held by"], rows, "No lock is held.");
  }

  threads(lane, step) {
    const rows = lane.schedule.threadsAt(step).map((event, thread) => {
      const { id, entry } = data.threads[thread];
      const chip = element("span", { class: `chip ${threadColour(thread)}` }, id);
      const place = event === undefined ? "not started" : `${lane.schedule.describe(event)}, ${frameOf(event).place}`;
      return element(
        "tr",
        { "data-thread": id },
        element("th", { scope: "row" }, chip, ` ${entry}`),
        element("td", {}, place),
      );
    });
    return this.table("Threads", ["thread", "did last"], rows, "");
  }

  table(caption, heads, rows, none) {
    if (rows.length === 0) {
      return element("div", {}, element("h3", {}, caption), element("p", { class: "none" }, none));
    }
    return element(
      "table",
      { "data-table": caption },
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, ...rows),
    );
  }
}
