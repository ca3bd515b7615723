// An execution with the indexes that everything else needs: lanes, neighbours, effects, pairs of a message.

import { BY_MESSAGE, DELIVER, KIND_NAMES, RECEIVE, SEND, type Execution } from "./types";

export type Model = Execution & {
  /** Events of process p, in order: laneEvents[laneBegin[p] .. laneBegin[p + 1]). */
  laneBegin: Uint32Array;
  laneEvents: Uint32Array;
  /** The neighbours in the same process, -1 at the ends. */
  previous: Int32Array;
  next: Int32Array;
  /** The event at the end of each cause. */
  edgeTo: Uint32Array;
  /** Edges that leave event e: effectEdge[effectBegin[e] .. effectBegin[e + 1]). */
  effectBegin: Uint32Array;
  effectEdge: Uint32Array;
  /** The send of a message (index into strings), or -1. */
  sendOf: Int32Array;
  /** For a delivery, the receipt of the same message in the same process, or -1. */
  receiptOf: Int32Array;
  /** Which of two compared executions an event is from: 0 or 1. Always 0 in a view. */
  part: Uint8Array;
};

export function buildModel(execution: Execution): Model {
  const { events, process, cause, causeBegin } = execution;
  const edgeTo = new Uint32Array(cause.length);
  for (let event = 0; event < events; event++) edgeTo.fill(event, causeBegin[event], causeBegin[event + 1]);
  const [laneBegin, laneEvents] = grouped(process, events, execution.processes.length);
  const [effectBegin, effectEdge] = grouped(cause, cause.length, events);
  const previous = new Int32Array(events).fill(-1);
  const next = new Int32Array(events).fill(-1);
  for (let lane = 0; lane < execution.processes.length; lane++)
    for (let at = laneBegin[lane] + 1; at < laneBegin[lane + 1]; at++) {
      previous[laneEvents[at]] = laneEvents[at - 1];
      next[laneEvents[at - 1]] = laneEvents[at];
    }
  return {
    ...execution,
    laneBegin,
    laneEvents,
    previous,
    next,
    edgeTo,
    effectBegin,
    effectEdge,
    sendOf: sends(execution),
    receiptOf: receipts(execution, laneBegin, laneEvents),
    part: new Uint8Array(events),
  };
}

/** Indexes 0..length-1 grouped by key: a counting sort, stable. */
export function grouped(keys: ArrayLike<number>, length: number, groups: number): [Uint32Array, Uint32Array] {
  const begin = new Uint32Array(groups + 1);
  for (let at = 0; at < length; at++) begin[keys[at] + 1]++;
  for (let group = 0; group < groups; group++) begin[group + 1] += begin[group];
  const free = begin.slice();
  const members = new Uint32Array(length);
  for (let at = 0; at < length; at++) members[free[keys[at]]++] = at;
  return [begin, members];
}

function sends(execution: Execution): Int32Array {
  const sendOf = new Int32Array(execution.strings.length).fill(-1);
  for (let event = execution.events - 1; event >= 0; event--)
    if (execution.kind[event] === SEND && execution.message[event] >= 0) sendOf[execution.message[event]] = event;
  return sendOf;
}

function receipts(execution: Execution, laneBegin: Uint32Array, laneEvents: Uint32Array): Int32Array {
  const { events, kind, message } = execution;
  const receiptOf = new Int32Array(events).fill(-1);
  const received = new Map<number, number>();
  for (let lane = 0; lane < execution.processes.length; lane++) {
    received.clear();
    for (let at = laneBegin[lane]; at < laneBegin[lane + 1]; at++) {
      const event = laneEvents[at];
      if (message[event] < 0) continue;
      if (kind[event] === RECEIVE) received.set(message[event], event);
      else if (kind[event] === DELIVER) receiptOf[event] = received.get(message[event]) ?? -1;
    }
  }
  return receiptOf;
}

const stringAt = (model: Execution, index: number): string => (index < 0 ? "" : model.strings[index]);

export const messageOf = (model: Execution, event: number): string => stringAt(model, model.message[event]);
export const textOf = (model: Execution, event: number): string => stringAt(model, model.text[event]);
export const groupOf = (model: Execution, event: number): string => stringAt(model, model.group[event]);
export const faultOf = (model: Execution, event: number): string => stringAt(model, model.fault[event]);
export const processOf = (model: Execution, event: number): string => model.processes[model.process[event]];
export const kindOf = (model: Execution, event: number): string => KIND_NAMES[model.kind[event]];

/** The id of an event, or process#seq where it has none of its own. */
export function nameOf(model: Execution, event: number): string {
  return model.id[event] < 0 ? `${processOf(model, event)}#${model.seq[event]}` : model.strings[model.id[event]];
}

/** An arrow to a delivery is left out where the receipt of the message already has one. */
export function carriedByReceipt(model: Model, edge: number, shown: Uint8Array): boolean {
  const to = model.edgeTo[edge];
  const receipt = model.receiptOf[to];
  return model.causeKind[edge] === BY_MESSAGE && receipt >= 0 && shown[receipt] === 1;
}
