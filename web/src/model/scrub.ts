// What is going on at one moment of the execution, as it is drawn.

import type { Layout } from "./layout";
import type { Held } from "./held";
import type { Model } from "./model";
import { BY_MESSAGE } from "./types";

export type Moment = { happened: number; inFlight: number; held: number };

/** Counts at the moment just after the first `happened` marks in drawing order. */
export function momentAt(model: Model, layout: Layout, held: Held, happened: number): Moment {
  const rank = new Int32Array(model.events).fill(-1);
  layout.order.forEach((event, at) => (rank[event] = at));
  const done = (event: number) => rank[event] >= 0 && rank[event] < happened;
  const waiting = (event: number) => rank[event] >= happened;
  const flying = new Set<number>();
  for (const edge of layout.arrows) {
    const send = model.cause[edge];
    if (model.causeKind[edge] !== BY_MESSAGE || !done(send) || !waiting(model.edgeTo[edge])) continue;
    flying.add(model.message[send] >= 0 ? model.message[send] : -1 - send);
  }
  let heldNow = 0;
  held.receipts.forEach((receipt, at) => {
    if (done(receipt) && waiting(held.deliveries[at])) heldNow++;
  });
  return { happened, inFlight: flying.size, held: heldNow };
}
