// Below the diagram: the scrubber and the line that says how much is shown.

import { nameOf } from "../model/model";
import { count, figure, visible } from "../model/plaintext";
import { momentAt } from "../model/scrub";
import { processesInSight } from "../draw/viewport";
import { button, element, replace } from "../ui/dom";
import type { App } from "./app";
import { scrubBy } from "./keys";
import type { Stage } from "./stage";

export class Scrubber {
  readonly root: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly said: HTMLElement;
  private readonly all: HTMLButtonElement;
  private order: Uint32Array | null = null;
  private shownAt = NaN;

  constructor(private readonly app: App) {
    this.slider = element("input", {
      type: "range", min: 0, step: 1, "aria-label": "Moment of the execution", oninput: () => this.moved(),
    });
    this.said = element("span", { class: "moment", role: "status" });
    this.all = button("End", "Show the whole execution again", () => app.set({ scrub: -1 }));
    this.root = element(
      "div",
      { class: "scrubber" },
      element("span", { class: "scrub-name" }, "Moment"),
      button("‹", "One event back ([)", () => scrubBy(app, -1), { "aria-label": "One event back" }),
      this.slider,
      button("›", "One event on (])", () => scrubBy(app, 1), { "aria-label": "One event on" }),
      this.all,
      this.said,
    );
    app.listen(() => this.refresh());
  }

  private moved(): void {
    const { order } = this.app.scene.layout;
    const happened = Number(this.slider.value);
    this.app.set({ scrub: happened >= order.length ? -1 : order[Math.max(0, happened - 1)] });
  }

  refresh(): void {
    const { layout, held } = this.app.scene;
    const { scrub } = this.app.state;
    if (this.order === layout.order && this.shownAt === scrub) return;
    this.order = layout.order;
    this.shownAt = scrub;
    const at = scrub < 0 ? -1 : placeInOrder(this.app, scrub);
    const happened = at < 0 ? layout.order.length : at + 1;
    this.slider.min = layout.order.length > 0 ? "1" : "0";
    this.slider.max = String(layout.order.length);
    this.slider.value = String(happened);
    this.all.disabled = scrub < 0;
    const moment = momentAt(this.app.model, layout, held, happened);
    const where = at < 0 ? "at the end" : `after ${visible(nameOf(this.app.model, scrub), 30)}`;
    this.said.textContent = `${where}: ${count(moment.inFlight, "message")} in flight, ${figure(moment.held)} held`;
    this.slider.setAttribute("aria-valuetext", this.said.textContent);
  }
}

function placeInOrder(app: App, event: number): number {
  const { order, x } = app.scene.layout;
  if (Number.isNaN(x[event])) return -1;
  // Events are in order of x, so the place is found by halving; equal x are a short walk.
  let [at, end] = [0, order.length];
  while (at < end) {
    const middle = (at + end) >>> 1;
    if (x[order[middle]] < x[event]) at = middle + 1;
    else end = middle;
  }
  while (at < order.length && order[at] !== event) at++;
  return at < order.length ? at : -1;
}

const THINNED = { none: "", passing: "arrows that only pass by are thinned", some: "arrows thinned: zoom in" };

export class StatusLine {
  readonly root: HTMLElement;
  private readonly shown = element("strong");
  private readonly notes = element("span", { class: "notes" });
  private readonly everything: HTMLButtonElement;

  constructor(
    private readonly app: App,
    private readonly stage: Stage,
  ) {
    this.everything = button("Show everything", "Undo all hiding", () => app.showEverything());
    this.root = element("div", { class: "status" }, this.shown, this.everything, this.notes);
    app.listen((change) => {
      if (change !== "view") this.refresh();
    });
    stage.afterDrawing = () => this.refresh();
    this.refresh();
  }

  refresh(): void {
    const { scene, model, state } = this.app;
    this.shown.textContent = `${figure(scene.shownCount)} of ${count(model.events, "event")} shown`;
    this.everything.hidden = !this.app.reduced() && !state.collapse;
    const { inversions, stepsBack, untimed } = scene.layout;
    const { inSight, all } = processesInSight(scene.layout, this.stage.view);
    replace(
      this.notes,
      [
        inSight < all ? `${figure(inSight)} of ${count(all, "process", "processes")} in sight; Shift+wheel scrolls` : "",
        scene.runs.size.size > 0 ? `${count(scene.runs.size.size, "run")} collapsed` : "",
        scene.dashed.from.length > 0 ? `${count(scene.dashed.from.length, "dashed edge")} through hidden events${scene.dashed.capped ? " (not all)" : ""}` : "",
        inversions.length > 0 ? `${count(inversions.length, "inversion")}` : "",
        stepsBack.length > 0 ? `${count(stepsBack.length, "step")} back within a process` : "",
        untimed > 0 ? `${count(untimed, "event")} without time, placed beside ${untimed === 1 ? "its neighbour" : "their neighbours"}` : "",
        THINNED[this.stage.drawn.thinned],
        this.stage.drawn.bars ? "bars stand for many events" : "",
      ]
        .filter(Boolean)
        .join(" · "),
    );
  }
}
