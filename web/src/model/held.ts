// Messages held back: received, but delivered only after something else happened at the process.

import { pastMask } from "./cones";
import type { Model } from "./model";
import { DELIVER } from "./types";

export type Held = { receipts: Uint32Array; deliveries: Uint32Array };

export function heldStretches(model: Model): Held {
  const receipts: number[] = [];
  const deliveries: number[] = [];
  for (let event = 0; event < model.events; event++) {
    const receipt = model.receiptOf[event];
    if (receipt >= 0 && model.previous[event] !== receipt) {
      receipts.push(receipt);
      deliveries.push(event);
    }
  }
  return { receipts: Uint32Array.from(receipts), deliveries: Uint32Array.from(deliveries) };
}

/** The deliveries that a held message waited for: in between, at the same process, of messages sent before its send. */
export function waitedFor(model: Model, delivery: number): number[] {
  const receipt = model.receiptOf[delivery];
  const send = model.message[delivery] < 0 ? -1 : model.sendOf[model.message[delivery]];
  if (receipt < 0 || send < 0) return [];
  const past = pastMask(model, send);
  const waited: number[] = [];
  for (let at = model.next[receipt]; at >= 0 && at !== delivery; at = model.next[at]) {
    if (model.kind[at] !== DELIVER || model.message[at] < 0) continue;
    const otherSend = model.sendOf[model.message[at]];
    if (otherSend >= 0 && otherSend !== send && past[otherSend]) waited.push(at);
  }
  return waited;
}
