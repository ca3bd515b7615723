// The marks of events; where they lie too close, bars that tell how many there are.

import { lowerBound } from "../model/layout";
import { CHANGED, MOVED, ONLY_HERE } from "../model/compare";
import { faultOf, messageOf, textOf } from "../model/model";
import { figure, visible } from "../model/plaintext";
import { visibleRows } from "./lanes";
import type { Scene } from "./scene";
import { KIND_SHAPES, type Surface } from "./surface";
import { plotWidth, rightEdge, rowMiddle, toPixel, type Viewport } from "./viewport";

export const RADIUS = 5;
const MOST_MARKS = 5000;
/** Above this many events for a pixel of a lane marks would only cover each other. */
const MOST_MARKS_IN_PIXEL = 0.5;
const BAR_WIDTH = 2;
const ROOM_FOR_LABELS = 30;
const LABEL_SIZE = 11;

/** Draws all events in sight; tells whether some lanes show bars instead of marks. */
export function drawEvents(surface: Surface, scene: Scene, view: Viewport): boolean {
  const { layout } = scene;
  const [first, last] = visibleRows(scene, view);
  const margin = 12 / view.scale;
  const [low, high] = [view.left - margin, rightEdge(view) + margin];
  const begins: number[] = [];
  const ends: number[] = [];
  let total = 0;
  for (let row = first; row < last; row++) {
    const begin = lowerBound(layout.rowX, low, layout.rowBegin[row], layout.rowBegin[row + 1]);
    const end = lowerBound(layout.rowX, high, begin, layout.rowBegin[row + 1]);
    begins.push(begin);
    ends.push(end);
    total += end - begin;
  }
  const width = plotWidth(view);
  let bars = false;
  for (let row = first; row < last; row++) {
    const begin = begins[row - first];
    const end = ends[row - first];
    const crowded = (end - begin) / width > MOST_MARKS_IN_PIXEL;
    if (crowded || (total > MOST_MARKS && (end - begin) * (last - first) > MOST_MARKS)) {
      bars = true;
      drawBars(surface, scene, view, row, begin, end);
    } else drawMarks(surface, scene, view, row, begin, end);
  }
  drawViolations(surface, scene, view);
  return bars;
}

function drawBars(surface: Surface, scene: Scene, view: Viewport, row: number, begin: number, end: number): void {
  const { rowX } = scene.layout;
  const middle = rowMiddle(view, row);
  const highest = view.rowHeight * 0.78;
  const units = BAR_WIDTH / view.scale;
  // Bars stand on a grid of the plane, so that they keep their heights while panning.
  for (let at = begin; at < end; ) {
    const column = Math.floor(rowX[at] / units);
    const next = lowerBound(rowX, (column + 1) * units, at + 1, end);
    const height = Math.min(highest, 3 + 3 * Math.log2(next - at));
    surface.rect(Math.round(toPixel(view, column * units)), Math.round(middle - height / 2), BAR_WIDTH, Math.round(height), scene.palette.density);
    at = next;
  }
}

function drawMarks(surface: Surface, scene: Scene, view: Viewport, row: number, begin: number, end: number): void {
  const { model, layout, palette, comparison } = scene;
  const y = rowMiddle(view, row);
  const labelled = ((end - begin) * ROOM_FOR_LABELS) / plotWidth(view) <= 1.6 && view.rowHeight >= 26;
  const labelRise = view.rowHeight >= 40 ? 15 : 10;
  let labelEnd = -Infinity;
  for (let at = begin; at < end; at++) {
    const event = layout.rowEvents[at];
    const x = toPixel(view, layout.rowX[at]);
    const faded = model.control[event] ? 0.6 : 1;
    const run = scene.runs.size.get(event);
    if (run) drawRun(surface, scene, x, y, run);
    else surface.mark(KIND_SHAPES[model.kind[event]], x, y, RADIUS, palette.kinds[model.kind[event]], palette.ground, faded);
    if (model.fault[event] >= 0) drawFault(surface, scene, view, event, x, y);
    if (comparison?.mark[event] === ONLY_HERE) surface.mark("triangle", x, y + 12, 4.5, palette.onlyHere, palette.ground);
    else if (comparison?.mark[event] === MOVED) surface.mark("moved", x, y + 12, 5, palette.moved, palette.ground);
    else if (comparison?.mark[event] === CHANGED) surface.mark("changed", x, y + 12, 4.5, palette.moved, palette.ground);
    if (!labelled || run || model.fault[event] >= 0) continue;
    const label = labelOf(scene, event);
    if (label === "") continue;
    const half = surface.measure(label, LABEL_SIZE) / 2;
    if (x - half < labelEnd) continue;
    surface.text(label, x, y - labelRise, { colour: palette.quiet, size: LABEL_SIZE, align: "center", halo: palette.ground });
    labelEnd = x + half + 6;
  }
}

function labelOf({ model }: Scene, event: number): string {
  return visible(messageOf(model, event) || textOf(model, event), 18);
}

function drawRun(surface: Surface, scene: Scene, x: number, y: number, size: number): void {
  const { palette } = scene;
  const label = `×${figure(size)}`;
  const width = surface.measure(label, 10, 600) + 8;
  surface.outline(x - width / 2, y - 8, width, 16, 4, { colour: palette.kinds[0], width: 1.2 }, palette.ground);
  surface.text(label, x, y + 0.5, { colour: palette.ink, size: 10, weight: 600, align: "center" });
}

function drawFault(surface: Surface, scene: Scene, view: Viewport, event: number, x: number, y: number): void {
  const reach = view.rowHeight / 2 - 3;
  const { palette } = scene;
  surface.segments([x, y - reach, x, y + reach], 4, { colour: palette.fault, width: 2 });
  surface.text(visible(faultOf(scene.model, event), 16), x + 5, y - reach + 5, {
    colour: palette.fault,
    size: LABEL_SIZE,
    weight: 600,
    halo: palette.ground,
  });
}

const MOST_VIOLATIONS = 3000;

/** Violations are drawn last and at every zoom, so that none is hidden by a bar. */
function drawViolations(surface: Surface, scene: Scene, view: Viewport): void {
  const { model, layout, palette } = scene;
  const [first, last] = visibleRows(scene, view);
  let drawn = 0;
  for (const { delivered } of model.violations) {
    const row = layout.rowOf[model.process[delivered]];
    const x = toPixel(view, layout.x[delivered]);
    if (!(x > view.gutter - 10 && x < view.width + 10) || row < first || row >= last) continue;
    surface.mark("violation", x, rowMiddle(view, row), 8, palette.violation, palette.ground);
    if (++drawn >= MOST_VIOLATIONS) return;
  }
}
