// The source panel: the file of the current event, with the lines where the threads stand.

/** So many lines before and behind an end of a data-flow. */
const AROUND_END = 2;

class Source {
  constructor(root, title) {
    this.root = root;
    this.title = title;
    this.files = new Map();
    this.lit = [];
    this.important = this.importantLines();
  }

  /** By file, the lines of events that matter: file -> line -> words. */
  importantLines() {
    const lines = new Map();
    const add = (event) => {
      const { file, line } = frameOf(event);
      if (file === null) return;
      if (!lines.has(file)) lines.set(file, new Set());
      lines.get(file).add(line);
    };
    for (const schedule of schedules) schedule.shown.forEach(add);
    return lines;
  }

  /** The elements of a file, made once. */
  file(number) {
    if (!this.files.has(number)) this.files.set(number, this.makeFile(number));
    return this.files.get(number);
  }

  makeFile(number) {
    const file = data.files[number];
    const lines = new Map();
    const code = element("div", { class: "code" });
    if (file.missing) code.append(this.missing(file.missing));
    let end = 1;
    for (const part of file.parts) {
      if (part.first > end) code.append(element("div", { class: "gap" }, "⋯"));
      part.text.split("\n").forEach((content, offset) => {
        const line = part.first + offset;
        const made = this.line(number, line, content);
        lines.set(line, made);
        code.append(made);
        end = line + 1;
      });
    }
    return { code, lines };
  }

  missing(reason) {
    return element("p", { class: "missing" }, `The source is not on this page: ${reason}.`);
  }

  line(file, number, content) {
    const matters = this.important.get(file)?.has(number);
    return element(
      "div",
      { class: matters ? "line matters" : "line", "data-line": number },
      element("span", { class: "number" }, `${number}`),
      element("code", {}, content === "" ? " " : content),
    );
  }

  text(file, line) {
    return this.file(file).lines.get(line)?.querySelector("code").textContent ?? null;
  }

  /** Shows a place, and at which lines of its file threads stand: `[thread, frame]`. */
  show(frame, standing) {
    this.place = [frame, standing];
    for (const made of this.lit) {
      made.classList.remove("here");
      made.removeAttribute("aria-current");
      made.querySelector(".chips")?.remove();
    }
    this.lit = [];
    if (frame.file === null) {
      this.title.textContent = "Source";
      this.root.replaceChildren(this.missing("its file is not known"));
      return;
    }
    const { name } = data.files[frame.file];
    this.title.textContent = `Source: ${name.split("/").at(-1)}`;
    this.title.title = name;
    const { code, lines } = this.file(frame.file);
    if (this.root.firstChild !== code) this.root.replaceChildren(code);
    for (const [thread, place] of standing) {
      const made = place.file === frame.file ? lines.get(place.line) : undefined;
      if (!made) continue;
      this.lit.push(made);
      if (!made.querySelector(".chips")) made.append(element("span", { class: "chips" }));
      const chip = element("span", { class: `chip ${threadColour(thread)}` }, data.threads[thread].id);
      made.querySelector(".chips").append(chip);
    }
    const here = lines.get(frame.line);
    if (!here) return;
    this.lit.push(here);
    here.classList.add("here");
    here.setAttribute("aria-current", "location");
    this.centre(here);
  }

  centre(line) {
    const top = line.offsetTop;
    const { scrollTop, clientHeight } = this.root;
    if (top < scrollTop + 40 || top > scrollTop + clientHeight - 60) {
      this.root.scrollTop = top - clientHeight / 2;
    }
  }

  /** Shows both ends of a data-flow, one above the other. */
  showFlow(schedule, flow) {
    const name = text(events.object[flow.read]);
    const value = text(flow.value) ?? "?";
    this.title.textContent = `Data-flow: ${name} = ${value}`;
    const ends = [];
    if (flow.write === null) {
      ends.push(element("p", { class: "end" }, "The initial value: nobody has written it before."));
    } else {
      ends.push(...this.end("Written by", schedule, flow.write));
    }
    ends.push(...this.end("Read by", schedule, flow.read));
    this.root.replaceChildren(element("div", { class: "ends" }, ...ends));
  }

  end(word, schedule, event) {
    const frame = frameOf(event);
    const thread = threadOf(event);
    const words = `${word} ${thread.id} (${thread.entry}) at ${frame.place}, step ${schedule.stepOf.get(event) + 1}`;
    const code = element("div", { class: "code" });
    const missing = frame.file === null ? "its file is not known" : data.files[frame.file].missing;
    if (missing) code.append(this.missing(missing));
    for (let line = frame.line - AROUND_END; line <= frame.line + AROUND_END; line += 1) {
      const content = frame.file === null ? null : this.text(frame.file, line);
      if (content === null) continue;
      const made = this.line(frame.file, line, content);
      made.classList.toggle("here", line === frame.line);
      code.append(made);
    }
    return [element("p", { class: "end" }, words), code];
  }

  hideFlow() {
    if (this.place) this.show(...this.place);
  }
}
