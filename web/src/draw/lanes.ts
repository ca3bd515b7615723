// The lanes: a line for each process, its label, and stretches in which a message was held back.

import { visible } from "../model/plaintext";
import type { Scene } from "./scene";
import { fitted, type Surface } from "./surface";
import { plotWidth, rowMiddle, toPixel, type Viewport } from "./viewport";

export const visibleRows = (scene: Scene, view: Viewport): [number, number] => [
  Math.max(0, Math.floor(view.scroll / view.rowHeight)),
  Math.min(scene.layout.rows.length, Math.ceil((view.scroll + view.lanesHeight) / view.rowHeight)),
];

export function drawLaneLines(surface: Surface, scene: Scene, view: Viewport): void {
  const [first, last] = visibleRows(scene, view);
  const lines: number[] = [];
  for (let row = first; row < last; row++) {
    if (scene.layout.rows[row] < 0) continue;
    const y = Math.round(rowMiddle(view, row)) + 0.5;
    lines.push(view.gutter, y, view.width, y);
  }
  surface.segments(lines, lines.length, { colour: scene.palette.lane, width: 1 });
}

const MOST_HELD = 4000;

export function drawHeld(surface: Surface, scene: Scene, view: Viewport): void {
  const { layout, held, model } = scene;
  const [first, last] = visibleRows(scene, view);
  const height = Math.min(12, view.rowHeight * 0.4);
  let drawn = 0;
  for (let at = 0; at < held.receipts.length && drawn < MOST_HELD; at++) {
    const row = layout.rowOf[model.process[held.receipts[at]]];
    if (row < first || row >= last) continue;
    const begin = toPixel(view, layout.x[held.receipts[at]]);
    const end = toPixel(view, layout.x[held.deliveries[at]]);
    // Also false where one of the two is not shown and so has no x.
    if (!(end > begin + 1 && end > view.gutter && begin < view.width)) continue;
    drawn++;
    const left = Math.max(begin, view.gutter - 10);
    surface.hatch(left, rowMiddle(view, row) - height / 2, Math.min(end, view.width + 10) - left, height, scene.palette.held);
  }
}

/** Where a process seems to go back: from the event before, below the lane, to the one that stands left of it. */
export function drawStepsBack(surface: Surface, scene: Scene, view: Viewport): void {
  const { layout, model, palette } = scene;
  const [first, last] = visibleRows(scene, view);
  const points: number[] = [];
  for (const event of layout.stepsBack) {
    const row = layout.rowOf[model.process[event]];
    if (row < first || row >= last) continue;
    let before = model.previous[event];
    while (before >= 0 && Number.isNaN(layout.x[before])) before = model.previous[before];
    const begin = toPixel(view, layout.x[before]);
    const end = toPixel(view, layout.x[event]);
    if (end > view.width || begin < view.gutter || points.length > 4 * MOST_HELD) continue;
    const y = rowMiddle(view, row) + 10;
    points.push(Math.min(begin, view.width + 20), y, Math.max(end, view.gutter - 20), y);
  }
  surface.segments(points, points.length, { colour: palette.backwards, width: 1.6, dash: points.length > 4 * 250 ? undefined : [6, 3] });
  if (points.length <= 4 * 250) surface.heads(points, points.length, 6, palette.backwards);
}

export function drawLabels(surface: Surface, scene: Scene, view: Viewport): void {
  const { palette, layout, model, comparison } = scene;
  surface.rect(0, 0, view.gutter, view.lanesHeight, palette.gutter);
  surface.segments([view.gutter - 0.5, 0, view.gutter - 0.5, view.lanesHeight], 4, { colour: palette.rule, width: 1 });
  const [first, last] = visibleRows(scene, view);
  surface.clipped(0, 0, view.width, view.lanesHeight, () => {
    for (let row = first; row < last; row++) {
      const process = layout.rows[row];
      const y = rowMiddle(view, row);
      if (process >= 0) {
        const name = fitted(surface, visible(model.processes[process], 80), view.gutter - 22, 12);
        surface.text(name, view.gutter - 10, y, { colour: palette.ink, size: 12, align: "right" });
      } else if (comparison) {
        const part = row === 0 ? 0 : 1;
        const title = `${part === 0 ? "first" : "second"}: ${visible(comparison.names[part], 80)}`;
        surface.rect(0, y - view.rowHeight / 2, view.width, view.rowHeight, palette.band);
        surface.segments([0, y + view.rowHeight / 2 - 0.5, view.width, y + view.rowHeight / 2 - 0.5], 4, { colour: palette.lane, width: 1 });
        surface.text(fitted(surface, title, plotWidth(view), 12, 600), 12, y, { colour: palette.ink, size: 12, weight: 600 });
      }
    }
  });
}
