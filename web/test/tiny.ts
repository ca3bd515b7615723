// Tiny executions that several tests use.

import { buildModel, type Model } from "../src/model/model";
import { readPage } from "../src/model/payload";
import { encodePage, type TinyEvent, type TinyExecution } from "./encode";

export const modelOf = (events: TinyEvent[], more: Partial<TinyExecution> = {}): Model =>
  buildModel(readPage(encodePage("view", [{ events, ...more }])).executions[0]);

/**
 * a sends m1 to b and c; b delivers it and sends m2 to c; c receives m2 first and holds it until m1 is delivered.
 *
 *   0 a send m1      4 b send m2        7 c deliver m1
 *   1 b receive m1   5 c receive m2     8 c deliver m2
 *   2 b deliver m1   6 c receive m1     9 a local
 *   3 a local
 */
export const HELD: TinyEvent[] = [
  { p: "a", kind: "send", message: "m1", time: 0, block: 1 },
  { p: "b", kind: "receive", message: "m1", causes: [0], time: 1, block: 2 },
  { p: "b", kind: "deliver", message: "m1", causes: [0], time: 2, block: 3 },
  { p: "a", text: "thinks", time: 3, block: 2 },
  { p: "b", kind: "send", message: "m2", time: 4, block: 4 },
  { p: "c", kind: "receive", message: "m2", causes: [4], time: 5, block: 5 },
  { p: "c", kind: "receive", message: "m1", causes: [0], time: 6, block: 6 },
  { p: "c", kind: "deliver", message: "m1", causes: [0], time: 7, block: 7 },
  { p: "c", kind: "deliver", message: "m2", causes: [4], time: 8, block: 8 },
  { p: "a", text: "rests", time: 2.5, block: 3 },
];
