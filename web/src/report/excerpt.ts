// A small diagram of the part of an execution that a proof speaks of.

import { drawBase } from "../draw/drawing";
import { drawOverlay } from "../draw/overlay";
import type { Palette } from "../draw/palette";
import { buildScene, factsOf } from "../draw/scene";
import { SvgSurface } from "../draw/svgsurface";
import { AXIS_HEIGHT, makeViewport } from "../draw/viewport";
import { indexesOf, maskOf, pastMask } from "../model/cones";
import { buildModel, type Model } from "../model/model";
import { visible } from "../model/plaintext";
import { START } from "../model/state";
import { DELIVER, RECEIVE, type Execution, type Proof, type Violation } from "../model/types";

const MOST_EVENTS = 28;
const ROW = 44;

/** The events of a proof: both messages with sends, receipts and deliveries, and what links the one send to the other. */
export function excerptOf(model: Model, proof: Proof, violation: Violation | null): number[] {
  const events = new Set<number>([proof.delivered]);
  if (proof.before >= 0) events.add(proof.before);
  for (const send of violation?.chain ?? []) events.add(send);
  const messages = new Set([...events].map((event) => model.message[event]).filter((message) => message >= 0));
  const processes = new Set([...events].map((event) => model.process[event]));
  for (const message of messages) if (model.sendOf[message] >= 0) events.add(model.sendOf[message]);
  for (const event of [...events]) processes.add(model.process[event]);
  // How the messages came to the processes concerned, up to the delivery and the one before which it should not have been.
  const last = Math.max(...events);
  for (let event = 0; event <= last; event++) {
    const arrived = model.kind[event] === RECEIVE || model.kind[event] === DELIVER;
    if (arrived && messages.has(model.message[event]) && processes.has(model.process[event])) events.add(event);
  }
  if (events.size > MOST_EVENTS) return [...events].sort((a, b) => b - a).slice(0, MOST_EVENTS).concat(proof.delivered);
  if (events.size < 4) for (const event of indexesOf(pastMask(model, proof.delivered)).slice(-8)) events.add(event);
  return [...events];
}

export function proofDiagram(execution: Execution, proof: Proof, palette: Palette, width: number, name: string): string {
  const model = buildModel(execution);
  const violation =
    model.violations.find((known) => known.delivered === proof.delivered && known.before === proof.before) ??
    model.violations.find((known) => known.delivered === proof.delivered) ??
    null;
  // The mark of a violation stands at this proof's delivery, and nowhere else.
  model.violations = [{ delivered: proof.delivered, before: proof.before, sentence: proof.sentence, chain: violation?.chain ?? [] }];
  const only = maskOf(model, excerptOf(model, proof, violation));
  const scene = buildScene(factsOf(model, null), { ...START, only: true }, only, palette);
  const height = scene.layout.rows.length * ROW + AXIS_HEIGHT;
  const longest = Math.max(...Array.from(scene.layout.rows, (process) => model.processes[process].length));
  const view = makeViewport({ width, height, gutter: Math.min(160, Math.max(80, longest * 7 + 26)) }, scene.layout, "position", {
    from: null, to: null, top: 0, messageTop: 0, messages: false, messageCount: 0,
  });
  const surface = new SvgSurface(width, height, name);
  drawBase(surface, scene, view);
  drawOverlay(surface, scene, view, { selected: -1, hovered: -1, found: null, violation: model.violations[0], scrubX: null });
  return surface.toString(visible(proof.sentence));
}
