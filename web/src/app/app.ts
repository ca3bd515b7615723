// The state of a view or comparison, and everything worked out from it. Parts of the page listen to changes.

import type { Comparison } from "../model/compare";
import type { Model } from "../model/model";
import { parseQuery, QueryError } from "../model/query";
import { testRegex } from "../model/regexworker";
import { search } from "../model/search";
import { START, type Theme, type ViewState } from "../model/state";
import type { Violation } from "../model/types";
import { DARK, LIGHT, type Palette } from "../draw/palette";
import { buildScene, factsOf, type Facts, type Scene } from "../draw/scene";
import { wholeRange } from "../draw/viewport";

/** What changed: the scene (and so everything), the visible stretch, or only what is highlighted. */
export type Change = "scene" | "view" | "highlight";

export type Finding = { query: string; mask: Uint8Array | null; list: number[]; at: number; error: string; busy: boolean };

const NOTHING_FOUND: Finding = { query: "", mask: null, list: [], at: -1, error: "", busy: false };

/** Parts of the state that decide what is shown and where. */
const SCENE_KEYS: (keyof ViewState)[] = ["x", "order", "hidden", "control", "only", "cone", "direct", "collapse", "messages", "theme", "bands"];
const REDUCING_KEYS: (keyof ViewState)[] = ["hidden", "only", "cone", "direct"];
const VIEW_KEYS: (keyof ViewState)[] = ["from", "to", "top", "messageTop"];

export class App {
  state: ViewState = { ...START };
  scene: Scene;
  finding: Finding = NOTHING_FOUND;
  /** The violation that is being looked at, if any, and the place of stepping through inversions and differences. */
  violation: Violation | null = null;
  stepAt = -1;
  notice = "";
  private readonly facts: Facts;
  private readonly listeners: ((change: Change) => void)[] = [];
  private searches = 0;

  constructor(
    readonly title: string,
    readonly model: Model,
    readonly comparison: Comparison | null,
  ) {
    this.facts = factsOf(model, comparison);
    this.scene = buildScene(this.facts, this.state, null, this.palette());
  }

  listen(listener: (change: Change) => void): void {
    this.listeners.push(listener);
  }

  announce(change: Change): void {
    for (const listener of this.listeners) listener(change);
  }

