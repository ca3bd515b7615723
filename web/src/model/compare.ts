// Two executions as one model, side by side: which events are in both, only in one, in another order, or changed.

import { lowerBound } from "./layout";
import { buildModel, groupOf, textOf, type Model } from "./model";
import { findTwins } from "./twins";
import type { Execution, Verdict } from "./types";

export const BOTH = 0;
export const ONLY_HERE = 1;
export const MOVED = 2;
export const CHANGED = 3;

export type Difference = { kind: "only in first" | "only in second" | "moved" | "changed"; event: number; other: number };

export type Comparison = {
  model: Model;
  /** Number of processes of each part: both have the same, by name. */
  partSizes: [number, number];
  names: [string, string];
  /** The same event in the other execution, -1 where there is none. */
  twin: Int32Array;
  mark: Uint8Array;
  differences: Difference[];
};

export function compare(first: Execution, second: Execution): Comparison {
  const names = [...new Set([...first.processes, ...second.processes])];
  const model = buildModel(joined(first, second, names));
  model.part.fill(1, first.events);
  const twin = findTwins(model, names.length);
  const mark = new Uint8Array(model.events);
  for (let event = 0; event < model.events; event++) if (twin[event] < 0) mark[event] = ONLY_HERE;
  for (let lane = 0; lane < names.length; lane++) {
    const events = model.laneEvents.subarray(model.laneBegin[lane], model.laneBegin[lane + 1]);
    const both = Array.from(events).filter((event) => twin[event] >= 0);
    const kept = new Set(longestIncreasing(both.map((event) => twin[event])));
    both.forEach((event, at) => {
      if (!kept.has(at)) mark[event] = mark[twin[event]] = MOVED;
    });
  }
  const differences: Difference[] = [];
  const addPair = (kind: "moved" | "changed", event: number) => differences.push({ kind, event, other: twin[event] });
  for (let event = 0; event < model.events; event++) {
    if (mark[event] === ONLY_HERE)
      differences.push({ kind: model.part[event] ? "only in second" : "only in first", event, other: -1 });
    if (twin[event] < 0 || model.part[event]) continue;
    if (mark[event] === MOVED) addPair("moved", event);
    if (!tellsOther(model, event, twin[event])) continue;
    addPair("changed", event);
    // One sign has room below an event; the list tells both.
    if (mark[event] !== MOVED) mark[event] = mark[twin[event]] = CHANGED;
  }
  return { model, partSizes: [names.length, names.length], names: [first.name, second.name], twin, mark, differences };
}

function joined(first: Execution, second: Execution, names: string[]): Execution {
  const place = new Map(names.map((name, at) => [name, at]));
  const shiftedStrings = (column: "message" | "id" | "text" | "group" | "fault") =>
    Int32Array.from([
      ...first[column],
      ...second[column].map((value) => (value < 0 ? -1 : value + first.strings.length)),
    ]);
  const numbers = (column: "seq" | "time" | "position") => Float64Array.from([...first[column], ...second[column]]);
  const bytes = (column: "kind" | "control" | "causeKind") => Uint8Array.from([...first[column], ...second[column]]);
  const causeBegin = new Uint32Array(first.events + second.events + 1);
  causeBegin.set(first.causeBegin);
  second.causeBegin.forEach((begin, at) => (causeBegin[first.events + at] = begin + first.cause.length));
  return {
    name: `${first.name} and ${second.name}`,
    processes: [...names, ...names],
    strings: [...first.strings, ...second.strings],
    events: first.events + second.events,
    total: first.total + second.total,
    leftOut: [first.leftOut, second.leftOut].filter((sentence) => sentence !== null).join(" ") || null,
    timeUnit: first.timeUnit ?? second.timeUnit,
    process: Uint32Array.from([
      ...Array.from(first.process, (process) => place.get(first.processes[process]) ?? 0),
      ...Array.from(second.process, (process) => names.length + (place.get(second.processes[process]) ?? 0)),
    ]),
    seq: numbers("seq"),
    kind: bytes("kind"),
    control: bytes("control"),
    block: Uint32Array.from([...first.block, ...second.block]),
    time: numbers("time"),
    position: numbers("position"),
    message: shiftedStrings("message"),
    id: shiftedStrings("id"),
    text: shiftedStrings("text"),
    group: shiftedStrings("group"),
    fault: shiftedStrings("fault"),
    causeBegin,
    cause: Uint32Array.from([...first.cause, ...Array.from(second.cause, (cause) => cause + first.events)]),
    causeKind: bytes("causeKind"),
    violations: [
      ...first.violations,
      ...second.violations.map((violation) => ({
        ...violation,
        delivered: violation.delivered + first.events,
        before: violation.before < 0 ? -1 : violation.before + first.events,
        chain: violation.chain.map((event) => event + first.events),
      })),
    ],
    found: first.found === null || second.found === null ? null : first.found + second.found,
    verdict: bothVerdicts(first, second),
  };
}

/** What is said about both: as one where it is the same, else of each by its name. */
function bothVerdicts(first: Execution, second: Execution): Verdict {
  const [one, other] = [first.verdict, second.verdict];
  if (one.status === other.status && one.sentence === other.sentence) return one;
  return { ...(one.status === "unjudged" ? one : other), sentence: `${first.name}: ${one.sentence} ${second.name}: ${other.sentence}` };
}

/** Whether two events that are the same by id or place tell different things. */
function tellsOther(model: Model, event: number, other: number): boolean {
  return (
    model.kind[event] !== model.kind[other] ||
    model.control[event] !== model.control[other] ||
    textOf(model, event) !== textOf(model, other) ||
    groupOf(model, event) !== groupOf(model, other)
  );
}

/** Places of a longest increasing subsequence. */
export function longestIncreasing(values: number[]): number[] {
  const tails: number[] = [];
  const tailPlaces: number[] = [];
  const before = new Int32Array(values.length).fill(-1);
  values.forEach((value, place) => {
    const at = lowerBound(tails, value, 0, tails.length);
    tails[at] = value;
    tailPlaces[at] = place;
    if (at > 0) before[place] = tailPlaces[at - 1];
  });
  const places: number[] = [];
  for (let place = tailPlaces.at(-1) ?? -1; place >= 0; place = before[place]) places.push(place);
  return places.reverse();
}

/**
 * x of both executions by position such that events in both stand below each other wherever one order allows it; between
 * these, each execution goes on at its own pace.
 */
export function alignedX(comparison: Comparison, marked: Uint8Array): Float64Array {
  const { model, twin } = comparison;
  const x = new Float64Array(model.events).fill(NaN);
  const first: number[] = [];
  const second: number[] = [];
  for (let event = 0; event < model.events; event++) if (marked[event]) (model.part[event] ? second : first).push(event);
  const both = first.filter((event) => twin[event] >= 0 && marked[twin[event]]);
  const anchors = longestIncreasing(both.map((event) => twin[event])).map((place) => both[place]);
  let [atFirst, atSecond, column] = [0, 0, 0];
  for (const anchor of [...anchors, -1]) {
    let [columnFirst, columnSecond] = [column, column];
    while (atFirst < first.length && first[atFirst] !== anchor) x[first[atFirst++]] = columnFirst++;
    while (atSecond < second.length && second[atSecond] !== (anchor < 0 ? -1 : twin[anchor])) x[second[atSecond++]] = columnSecond++;
    column = Math.max(columnFirst, columnSecond);
    if (anchor < 0) break;
    x[anchor] = x[twin[anchor]] = column++;
    atFirst++;
    atSecond++;
  }
  return x;
}
