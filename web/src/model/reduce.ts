// Showing less: which events are shown, what causality their absence leaves, and runs of local events as one mark.

import { concurrentMask, directCauses, directEffects, futureMask, maskOf, pastMask } from "./cones";
import type { Model } from "./model";
import { precedenceOf, type Precedence } from "./precedence";
import { LOCAL } from "./types";

export type ConeWay = "past" | "future" | "both" | "concurrent";
export type Cone = { event: number; way: ConeWay };

export type Filter = {
  hiddenProcesses: ReadonlySet<number>;
  control: boolean;
  cone: Cone | null;
  direct: boolean;
  /** Only events of this mask (a search), or null. */
  only: Uint8Array | null;
};

export function shownMask(model: Model, filter: Filter): Uint8Array {
  const shown = new Uint8Array(model.events).fill(1);
  const keep = (mask: Uint8Array) => {
    for (let event = 0; event < shown.length; event++) shown[event] &= mask[event];
  };
  if (filter.cone) keep(coneMask(model, filter.cone, filter.direct));
  if (filter.only) keep(filter.only);
  const hidden = Uint8Array.from(model.processes, (_, process) => (filter.hiddenProcesses.has(process) ? 1 : 0));
  for (let event = 0; event < shown.length; event++)
    if (hidden[model.process[event]] || (!filter.control && model.control[event])) shown[event] = 0;
  return shown;
}

function coneMask(model: Model, { event, way }: Cone, direct: boolean): Uint8Array {
  if (way === "concurrent") return concurrentMask(model, event);
  const past = way === "future" ? [] : directCauses(model, event);
  const future = way === "past" ? [] : directEffects(model, event);
  if (direct) return maskOf(model, [event, ...past, ...future]);
  if (way === "past") return pastMask(model, event);
  if (way === "future") return futureMask(model, event);
  const mask = pastMask(model, event);
  futureMask(model, event).forEach((after, at) => (mask[at] |= after));
  return mask;
}

export type Dashed = { from: Uint32Array; to: Uint32Array; capped: boolean };

const MOST_PREDECESSORS = 24;
const MOST_DASHED = 200_000;

/**
 * Edges between shown events whose causal path goes only through hidden ones. One pass in index order: each hidden event
 * carries its nearest shown predecessors, the last of each process; an edge is left out where another shown event
 * already carries it.
 */
export function dashedEdges(model: Model, shown: Uint8Array): Dashed {
  const from: number[] = [];
  const to: number[] = [];
  let capped = false;
  const precedence = precedenceOf(model);
  const carried: (number[] | undefined)[] = new Array(model.events);
  const latest = new Map<number, number>();
  const gather = (cause: number, throughHidden: boolean): void => {
    if (shown[cause]) {
      if (throughHidden) keepLatest(latest, model.process[cause], cause);
    } else for (const event of carried[cause] ?? []) keepLatest(latest, model.process[event], event);
  };
  for (let event = 0; event < model.events; event++) {
    latest.clear();
    const hidden = !shown[event];
    if (model.previous[event] >= 0) gather(model.previous[event], hidden);
    for (let edge = model.causeBegin[event]; edge < model.causeBegin[event + 1]; edge++) gather(model.cause[edge], hidden);
    if (latest.size === 0) continue;
    if (hidden) {
      let nearest = [...latest.values()];
      if (nearest.length > MOST_PREDECESSORS) {
        nearest = nearest.sort((a, b) => b - a).slice(0, MOST_PREDECESSORS);
        capped = true;
      }
      carried[event] = nearest;
      continue;
    }
    for (const source of reduced(model, precedence, shown, event, latest)) {
      if (from.length >= MOST_DASHED) return { from: Uint32Array.from(from), to: Uint32Array.from(to), capped: true };
      from.push(source);
      to.push(event);
    }
  }
  return { from: Uint32Array.from(from), to: Uint32Array.from(to), capped: capped || precedence.gaveUp() };
}

function keepLatest(latest: Map<number, number>, process: number, event: number): void {
  const known = latest.get(process);
  if (known === undefined || known < event) latest.set(process, event);
}

function reduced(model: Model, precedence: Precedence, shown: Uint8Array, event: number, latest: Map<number, number>): number[] {
  const carriers = new Set<number>(latest.values());
  const direct = new Set<number>();
  for (const cause of directCauses(model, event)) if (shown[cause]) direct.add(cause);
  for (const cause of direct) carriers.add(cause);
  let own = model.previous[event];
  while (own >= 0 && !shown[own]) own = model.previous[own];
  if (own >= 0) carriers.add(own);
  return [...latest.values()].filter((source) => {
    if (model.process[source] === model.process[event] || direct.has(source)) return false;
    for (const carrier of carriers)
      if (carrier !== source && precedence.happensBefore(source, carrier)) return false;
    return true;
  });
}

export type Runs = {
  /** 1 for events that are drawn as marks: all shown events, but of a run only its first. */
  marked: Uint8Array;
  /** Last event and number of events of the run that starts at an event. */
  last: Map<number, number>;
  size: Map<number, number>;
};

/** Runs of two or more local events of a process, shown one after the other, that no shown edge enters or leaves. */
export function collapseRuns(model: Model, shown: Uint8Array, dashed: Dashed): Runs {
  const alone = new Uint8Array(model.events);
  for (let event = 0; event < model.events; event++)
    alone[event] = shown[event] && model.kind[event] === LOCAL && model.fault[event] < 0 ? 1 : 0;
  for (let edge = 0; edge < model.cause.length; edge++) alone[model.cause[edge]] = alone[model.edgeTo[edge]] = 0;
  for (const event of dashed.from) alone[event] = 0;
  for (const event of dashed.to) alone[event] = 0;
  const runs: Runs = { marked: shown.slice(), last: new Map(), size: new Map() };
  for (let lane = 0; lane < model.processes.length; lane++) {
    let head = -1;
    for (let at = model.laneBegin[lane]; at < model.laneBegin[lane + 1]; at++) {
      const event = model.laneEvents[at];
      if (!shown[event]) continue;
      if (!alone[event]) head = -1;
      else if (head < 0) head = event;
      else {
        runs.marked[event] = 0;
        runs.last.set(head, event);
        runs.size.set(head, (runs.size.get(head) ?? 1) + 1);
      }
    }
  }
  return runs;
}
