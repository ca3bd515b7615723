// What happened before an event, what it may have caused, and what it knows nothing of.
// Causes have smaller indexes, so one pass over the events is enough for each.

import type { Model } from "./model";

/** 1 for the event and everything that happened before it. */
export function pastMask(model: Model, event: number): Uint8Array {
  const { previous, causeBegin, cause } = model;
  const mask = new Uint8Array(model.events);
  mask[event] = 1;
  for (let at = event; at >= 0; at--) {
    if (!mask[at]) continue;
    if (previous[at] >= 0) mask[previous[at]] = 1;
    for (let edge = causeBegin[at]; edge < causeBegin[at + 1]; edge++) mask[cause[edge]] = 1;
  }
  return mask;
}

/** 1 for the event and everything that happened after it. */
export function futureMask(model: Model, event: number): Uint8Array {
  const { previous, causeBegin, cause } = model;
  const mask = new Uint8Array(model.events);
  mask[event] = 1;
  for (let at = event + 1; at < model.events; at++) {
    let after = previous[at] >= 0 && mask[previous[at]] === 1;
    for (let edge = causeBegin[at]; !after && edge < causeBegin[at + 1]; edge++) after = mask[cause[edge]] === 1;
    if (after) mask[at] = 1;
  }
  return mask;
}

/** 1 for the event and every event of the same execution that neither caused it nor was caused by it. */
export function concurrentMask(model: Model, event: number): Uint8Array {
  const past = pastMask(model, event);
  const future = futureMask(model, event);
  const mask = new Uint8Array(model.events);
  for (let at = 0; at < model.events; at++)
    mask[at] = !past[at] && !future[at] && model.part[at] === model.part[event] ? 1 : 0;
  mask[event] = 1;
  return mask;
}

export function directCauses(model: Model, event: number): number[] {
  const causes = Array.from(model.cause.subarray(model.causeBegin[event], model.causeBegin[event + 1]));
  if (model.previous[event] >= 0) causes.unshift(model.previous[event]);
  return [...new Set(causes)];
}

export function directEffects(model: Model, event: number): number[] {
  const edges = model.effectEdge.subarray(model.effectBegin[event], model.effectBegin[event + 1]);
  const effects = Array.from(edges, (edge) => model.edgeTo[edge]);
  if (model.next[event] >= 0) effects.unshift(model.next[event]);
  return [...new Set(effects)];
}

export function maskOf(model: Model, events: number[]): Uint8Array {
  const mask = new Uint8Array(model.events);
  for (const event of events) mask[event] = 1;
  return mask;
}

export function indexesOf(mask: Uint8Array): number[] {
  const indexes: number[] = [];
  for (let at = 0; at < mask.length; at++) if (mask[at]) indexes.push(at);
  return indexes;
}
