// Does one event happen before another? Vector clocks answer at once where there is memory for them; else a walk back does.

import type { Model } from "./model";

const MOST_CLOCK_ENTRIES = 16_000_000;
/** Steps of all walks together, and of a single one. */
const STEPS_IN_ALL = 2_000_000;
const STEPS_AT_ONCE = 4000;

export type Precedence = {
  happensBefore(before: number, after: number): boolean;
  /** True once a walk gave up: a "no" since then may be wrong. */
  gaveUp(): boolean;
};

export function precedenceOf(model: Model, mostClockEntries = MOST_CLOCK_ENTRIES): Precedence {
  return model.events * model.processes.length <= mostClockEntries ? byClocks(model) : byWalking(model);
}

const known = new WeakMap<Model, { clocks: Uint32Array; places: Uint32Array }>();

function byClocks(model: Model): Precedence {
  let made = known.get(model);
  if (!made) known.set(model, (made = clocksOf(model)));
  const { clocks, places } = made;
  const width = model.processes.length;
  return {
    happensBefore: (before, after) => before < after && clocks[after * width + model.process[before]] > places[before],
    gaveUp: () => false,
  };
}

/** For each event and process, how many events of the process are in the event's past, itself included. */
function clocksOf(model: Model): { clocks: Uint32Array; places: Uint32Array } {
  const width = model.processes.length;
  const clocks = new Uint32Array(model.events * width);
  const places = new Uint32Array(model.events);
  for (let event = 0; event < model.events; event++) {
    const base = event * width;
    const take = (cause: number) => {
      const other = cause * width;
      for (let process = 0; process < width; process++)
        if (clocks[other + process] > clocks[base + process]) clocks[base + process] = clocks[other + process];
    };
    const previous = model.previous[event];
    if (previous >= 0) {
      clocks.copyWithin(base, previous * width, (previous + 1) * width);
      places[event] = places[previous] + 1;
    }
    for (let edge = model.causeBegin[event]; edge < model.causeBegin[event + 1]; edge++) take(model.cause[edge]);
    clocks[base + model.process[event]] = places[event] + 1;
  }
  return { clocks, places };
}

function byWalking(model: Model): Precedence {
  let left = STEPS_IN_ALL;
  let gaveUp = false;
  return {
    happensBefore: (before, after) => {
      if (before >= after) return false;
      const seen = new Set<number>([after]);
      const open = [after];
      for (let steps = 0; open.length > 0; steps++) {
        if (steps >= STEPS_AT_ONCE || left-- <= 0) {
          gaveUp = true;
          return false;
        }
        const at = open.pop() as number;
        if (model.process[at] === model.process[before]) return true;
        const visit = (cause: number) => {
          // What lies before `before` cannot lead to it.
          if (cause < before || seen.has(cause)) return;
          seen.add(cause);
          open.push(cause);
        };
        if (model.previous[at] >= 0) visit(model.previous[at]);
        for (let edge = model.causeBegin[at]; edge < model.causeBegin[at + 1]; edge++) visit(model.cause[edge]);
      }
      return false;
    },
    gaveUp: () => gaveUp,
  };
}
