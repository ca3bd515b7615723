// The second view: a row for each message, in causal order of the sends.

import type { Model } from "./model";

export type MessageRows = {
  /** Message of each row: an index into strings. */
  messages: Uint32Array;
  rowOf: Map<number, number>;
  /** Marked events of row r: events[begin[r] .. begin[r + 1]), in index order. */
  begin: Uint32Array;
  events: Uint32Array;
  low: Float64Array;
  high: Float64Array;
};

export function messageRows(model: Model, marked: Uint8Array, x: Float64Array): MessageRows {
  const first = new Map<number, number>();
  const sizes = new Map<number, number>();
  for (let event = 0; event < model.events; event++) {
    const message = model.message[event];
    if (message < 0 || !marked[event]) continue;
    // A message whose send is not shown stands where the send is all the same.
    const start = model.sendOf[message] >= 0 ? model.sendOf[message] : event;
    if (!first.has(message)) first.set(message, start);
    sizes.set(message, (sizes.get(message) ?? 0) + 1);
  }
  const messages = Uint32Array.from([...first.keys()].sort((a, b) => first.get(a)! - first.get(b)! || a - b));
  const rowOf = new Map<number, number>();
  const begin = new Uint32Array(messages.length + 1);
  messages.forEach((message, row) => {
    rowOf.set(message, row);
    begin[row + 1] = begin[row] + sizes.get(message)!;
  });
  const free = begin.slice();
  const events = new Uint32Array(begin[messages.length]);
  const low = new Float64Array(messages.length).fill(Infinity);
  const high = new Float64Array(messages.length).fill(-Infinity);
  for (let event = 0; event < model.events; event++) {
    if (model.message[event] < 0 || !marked[event]) continue;
    const row = rowOf.get(model.message[event])!;
    events[free[row]++] = event;
    low[row] = Math.min(low[row], x[event]);
    high[row] = Math.max(high[row], x[event]);
  }
  return { messages, rowOf, begin, events, low, high };
}
