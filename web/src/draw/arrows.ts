// Arrows from causes to effects. Where there are too many to see, a fixed part of them is drawn.

import { BY_PARENT } from "../model/types";
import { visibleRows } from "./lanes";
import type { Palette } from "./palette";
import type { Scene } from "./scene";
import { HAIRLINE, type Stroke, type Surface } from "./surface";
import { rightEdge, rowMiddle, toPixel, type Viewport } from "./viewport";

const MOST_ARROWS = 1200;
const MOST_PASSING = 160;
const MOST_WITH_HEADS = 300;
const MOST_DASHED = 250;
const MOST_WIDE = 150;
const MARK_MARGIN = 7;
const HEAD = 7;

type Batch = { points: number[]; stroke: Stroke; headed: boolean };

/** A number that depends on the index alone, so that the same arrows are drawn wherever one pans. */
const scattered = (index: number): number => Math.imul(index + 1, 0x9e3779b1) >>> 8;

/** What was left out: nothing, arrows without an end in sight, or others too. */
export type Thinned = "none" | "passing" | "some";

const OUT = 0;
const PASSING = 1;
const ENDING = 2;

/** Draws the arrows in sight. Those that begin or end here come first: what only passes by tells little. */
export function drawArrows(surface: Surface, scene: Scene, view: Viewport): Thinned {
  const { model, layout, palette } = scene;
  const { x, arrows } = layout;
  const { cause, edgeTo } = model;
  const sightOf = sight(scene, view);
  const seen = [0, 0, 0];
  for (let at = 0; at < arrows.length; at++) seen[sightOf(cause[arrows[at]], edgeTo[arrows[at]])]++;
  for (let at = 0; at < scene.dashed.from.length; at++) seen[sightOf(scene.dashed.from[at], scene.dashed.to[at])]++;
  const masks = [0, maskFor(seen[PASSING], MOST_PASSING), maskFor(seen[ENDING], MOST_ARROWS)];
  const drawn = seen[PASSING] / (masks[PASSING] + 1) + seen[ENDING] / (masks[ENDING] + 1);
  const batches = batchesFor(palette, drawn, masks[ENDING] > 0);
  for (let at = 0; at < arrows.length; at++) {
    const edge = arrows[at];
    const [from, to] = [cause[edge], edgeTo[edge]];
    const how = sightOf(from, to);
    if (how === OUT || scattered(edge) & masks[how]) continue;
    const batch =
      x[to] < x[from]
        ? batches.backwards
        : model.causeKind[edge] === BY_PARENT
          ? batches.parent
          : model.control[from] || (how === PASSING && masks[PASSING])
            ? batches.control
            : batches.message;
    addArrow(batch.points, scene, view, from, to);
  }
  for (let at = 0; at < scene.dashed.from.length; at++) {
    const [from, to] = [scene.dashed.from[at], scene.dashed.to[at]];
    const how = sightOf(from, to);
    if (how !== OUT && !(scattered(at) & masks[how])) addArrow(batches.dashed.points, scene, view, from, to);
  }
  for (const { points, stroke, headed } of Object.values(batches)) {
    // Dashes on hundreds of long lines are slow and cannot be told apart.
    const plain = points.length > 4 * MOST_DASHED ? { ...stroke, width: HAIRLINE, dash: undefined } : stroke;
    surface.segments(points, points.length, plain);
    if (headed) surface.heads(points, points.length, HEAD, stroke.colour, stroke.opacity);
  }
  return masks[ENDING] ? "some" : masks[PASSING] ? "passing" : "none";
}

/** Says of an arrow whether it ends in sight, only passes by, or is out of sight. */
function sight(scene: Scene, view: Viewport): (from: number, to: number) => number {
  const { x, rowOf } = scene.layout;
  const { process } = scene.model;
  const low = view.left;
  const high = rightEdge(view);
  const [firstRow, lastRow] = visibleRows(scene, view);
  return (from, to) => {
    const fromX = x[from];
    const toX = x[to];
    if ((fromX < low && toX < low) || (fromX > high && toX > high)) return OUT;
    const fromRow = rowOf[process[from]];
    const toRow = rowOf[process[to]];
    if ((fromRow < firstRow && toRow < firstRow) || (fromRow >= lastRow && toRow >= lastRow)) return OUT;
    const begins = fromX >= low && fromX <= high && fromRow >= firstRow && fromRow < lastRow;
    const ends = toX >= low && toX <= high && toRow >= firstRow && toRow < lastRow;
    return begins || ends ? ENDING : PASSING;
  };
}

/** A mask of low bits that leaves at most so many of all. */
function maskFor(all: number, most: number): number {
  let mask = 0;
  while (all / (mask + 1) > most) mask = mask * 2 + 1;
  return mask;
}

function batchesFor(palette: Palette, drawn: number, thinned: boolean): Record<string, Batch> {
  const opacity = thinned ? 0.6 : 0.9;
  // Without a graphics card a line of one pixel is drawn several times faster than any wider one.
  const width = drawn > MOST_WIDE ? HAIRLINE : 1.3;
  const headed = drawn <= MOST_WITH_HEADS;
  const batch = (stroke: Stroke): Batch => ({ points: [], stroke, headed });
  return {
    message: batch({ colour: palette.arrow, width, opacity }),
    control: batch({ colour: palette.arrow, width: HAIRLINE, opacity: opacity * 0.45 }),
    parent: batch({ colour: palette.parent, width: HAIRLINE, dash: [4, 3], opacity }),
    backwards: batch({ colour: palette.backwards, width: 1.6, dash: [6, 3], opacity: 1 }),
    dashed: batch({ colour: palette.quiet, width: HAIRLINE, dash: [2, 4], opacity }),
  };
}

/** Adds an arrow between the edges of two marks, cut to the neighbourhood of what is visible. */
export function addArrow(points: number[], scene: Scene, view: Viewport, from: number, to: number): void {
  const { x, rowOf } = scene.layout;
  const x1 = toPixel(view, x[from]);
  const y1 = rowMiddle(view, rowOf[scene.model.process[from]]);
  const x2 = toPixel(view, x[to]);
  const y2 = rowMiddle(view, rowOf[scene.model.process[to]]);
  const dx = x2 - x1;
  const dy = y2 - y1;
  const length = Math.hypot(dx, dy);
  if (length < 2 * MARK_MARGIN + 2) return;
  let begin = MARK_MARGIN / length;
  let end = 1 - MARK_MARGIN / length;
  // Long lines are cut, because coordinates of millions of pixels are slow to draw.
  const [left, right, top, bottom] = [view.gutter - 40, view.width + 40, -40, view.lanesHeight + 40];
  if (dx !== 0) {
    const [a, b] = [(left - x1) / dx, (right - x1) / dx];
    begin = Math.max(begin, Math.min(a, b));
    end = Math.min(end, Math.max(a, b));
  }
  if (dy !== 0) {
    const [a, b] = [(top - y1) / dy, (bottom - y1) / dy];
    begin = Math.max(begin, Math.min(a, b));
    end = Math.min(end, Math.max(a, b));
  }
  if (begin < end) points.push(x1 + dx * begin, y1 + dy * begin, x1 + dx * end, y1 + dy * end);
}
