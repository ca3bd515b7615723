// Where events stand: x by mode, a row for each shown process.

import { carriedByReceipt, type Model } from "./model";

export type XMode = "position" | "block" | "time";
export type Order = "causal" | "time";

export type Layout = {
  /** x of each marked event in units of the mode, NaN for the others. */
  x: Float64Array;
  low: number;
  high: number;
  /** Marked events from left to right. */
  order: Uint32Array;
  /** Row of each process, -1 where it is not shown. */
  rowOf: Int32Array;
  /** Process of each row; -1 is the heading of a part in a comparison. */
  rows: Int32Array;
  /** Marked events of each row from left to right. */
  rowBegin: Uint32Array;
  rowEvents: Uint32Array;
  /** x of rowEvents, so that a binary search stays in one array. */
  rowX: Float64Array;
  /** Drawn arrows: indexes of causes. */
  arrows: Uint32Array;
  /** Arrows (indexes of causes) whose effect stands left of its cause. */
  inversions: Uint32Array;
  /** Events that stand left of the event before them in their process. */
  stepsBack: Uint32Array;
  /** Events without a time that stand beside a neighbour. */
  untimed: number;
};

/** The time of each event; one without a time stands where the event before it in its process does, or else the next. */
export function times(model: Model): { time: Float64Array; untimed: number } {
  const time = model.time.slice();
  let untimed = 0;
  let earliest = Infinity;
  for (const value of time) if (value < earliest) earliest = value;
  if (earliest === Infinity) earliest = 0;
  for (let event = 0; event < model.events; event++) {
    if (!Number.isNaN(time[event])) continue;
    untimed++;
    if (model.previous[event] >= 0) time[event] = time[model.previous[event]];
  }
  for (let event = model.events - 1; event >= 0; event--)
    if (Number.isNaN(time[event])) time[event] = model.next[event] >= 0 ? time[model.next[event]] : earliest;
  return { time, untimed };
}

/** Beyond this, the difference of two times or a margin around them would be infinite. */
const FURTHEST = Number.MAX_VALUE / 4;

const drawable = (time: number): number => Math.max(-FURTHEST, Math.min(FURTHEST, time));

export function placeX(model: Model, marked: Uint8Array, mode: XMode, order: Order): { x: Float64Array; untimed: number } {
  if (mode === "block") return { x: blockX(model, marked), untimed: 0 };
  const timed = mode === "time" || order === "time" ? times(model) : null;
  const x = new Float64Array(model.events).fill(NaN);
  if (mode === "time" && timed) {
    for (let event = 0; event < model.events; event++) if (marked[event]) x[event] = drawable(timed.time[event]);
    return { x, untimed: timed.untimed };
  }
  let ranked = marksOf(marked);
  if (timed) ranked = ranked.sort((a, b) => timed.time[a] - timed.time[b] || a - b);
  ranked.forEach((event, rank) => (x[event] = rank));
  return { x, untimed: timed?.untimed ?? 0 };
}

function marksOf(marked: Uint8Array): Uint32Array {
  let size = 0;
  for (const mark of marked) size += mark;
  const marks = new Uint32Array(size);
  let at = 0;
  for (let event = 0; event < marked.length; event++) if (marked[event]) marks[at++] = event;
  return marks;
}

/** Events of the same process and block share the width of the block. */
function blockX(model: Model, marked: Uint8Array): Float64Array {
  const x = new Float64Array(model.events).fill(NaN);
  for (let lane = 0; lane < model.processes.length; lane++) {
    const members = Array.from(model.laneEvents.subarray(model.laneBegin[lane], model.laneBegin[lane + 1])).filter(
      (event) => marked[event],
    );
    for (let start = 0; start < members.length; ) {
      const block = model.block[members[start]];
      let end = start + 1;
      while (end < members.length && model.block[members[end]] === block) end++;
      for (let at = start; at < end; at++) x[members[at]] = block - 0.5 + (at - start + 0.5) / (end - start);
      start = end;
    }
  }
  return x;
}

/** Rows in the order of processes; a process without a shown event has none once something is hidden. */
export function planRows(model: Model, marked: Uint8Array, hidden: ReadonlySet<number>, partSizes: number[]): Int32Array {
  const used = new Uint8Array(model.processes.length);
  let everything = true;
  for (let event = 0; event < model.events; event++) {
    if (marked[event]) used[model.process[event]] = 1;
    else everything = false;
  }
  const rows: number[] = [];
  let first = 0;
  for (const size of partSizes) {
    if (partSizes.length > 1) rows.push(-1);
    for (let process = first; process < first + size; process++)
      if (used[process] || (everything && !hidden.has(process)) || (partSizes.length > 1 && !hidden.has(process))) rows.push(process);
    first += size;
  }
  return Int32Array.from(rows);
}

export function arrange(model: Model, marked: Uint8Array, x: Float64Array, untimed: number, rows: Int32Array): Layout {
  const rowOf = new Int32Array(model.processes.length).fill(-1);
  rows.forEach((process, row) => {
    if (process >= 0) rowOf[process] = row;
  });
  const order = marksOf(marked).sort((a, b) => x[a] - x[b] || a - b);
  const rowBegin = new Uint32Array(rows.length + 1);
  for (const event of order) rowBegin[rowOf[model.process[event]] + 1]++;
  for (let row = 0; row < rows.length; row++) rowBegin[row + 1] += rowBegin[row];
  const free = rowBegin.slice();
  const rowEvents = new Uint32Array(order.length);
  const rowX = new Float64Array(order.length);
  for (const event of order) {
    const at = free[rowOf[model.process[event]]]++;
    rowEvents[at] = event;
    rowX[at] = x[event];
  }
  const arrows: number[] = [];
  const inversions: number[] = [];
  for (let edge = 0; edge < model.cause.length; edge++) {
    const from = model.cause[edge];
    const to = model.edgeTo[edge];
    if (!marked[from] || !marked[to] || carriedByReceipt(model, edge, marked)) continue;
    arrows.push(edge);
    if (x[to] < x[from]) inversions.push(edge);
  }
  const stepsBack: number[] = [];
  for (let lane = 0; lane < model.processes.length; lane++) {
    let before = -1;
    for (let at = model.laneBegin[lane]; at < model.laneBegin[lane + 1]; at++) {
      const event = model.laneEvents[at];
      if (!marked[event]) continue;
      if (before >= 0 && x[event] < x[before]) stepsBack.push(event);
      before = event;
    }
  }
  return {
    x,
    low: order.length ? x[order[0]] : 0,
    high: order.length ? x[order[order.length - 1]] : 0,
    order,
    rowOf,
    rows,
    rowBegin,
    rowEvents,
    rowX,
    arrows: Uint32Array.from(arrows),
    inversions: Uint32Array.from(inversions),
    stepsBack: Uint32Array.from(stepsBack),
    untimed,
  };
}

/** The first place in values[begin .. end) that is not below the target. */
export function lowerBound(values: ArrayLike<number>, target: number, begin: number, end: number): number {
  while (begin < end) {
    const middle = (begin + end) >>> 1;
    if (values[middle] < target) begin = middle + 1;
    else end = middle;
  }
  return begin;
}
