import { describe, expect, it } from "vitest";
import { concurrentMask, directCauses, directEffects, futureMask, indexesOf, pastMask } from "../src/model/cones";
import { heldStretches, waitedFor } from "../src/model/held";
import { arrange, placeX, planRows } from "../src/model/layout";
import { messageRows } from "../src/model/messages";
import { nameOf } from "../src/model/model";
import { precedenceOf } from "../src/model/precedence";
import { collapseRuns, dashedEdges, shownMask, type Filter } from "../src/model/reduce";
import { momentAt } from "../src/model/scrub";
import { HELD, modelOf } from "./tiny";

const model = modelOf(HELD);
const ALL: Filter = { hiddenProcesses: new Set(), control: true, cone: null, direct: false, only: null };
const dashedOf = (m: typeof model, filter: Partial<Filter>) => {
  const { from, to } = dashedEdges(m, shownMask(m, { ...ALL, ...filter }));
  return Array.from(from, (event, at) => [event, to[at]]);
};
const layoutOf = (m: typeof model, mode: "position" | "block" | "time", order: "causal" | "time" = "causal") => {
  const shown = shownMask(m, ALL);
  const { x, untimed } = placeX(m, shown, mode, order);
  return arrange(m, shown, x, untimed, planRows(m, shown, new Set(), [m.processes.length]));
};

describe("cones", () => {
  it("knows past, future and concurrent", () => {
    expect(indexesOf(pastMask(model, 4))).toEqual([0, 1, 2, 4]);
    expect(indexesOf(futureMask(model, 2))).toEqual([2, 4, 5, 6, 7, 8]);
    expect(indexesOf(concurrentMask(model, 3))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });
  it("knows direct causes and effects", () => {
    expect(directCauses(model, 7)).toEqual([6, 0]);
    expect(directEffects(model, 0)).toEqual([3, 1, 2, 6, 7]);
    expect(directCauses(model, 0)).toEqual([]);
  });
  it.each([["by clocks", 1000], ["by walking back", 0]])("answers happens-before %s", (_, mostClockEntries) => {
    const { happensBefore, gaveUp } = precedenceOf(model, mostClockEntries);
    expect(happensBefore(0, 8)).toBe(true);
    expect(happensBefore(3, 8)).toBe(false);
    expect(happensBefore(8, 0)).toBe(false);
    expect(happensBefore(0, 0)).toBe(false);
    for (let after = 0; after < model.events; after++) {
      const past = pastMask(model, after);
      for (let before = 0; before < model.events; before++)
        expect(happensBefore(before, after)).toBe(before !== after && past[before] === 1);
    }
    expect(gaveUp()).toBe(false);
  });
  it("names events by id or by process and number", () => {
    expect(nameOf(model, 4)).toBe("b#3");
    expect(nameOf(modelOf([{ p: "a", id: "x" }]), 0)).toBe("x");
  });
});

describe("held messages", () => {
  it("finds the stretch and what it waited for", () => {
    const held = heldStretches(model);
    expect([...held.receipts]).toEqual([5]);
    expect([...held.deliveries]).toEqual([8]);
    expect(waitedFor(model, 8)).toEqual([7]);
    expect(waitedFor(model, 7)).toEqual([]);
  });
});

describe("reduction", () => {
  it("draws a dashed edge through a hidden process, reduced", () => {
    // Without b: m2 still carries a's send to c. Both 5 and later events of c have it, but 5 carries it for the rest;
    // 6 and 7 have their own arrow.
    expect(dashedOf(model, { hiddenProcesses: new Set([1]) })).toEqual([[0, 5]]);
  });
  it("leaves out what a shown event already carries", () => {
    const chain = modelOf([
      { p: "a", kind: "send", message: "x" },
      { p: "b", kind: "receive", message: "x", causes: [0] },
      { p: "b", kind: "send", message: "y" },
      { p: "c", kind: "receive", message: "y", causes: [2] },
      { p: "d", kind: "receive", message: "x", causes: [0] },
      { p: "d", kind: "send", message: "z" },
      { p: "c", kind: "receive", message: "z", causes: [5] },
    ]);
    // Without d: 6 knows of 0 through d, but 3, which stands before it in c, knows 0 by way of b.
    expect(dashedOf(chain, { hiddenProcesses: new Set([3]) })).toEqual([]);
    // Without b and d: 3 carries it.
    expect(dashedOf(chain, { hiddenProcesses: new Set([1, 3]) })).toEqual([[0, 3]]);
  });
  it("keeps cones, direct or whole, and only what is searched", () => {
    const shown = (filter: Partial<Filter>) => indexesOf(shownMask(model, { ...ALL, ...filter }));
    expect(shown({ cone: { event: 4, way: "past" } })).toEqual([0, 1, 2, 4]);
    expect(shown({ cone: { event: 4, way: "past" }, direct: true })).toEqual([2, 4]);
    expect(shown({ cone: { event: 4, way: "both" }, direct: true })).toEqual([2, 4, 5, 8]);
    expect(shown({ cone: { event: 3, way: "concurrent" } })).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(shown({ cone: { event: 4, way: "past" }, hiddenProcesses: new Set([0]) })).toEqual([1, 2, 4]);
  });
  it("hides control messages", () => {
    const m = modelOf([{ p: "a", kind: "send", message: "k", control: true }, { p: "a" }]);
    expect(indexesOf(shownMask(m, { ...ALL, control: false }))).toEqual([1]);
  });
  it("collapses runs of local events that no edge touches", () => {
    const m = modelOf([{ p: "a" }, { p: "a" }, { p: "b" }, { p: "a" }, { p: "a", kind: "send", message: "m" }, { p: "a" },
      { p: "b", parents: [3] }, { p: "a", fault: "kill" }, { p: "a" }, { p: "a" }]);
    const shown = shownMask(m, ALL);
    const runs = collapseRuns(m, shown, dashedEdges(m, shown));
    expect(indexesOf(runs.marked)).toEqual([0, 2, 3, 4, 5, 6, 7, 8]);
    expect([...runs.size]).toEqual([[0, 2], [8, 2]]);
    expect(runs.last.get(8)).toBe(9);
  });
});

describe("dashed edges of random executions", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])("are exactly the reduced paths through hidden events, seed %i", (seed) => {
    let state = seed;
    const random = (below: number) => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 8) % below;
    const events = Array.from({ length: 40 }, (_, at) => {
      const p = random(5);
      return { p: `p${p}`, parents: at > 0 && random(2) ? [random(at)] : [] };
    });
    for (const event of events) event.parents = event.parents.filter((from) => events[from].p !== event.p);
    const m = modelOf(events);
    const shown = Uint8Array.from(events, () => (random(5) < 2 ? 1 : 0));
    const before = (a: number, b: number) => a !== b && pastMask(m, b)[a] === 1;
    const visible = indexesOf(shown);
    const expected: string[] = [];
    for (const to of visible)
      for (const from of visible) {
        const otherProcess = m.process[from] !== m.process[to];
        const between = visible.some((middle) => before(from, middle) && before(middle, to));
        if (otherProcess && before(from, to) && !between && !events[to].parents.includes(from)) expected.push(`${from} ${to}`);
      }
    const { from, to, capped } = dashedEdges(m, shown);
    expect(Array.from(from, (event, at) => `${event} ${to[at]}`).sort()).toEqual(expected.sort());
    expect(capped).toBe(false);
  });
});

