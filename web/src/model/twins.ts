// Which event of one execution is which of the other: by explicit id, or else by what a process did one after the other.

import { messageOf, nameOf, textOf, type Model } from "./model";

/** Cells of the table for a longest common subsequence: of one process (5,000 events against 5,000), and of all. */
const MOST_CELLS = 5_000 * 5_000;
const MOST_CELLS_IN_ALL = 8 * MOST_CELLS;

/** The same event in the other execution, -1 where there is none. Process p of the first is `processes` + p in the second. */
export function findTwins(model: Model, processes: number): Int32Array {
  const twin = new Int32Array(model.events).fill(-1);
  const join = (first: number, second: number) => {
    twin[first] = second;
    twin[second] = first;
  };
  const deed = deedNumbers(model);
  let cellsLeft = MOST_CELLS_IN_ALL;
  for (let lane = 0; lane < processes; lane++) {
    const [first, second] = [laneOf(model, lane), laneOf(model, processes + lane)];
    const hasId = (event: number) => model.id[event] >= 0;
    joinByKey(first.filter(hasId), second.filter(hasId), (event) => nameOf(model, event), join);
    const unnamed = (event: number) => model.id[event] < 0;
    const [a, b, sides] = withoutCommonEnds(first.filter(unnamed), second.filter(unnamed), deed);
    for (const [one, other] of sides) join(one, other);
    const cells = a.length * b.length;
    if (cells <= Math.min(MOST_CELLS, cellsLeft)) {
      cellsLeft -= cells;
      for (const [one, other] of commonSubsequence(a.map((event) => deed[event]), b.map((event) => deed[event]))) join(a[one], b[other]);
    } else joinByKey(a, b, (event) => `${model.seq[event]} ${deed[event]}`, join);
    // The same deed with the same message, at another place of the process: it moved.
    const left = (event: number) => twin[event] < 0 && model.message[event] >= 0;
    joinByKey(a.filter(left), b.filter(left), (event) => String(deed[event]), join);
  }
  return twin;
}

const laneOf = (model: Model, lane: number): number[] =>
  Array.from(model.laneEvents.subarray(model.laneBegin[lane], model.laneBegin[lane + 1]));

/** A number for each event, the same for events of the same kind, message and text. */
function deedNumbers(model: Model): Int32Array {
  const known = new Map<string, number>();
  const numberOf = (key: string): number => {
    const number = known.get(key) ?? known.size;
    known.set(key, number);
    return number;
  };
  return Int32Array.from({ length: model.events }, (_, event) => {
    // Texts become numbers first, so that a key never joins two long texts.
    const [message, text] = [numberOf(`message ${messageOf(model, event)}`), numberOf(`text ${textOf(model, event)}`)];
    return numberOf(`${model.kind[event]} ${message} ${text}`);
  });
}

function joinByKey(first: number[], second: number[], keyOf: (event: number) => string, join: (first: number, second: number) => void): void {
  const waiting = new Map<string, number[]>();
  // From the end, so that of several equal ones the earliest is taken first.
  for (const event of [...first].reverse()) {
    const key = keyOf(event);
    const known = waiting.get(key);
    if (known) known.push(event);
    else waiting.set(key, [event]);
  }
  for (const event of second) {
    const other = waiting.get(keyOf(event))?.pop();
    if (other !== undefined) join(other, event);
  }
}

/** The middles that differ, and the pairs before and after them. Most lanes have no middle. */
function withoutCommonEnds(first: number[], second: number[], deed: Int32Array): [number[], number[], [number, number][]] {
  const shorter = Math.min(first.length, second.length);
  let head = 0;
  while (head < shorter && deed[first[head]] === deed[second[head]]) head++;
  let tail = 0;
  while (tail < shorter - head && deed[first[first.length - 1 - tail]] === deed[second[second.length - 1 - tail]]) tail++;
  const pairs: [number, number][] = [];
  for (let at = 0; at < head; at++) pairs.push([first[at], second[at]]);
  for (let at = 1; at <= tail; at++) pairs.push([first[first.length - at], second[second.length - at]]);
  return [first.slice(head, first.length - tail), second.slice(head, second.length - tail), pairs];
}

/** Places of a longest common subsequence of two lists, by a table of the lengths for all their ends. */
export function commonSubsequence(first: number[], second: number[]): [number, number][] {
  const width = second.length + 1;
  // A length is at most that of the shorter list, and two lists share MOST_CELLS: 16 bits are enough.
  const length = new Uint16Array((first.length + 1) * width);
  for (let a = first.length - 1; a >= 0; a--)
    for (let b = second.length - 1; b >= 0; b--) {
      const at = a * width + b;
      length[at] = first[a] === second[b] ? length[at + width + 1] + 1 : Math.max(length[at + width], length[at + 1]);
    }
  const pairs: [number, number][] = [];
  for (let a = 0, b = 0; a < first.length && b < second.length; )
    if (first[a] === second[b]) pairs.push([a++, b++]);
    else if (length[(a + 1) * width + b] >= length[a * width + b + 1]) a++;
    else b++;
  return pairs;
}