  theme(): "light" | "dark" {
    if (this.state.theme !== "auto") return this.state.theme;
    return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  palette(): Palette {
    return this.theme() === "dark" ? DARK : LIGHT;
  }

  set(patch: Partial<ViewState>): void {
    const changed = (Object.keys(patch) as (keyof ViewState)[]).filter(
      (key) => JSON.stringify(patch[key]) !== JSON.stringify(this.state[key]),
    );
    if (changed.length === 0) return;
    const before = { scene: this.scene, state: this.state };
    this.state = { ...this.state, ...patch };
    if (!changed.some((key) => SCENE_KEYS.includes(key))) {
      this.scene.state = this.state;
      this.announce(changed.some((key) => VIEW_KEYS.includes(key)) ? "view" : "highlight");
      return;
    }
    this.rebuild();
    if (!("from" in patch)) {
      const reduced = changed.some((key) => REDUCING_KEYS.includes(key));
      const range = reduced ? null : sameEvents(before.scene, before.state, this.scene);
      this.state = { ...this.state, from: range?.[0] ?? null, to: range?.[1] ?? null };
      if (reduced) this.state.top = this.state.messageTop = 0;
      this.scene.state = this.state;
    }
    this.announce("scene");
  }

  private rebuild(): void {
    const only = this.finding.mask;
    this.scene = buildScene(this.facts, this.state, only, this.palette());
  }

  /** Takes over a whole state, from an address. */
  async adopt(state: ViewState): Promise<void> {
    this.state = state;
    if (this.violation?.delivered !== state.selected) this.violation = this.violationAt(state.selected);
    if (state.find !== this.finding.query) await this.find(state.find, true);
    this.rebuild();
    this.announce("scene");
  }

  select(event: number, reveal = true): void {
    if (event === this.state.selected) {
      if (reveal) this.reveal(event);
      return;
    }
    this.violation = this.violationAt(event);
    this.set({ selected: event });
    if (reveal && event >= 0) this.reveal(event);
  }

  private violationAt(event: number): Violation | null {
    return this.model.violations.find(({ delivered }) => delivered === event) ?? null;
  }

  /** Set by the stage: moves the visible stretch so that the event is in sight. */
  reveal: (event: number) => void = () => undefined;

  showViolation(violation: Violation): void {
    this.select(violation.delivered);
    this.violation = violation;
    this.announce("highlight");
  }

  showEverything(): void {
    this.set({ hidden: [], control: true, only: false, cone: null, direct: false, collapse: false, from: null, to: null, top: 0 });
  }

  reduced(): boolean {
    return this.scene.shownCount < this.model.events;
  }

  setTheme(theme: Theme): void {
    this.set({ theme });
  }

  /** Searches; with `quiet` nobody is told before the end. */
  async find(query: string, quiet = false): Promise<void> {
    const ticket = ++this.searches;
    this.state = { ...this.state, find: query };
    this.scene.state = this.state;
    const finish = (finding: Finding) => {
      this.finding = finding;
      if (quiet) return;
      if (this.state.only) {
        if (!finding.mask) this.state = { ...this.state, only: false };
        this.state = { ...this.state, from: null, to: null };
        this.rebuild();
        this.announce("scene");
      } else this.announce("highlight");
    };
    if (query.trim() === "") return finish({ ...NOTHING_FOUND, query });
    try {
      const terms = parseQuery(query);
      this.finding = { ...this.finding, busy: true, error: "" };
      if (!quiet) this.announce("highlight");
      const mask = await search(this.model, terms, testRegex, () => ticket !== this.searches);
      if (!mask || ticket !== this.searches) return;
      const list: number[] = [];
      mask.forEach((match, event) => {
        if (match) list.push(event);
      });
      finish({ query, mask, list, at: -1, error: "", busy: false });
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      if (ticket === this.searches) finish({ ...NOTHING_FOUND, query, error: error.message });
    }
  }

  /** Goes to the next or previous result that is shown. */
  stepFound(direction: 1 | -1): void {
    const { list } = this.finding;
    for (let tried = 0; tried < list.length; tried++) {
      const at = this.finding.at < 0 && direction < 0 ? list.length - 1 : this.finding.at + direction;
      this.finding.at = (at + list.length) % list.length;
      if (!this.scene.runs.marked[list[this.finding.at]]) continue;
      this.select(list[this.finding.at]);
      this.announce("highlight");
      return;
    }
  }

  /** What n and p step through: differences, inversions or violations. */
  steps(): { name: string; events: number[] } {
    if (this.comparison) return { name: "difference", events: this.comparison.differences.map(({ event }) => event) };
    const inversions = this.scene.layout.inversions;
    if (inversions.length > 0 && (this.state.tab === "order" || this.model.violations.length === 0))
      return { name: "inversion", events: Array.from(inversions, (edge) => this.model.edgeTo[edge]) };
    return { name: "violation", events: this.model.violations.map(({ delivered }) => delivered) };
  }

  step(direction: 1 | -1): void {
    const { name, events } = this.steps();
    if (events.length === 0) return;
    const at = this.stepAt < 0 && direction < 0 ? events.length - 1 : this.stepAt + direction;
    this.stepTo((at + events.length) % events.length, name, events);
  }

  stepTo(at: number, name = this.steps().name, events = this.steps().events): void {
    this.stepAt = at;
    if (name === "violation") this.showViolation(this.model.violations[at]);
    else this.select(events[at]);
    this.announce("highlight");
  }
}

/** The stretch of the new scene that shows the events which the old one showed, or null for everything. */
function sameEvents(before: Scene, state: ViewState, after: Scene): [number, number] | null {
  if (state.from === null || state.to === null) return null;
  // Where nothing moves, the stretch stays as it is: a margin would grow with every change.
  if (before.layout.x.every((x, event) => Object.is(x, after.layout.x[event]))) return [state.from, state.to];
  let [low, high] = [Infinity, -Infinity];
  for (const event of before.layout.order) {
    if (before.layout.x[event] < state.from || before.layout.x[event] > state.to) continue;
    const x = after.layout.x[event];
    if (x < low) low = x;
    if (x > high) high = x;
  }
  if (low > high) return null;
  const [first, last] = wholeRange(after.layout, after.state.x);
  const margin = Math.max((high - low) * 0.02, (last - first) * 1e-4, after.state.x === "time" ? 0 : 0.8);
  return [Math.max(first, low - margin), Math.min(last, high + margin)];
}
