// What lies over the drawing: selection and its arrows, the chain of a violation, search results, the scrub point.

import { directCauses, directEffects } from "../model/cones";
import { lowerBound } from "../model/layout";
import type { Violation } from "../model/types";
import { addArrow } from "./arrows";
import { visibleRows } from "./lanes";
import { RADIUS } from "./marks";
import { messageRowMiddle, messageWindow } from "./messagesview";
import type { Scene } from "./scene";
import type { Surface } from "./surface";
import { plotWidth, rightEdge, rowMiddle, toPixel, type Viewport } from "./viewport";

export type Highlights = {
  selected: number;
  hovered: number;
  found: Uint8Array | null;
  violation: Violation | null;
  /** x after which everything is faded, or null. */
  scrubX: number | null;
};

const MOST_FOUND = 3000;

export function drawOverlay(surface: Surface, scene: Scene, view: Viewport, highlights: Highlights): void {
  const { palette } = scene;
  surface.clipped(view.gutter, 0, plotWidth(view), view.lanesHeight, () => {
    if (highlights.found) drawFound(surface, scene, view, highlights.found);
    if (highlights.violation) drawChain(surface, scene, view, highlights.violation);
    if (highlights.selected >= 0) drawSelection(surface, scene, view, highlights.selected);
    if (highlights.hovered >= 0 && highlights.hovered !== highlights.selected)
      halo(surface, scene, view, highlights.hovered, RADIUS + 4, palette.quiet);
  });
  if (scene.messages) drawSelectedMessage(surface, scene, view, highlights);
  if (highlights.scrubX !== null) drawScrub(surface, scene, view, highlights.scrubX);
}

function placeOf(scene: Scene, view: Viewport, event: number): [number, number] | null {
  const x = scene.layout.x[event];
  const row = scene.layout.rowOf[scene.model.process[event]];
  return Number.isNaN(x) || row < 0 ? null : [toPixel(view, x), rowMiddle(view, row)];
}

function halo(surface: Surface, scene: Scene, view: Viewport, event: number, radius: number, colour: string): void {
  const place = placeOf(scene, view, event);
  if (place) surface.mark("halo", place[0], place[1], radius, colour, scene.palette.ground);
}

function drawFound(surface: Surface, scene: Scene, view: Viewport, found: Uint8Array): void {
  const { layout, palette } = scene;
  const [first, last] = visibleRows(scene, view);
  let drawn = 0;
  for (let row = first; row < last; row++) {
    const y = rowMiddle(view, row);
    const begin = lowerBound(layout.rowX, view.left, layout.rowBegin[row], layout.rowBegin[row + 1]);
    const end = lowerBound(layout.rowX, rightEdge(view), begin, layout.rowBegin[row + 1]);
    let lastPixel = -Infinity;
    for (let at = begin; at < end && drawn < MOST_FOUND; at++) {
      if (!found[layout.rowEvents[at]]) continue;
      const x = toPixel(view, layout.rowX[at]);
      if (x - lastPixel < 2) continue;
      lastPixel = x;
      drawn++;
      surface.rect(Math.round(x) - 5, Math.round(y + Math.min(view.rowHeight / 2 - 4, 17)), 10, 3, palette.found);
    }
  }
}

function strongArrows(surface: Surface, scene: Scene, view: Viewport, pairs: [number, number][], colour: string, width = 2): void {
  const points: number[] = [];
  for (const [from, to] of pairs) if (placeOf(scene, view, from) && placeOf(scene, view, to)) addArrow(points, scene, view, from, to);
  surface.segments(points, points.length, { colour, width });
  surface.heads(points, points.length, 9, colour);
}

function drawChain(surface: Surface, scene: Scene, view: Viewport, violation: Violation): void {
  const { palette } = scene;
  const steps = [...violation.chain];
  strongArrows(surface, scene, view, steps.slice(1).map((send, at) => [steps[at], send]), palette.violation);
  if (steps.length > 0) strongArrows(surface, scene, view, [[steps[steps.length - 1], violation.delivered]], palette.violation);
  for (const send of steps) halo(surface, scene, view, send, RADIUS + 4, palette.violation);
  if (violation.before >= 0) halo(surface, scene, view, violation.before, RADIUS + 5, palette.violation);
}

const MOST_NEIGHBOURS = 200;

function drawSelection(surface: Surface, scene: Scene, view: Viewport, event: number): void {
  const { model, palette } = scene;
  const elsewhere = (other: number) => model.process[other] !== model.process[event];
  const receiptShown = (to: number) => model.receiptOf[to] >= 0 && scene.shown[model.receiptOf[to]] === 1;
  const causes = directCauses(model, event).filter((cause) => elsewhere(cause) && !receiptShown(event));
  const effects = directEffects(model, event).filter((effect) => elsewhere(effect) && !receiptShown(effect));
  const pairs: [number, number][] = [
    ...causes.map((cause): [number, number] => [cause, event]),
    ...effects.map((effect): [number, number] => [event, effect]),
  ];
  strongArrows(surface, scene, view, pairs.slice(0, MOST_NEIGHBOURS), palette.selected, 1.8);
  halo(surface, scene, view, event, RADIUS + 4.5, palette.selected);
}

function drawSelectedMessage(surface: Surface, scene: Scene, view: Viewport, highlights: Highlights): void {
  const { messages, model, palette } = scene;
  if (!messages || highlights.selected < 0) return;
  const row = messages.rowOf.get(model.message[highlights.selected]);
  const place = row === undefined ? -1 : messageWindow(scene, view).rows.indexOf(row);
  if (place < 0) return;
  const y = messageRowMiddle(view, place);
  surface.outline(2.5, y - 8.5, view.width - 5, 17, 4, { colour: palette.selected, width: 1, opacity: 0.6 });
  const x = toPixel(view, scene.layout.x[highlights.selected]);
  if (x > view.gutter) surface.mark("halo", x, y, 7, palette.selected, palette.ground);
}

function drawScrub(surface: Surface, scene: Scene, view: Viewport, scrubX: number): void {
  const height = view.lanesHeight + view.messagesHeight;
  const x = Math.max(view.gutter, toPixel(view, scrubX));
  if (x >= view.width) return;
  surface.rect(x, 0, view.width - x, height, scene.palette.ground, 0.78);
  surface.segments([x, 0, x, height], 4, { colour: scene.palette.selected, width: 1.5, dash: [5, 4] });
}