describe("layout", () => {
  it("places by position, block and time", () => {
    expect([...layoutOf(model, "position").x]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([...layoutOf(model, "block").x]).toEqual([1, 2, 3, 2, 4, 5, 6, 7, 8, 3]);
    expect([...layoutOf(model, "time").x]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 2.5]);
  });
  it("shares a block between events of one process", () => {
    expect([...layoutOf(modelOf([{ p: "a", block: 2 }, { p: "a", block: 2 }, { p: "b", block: 2 }]), "block").x]).toEqual([1.75, 2.25, 2]);
  });
  it("draws an arrow to a delivery only where there is no receipt", () => {
    const { arrows } = layoutOf(model, "position");
    expect(Array.from(arrows, (edge) => [model.cause[edge], model.edgeTo[edge]])).toEqual([[0, 1], [4, 5], [0, 6]]);
  });
  it("finds inversions in time order", () => {
    const m = modelOf([
      { p: "a", kind: "send", message: "m", time: 5 },
      { p: "b", kind: "receive", message: "m", causes: [0], time: 3 },
      { p: "b" },
      { p: "c", time: 4 },
    ]);
    const layout = layoutOf(m, "position", "time");
    expect([...layout.x]).toEqual([3, 0, 1, 2]);
    expect([...layout.inversions]).toEqual([0]);
    expect([...layout.stepsBack]).toEqual([]);
    expect([...layoutOf(model, "position", "time").stepsBack]).toEqual([9]);
    expect(layout.untimed).toBe(1);
    expect([...layoutOf(m, "position").inversions]).toEqual([]);
  });
  it("lays out nothing at all", () => {
    expect(layoutOf(modelOf([]), "time").order.length).toBe(0);
  });
});

describe("messages and moments", () => {
  it("has a row for each message in order of sends", () => {
    const { x } = layoutOf(model, "position");
    const rows = messageRows(model, shownMask(model, ALL), x);
    expect(Array.from(rows.messages, (message) => model.strings[message])).toEqual(["m1", "m2"]);
    expect([...rows.begin]).toEqual([0, 5, 8]);
    expect([...rows.events]).toEqual([0, 1, 2, 6, 7, 4, 5, 8]);
    expect([...rows.low]).toEqual([0, 4]);
    expect([...rows.high]).toEqual([7, 8]);
  });
  it("counts messages in flight and held", () => {
    const layout = layoutOf(model, "position");
    const held = heldStretches(model);
    expect(momentAt(model, layout, held, 0)).toEqual({ happened: 0, inFlight: 0, held: 0 });
    expect(momentAt(model, layout, held, 5)).toEqual({ happened: 5, inFlight: 2, held: 0 });
    expect(momentAt(model, layout, held, 6)).toEqual({ happened: 6, inFlight: 1, held: 1 });
    expect(momentAt(model, layout, held, 9)).toEqual({ happened: 9, inFlight: 0, held: 0 });
  });
});
