// The axis below the drawing, and the bands of blocks behind it.

import { figure } from "../model/plaintext";
import type { Scene } from "./scene";
import { fitted, type Surface } from "./surface";
import { differenceLabel, multiples, nameWithOffset, sharedOffset, tickLabel, tickStep } from "./ticks";
import { AXIS_HEIGHT, plotWidth, rightEdge, toPixel, type Viewport } from "./viewport";

const BAND_PIXELS = 12;
const TICK_PIXELS = 84;
/** Ticks are never closer than this, whatever the numbers are. */
const CLOSEST_TICKS = 40;
const LABEL_GAP = 14;
const LABEL_SIZE = 11;
const NAME_LEFT = 12;

export function drawBands(surface: Surface, scene: Scene, view: Viewport): void {
  const width = plotWidth(view);
  const step = Math.max(1, tickStep(width / view.scale, width, BAND_PIXELS));
  const height = view.lanesHeight + view.messagesHeight;
  for (const block of multiples(view.left - 2 * step, rightEdge(view) + 0.5, 2 * step, width / BAND_PIXELS + 2))
    surface.rect(toPixel(view, block - 0.5), 0, step * view.scale, height, scene.palette.band);
}

export function drawAxis(surface: Surface, scene: Scene, view: Viewport): void {
  const { palette } = scene;
  const y = view.lanesHeight + view.messagesHeight;
  const offset = scene.state.x === "time" ? sharedOffset(scene.layout.low, scene.layout.high) : 0;
  surface.rect(0, y, view.width, AXIS_HEIGHT, palette.gutter);
  surface.segments([0, y + 0.5, view.width, y + 0.5], 4, { colour: palette.lane, width: 1 });
  // An offset is of no use when cut, so it may reach into the plot; labels begin right of it.
  const room = offset === 0 ? view.gutter - 18 : Math.max(view.gutter - 18, view.width / 2);
  const name = fitted(surface, nameWithOffset(axisName(scene), offset), room, LABEL_SIZE, 600);
  surface.text(name, NAME_LEFT, y + AXIS_HEIGHT / 2, { colour: palette.quiet, size: LABEL_SIZE, weight: 600 });
  const nameEnd = NAME_LEFT + surface.measure(name, LABEL_SIZE, 600);
  surface.clipped(view.gutter, y, plotWidth(view), AXIS_HEIGHT, () => {
    for (const { x, label } of axisTicks(surface, scene, view, offset)) {
      const pixel = toPixel(view, x);
      surface.segments([pixel, y, pixel, y + 5], 4, { colour: palette.quiet, width: 1 });
      const begin = pixel - surface.measure(label, LABEL_SIZE) / 2;
      if (nameEnd > view.gutter && begin < nameEnd + 8) continue;
      surface.text(label, pixel, y + 15, { colour: palette.quiet, size: LABEL_SIZE, align: "center" });
    }
  });
}

function axisName({ state, model, comparison }: Scene): string {
  if (state.x === "block") return "causal level";
  if (state.x === "time") return model.timeUnit ? `time (${model.timeUnit.slice(0, 12)})` : "time";
  if (comparison) return "aligned";
  return state.order === "time" ? "time order" : "position";
}

type Tick = { x: number; label: string };

/** Ticks as far apart as their labels are wide: wider labels ask for a larger step, whose labels may be shorter. */
function axisTicks(surface: Surface, scene: Scene, view: Viewport, offset: number): Tick[] {
  let apart = TICK_PIXELS;
  let found: Tick[] = [];
  for (let attempt = 0; attempt < 3; attempt++) {
    found = ticksApart(scene, view, offset, apart);
    const widest = found.reduce((most, { label }) => Math.max(most, surface.measure(label, LABEL_SIZE)), 0) + LABEL_GAP;
    if (widest <= apart) break;
    apart = widest;
  }
  return found;
}

function ticksApart(scene: Scene, view: Viewport, offset: number, apart: number): Tick[] {
  const width = plotWidth(view);
  const span = width / view.scale;
  const byRank = scene.state.x === "position";
  let step = tickStep(span, width, apart);
  if (scene.state.x !== "time") step = Math.max(1, step);
  // Ticks stand at round positions, whether the execution counts from 0 or from 1.
  const counted = scene.comparison || scene.state.order === "time" || scene.model.events === 0;
  const shift = byRank ? (counted ? 1 : Math.min(1, scene.model.position[0])) : -offset;
  const found: Tick[] = [];
  for (const value of multiples(view.left + shift, view.left + shift + span, step, width / CLOSEST_TICKS)) {
    const x = value - shift;
    const label = byRank ? rankLabel(scene, x) : offset === 0 ? tickLabel(value, step) : differenceLabel(value, step);
    if (label !== null) found.push({ x, label });
  }
  return found;
}

/** Events stand one after the other; the label tells the position in the whole execution. */
function rankLabel({ layout, model, comparison, state }: Scene, x: number): string | null {
  if (x < layout.low || x > layout.high) return null;
  if (comparison || state.order === "time") return figure(x + 1);
  return figure(model.position[layout.order[x]]);
}
