// What the page shows, without elements: the data, and what follows from it at a step.

const data = JSON.parse(document.getElementById("data").textContent);
const text = (index) => (index === null || index === undefined ? null : data.strings[index]);
const events = data.events;
const eventByName = new Map(events.id.map((id, index) => [id, index]));

const kindOf = (event) => text(events.kind[event]);
const threadOf = (event) => data.threads[events.thread[event]];
const framesOf = (event) => data.stacks[events.stack[event]].map((index) => data.frames[index]);
const frameOf = (event) => data.frames[data.stacks[events.stack[event]][0]];

/** What an event is about, as a key: equal for the same variable or lock. */
function keyOf(event) {
  const targets = events.targets[event];
  return targets.length > 0 ? targets.map(text).join("+") : text(events.object[event]);
}

const ACCESSES = new Set(["read", "write", "read-modify-write"]);
const LOCKS = new Set(["lock", "lock-shared"]);
const UNLOCKS = new Set(["unlock", "unlock-shared"]);

/** How many entries of an ascending list are at most `limit`. */
function countUpTo(list, limit) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Values over the steps of a schedule: `at(step)` is what was set last, at that step or before. */
class History {
  constructor() {
    this.steps = [];
    this.values = [];
  }

  set(step, value) {
    this.steps.push(step);
    this.values.push(value);
  }

  at(step) {
    const count = countUpTo(this.steps, step);
    return count === 0 ? undefined : this.values[count - 1];
  }
}

/** A schedule. A step is an index into `order`. */
class Schedule {
  constructor(lane) {
    Object.assign(this, lane);
    this.length = this.order.length;
    this.stepOf = new Map(this.order.map((event, step) => [event, step]));
    this.changed = new Map(this.values);
    this.isFlipped = new Set(this.flipped);
    this.isShown = new Set(this.shown);
    this.past = null;
    this.haystack = null;
  }

  value(event) {
    return text(this.changed.has(event) ? this.changed.get(event) : events.value[event]);
  }

  /** `read bank->total = 100`. */
  describe(event) {
    const { kind, object, value } = this.words(event);
    return kind + (object ? ` ${object}` : "") + (value === null ? "" : ` = ${value}`);
  }

  words(event) {
    return {
      kind: kindOf(event).replaceAll("-", " "),
      object: text(events.object[event]),
      value: this.value(event),
    };
  }

  /** The histories of variables, locks and threads, made when they are first asked for. */
  histories() {
    if (!this.past) this.past = this.walk();
    return this.past;
  }

  walk() {
    const variables = new Map();
    const locks = new Map();
    const threads = data.threads.map(() => new History());
    const keysOfCell = new Map();
    this.order.forEach((event, step) => {
      const kind = kindOf(event);
      threads[events.thread[event]].set(step, event);
      if (ACCESSES.has(kind)) this.access(variables, keysOfCell, event, step);
      else if (LOCKS.has(kind) || UNLOCKS.has(kind)) this.holding(locks, event, step);
    });
    return { variables, locks, threads };
  }

  access(variables, keysOfCell, event, step) {
    const key = keyOf(event);
    let variable = variables.get(key);
    if (!variable) {
      variable = { key, name: text(events.object[event]), initial: null, history: new History() };
      variables.set(key, variable);
      for (const cell of events.targets[event]) {
        if (!keysOfCell.has(cell)) keysOfCell.set(cell, new Set());
        keysOfCell.get(cell).add(key);
      }
      // What is read before anybody wrote was there from the beginning.
      if (kindOf(event) !== "write") variable.initial = this.value(event)?.split(" -> ")[0] ?? null;
    }
    const writes = kindOf(event) !== "read";
    const value = this.value(event);
    variable.history.set(step, {
      value: writes && value !== null ? value.split(" -> ").at(-1) : value,
      by: writes ? event : variable.history.values.at(-1)?.by ?? null,
    });
    if (!writes) return;
    // Pieces of a variable that others access whole, and the other way round.
    for (const cell of events.targets[event]) {
      for (const other of keysOfCell.get(cell)) {
        if (other !== key) variables.get(other).history.set(step, { value: null, by: event });
      }
    }
  }

  holding(locks, event, step) {
    const key = keyOf(event);
    if (!locks.has(key)) locks.set(key, { key, name: text(events.object[event]), history: new History() });
    const { history } = locks.get(key);
    const thread = events.thread[event];
    const holders = (history.values.at(-1) ?? []).filter((holder) => holder.thread !== thread);
    if (LOCKS.has(kindOf(event))) holders.push({ thread, event });
    history.set(step, holders);
  }

  /** The locks held at a step: `{ name, holders }`. */
  locksAt(step) {
    const locks = [...this.histories().locks.values()];
    return locks
      .map((lock) => ({ key: lock.key, name: lock.name, holders: lock.history.at(step) ?? [] }))
      .filter((lock) => lock.holders.length > 0);
  }

  /** The event of each thread that it did last, `undefined` before its first. */
  threadsAt(step) {
    return this.histories().threads.map((history) => history.at(step));
  }

  /** The steps whose events contain all words. */
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    if (!this.haystack) {
      this.haystack = this.order.map((event) => {
        const frame = frameOf(event);
        const parts = [events.id[event], threadOf(event).id, threadOf(event).entry];
        parts.push(this.describe(event), kindOf(event), frame.place, text(frame.function));
        return parts.join("\n").toLowerCase();
      });
    }
    const found = [];
    this.haystack.forEach((line, step) => {
      if (words.every((word) => line.includes(word))) found.push(step);
    });
    return found;
  }
}

const schedules = data.lanes.map((lane) => new Schedule(lane));

/** Only one of the two schedules has this event. */
function isAlone(event, schedule) {
  const others = schedules.filter((other) => other.side !== schedule.side);
  return others.length > 0 && others.every((other) => !other.stepOf.has(event));
}
