// The axis below the drawing, and the bands of blocks behind it.

import { figure } from "../model/plaintext";
import type { Scene } from "./scene";
import { fitted, type Surface } from "./surface";
import { AXIS_HEIGHT, plotWidth, rightEdge, toPixel, type Viewport } from "./viewport";

/** Steps of 1, 2 or 5 times a power of ten, about one for every `apart` pixels. */
export function tickStep(span: number, width: number, apart: number): number {
  const rough = (span / Math.max(1, width)) * apart;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-12)));
  const times = rough / power;
  return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

export function drawBands(surface: Surface, scene: Scene, view: Viewport): void {
  const step = Math.max(1, tickStep(plotWidth(view) / view.scale, plotWidth(view), 12));
  const first = Math.floor(view.left / (2 * step)) * 2 * step;
  const height = view.lanesHeight + view.messagesHeight;
  for (let block = first; block - 0.5 < rightEdge(view); block += 2 * step)
    surface.rect(toPixel(view, block - 0.5), 0, step * view.scale, height, scene.palette.band);
}

export function drawAxis(surface: Surface, scene: Scene, view: Viewport): void {
  const { palette } = scene;
  const y = view.lanesHeight + view.messagesHeight;
  surface.rect(0, y, view.width, AXIS_HEIGHT, palette.gutter);
  surface.segments([0, y + 0.5, view.width, y + 0.5], 4, { colour: palette.lane, width: 1 });
  surface.text(fitted(surface, axisName(scene), view.gutter - 18, 11, 600), 12, y + AXIS_HEIGHT / 2, { colour: palette.quiet, size: 11, weight: 600 });
  surface.clipped(view.gutter, y, plotWidth(view), AXIS_HEIGHT, () => {
    for (const { x, label } of ticks(scene, view)) {
      const pixel = toPixel(view, x);
      surface.segments([pixel, y, pixel, y + 5], 4, { colour: palette.quiet, width: 1 });
      surface.text(label, pixel, y + 15, { colour: palette.quiet, size: 11, align: "center" });
    }
  });
}

function axisName({ state, model, comparison }: Scene): string {
  if (state.x === "block") return "causal level";
  if (state.x === "time") return model.timeUnit ? `time (${model.timeUnit.slice(0, 12)})` : "time";
  if (comparison) return "aligned";
  return state.order === "time" ? "time order" : "position";
}

function ticks(scene: Scene, view: Viewport): { x: number; label: string }[] {
  const width = plotWidth(view);
  const span = width / view.scale;
  const byRank = scene.state.x === "position";
  let step = tickStep(span, width, 84);
  if (scene.state.x !== "time") step = Math.max(1, step);
  const found: { x: number; label: string }[] = [];
  // Ticks stand at round positions, whether the execution counts from 0 or from 1.
  const counted = scene.comparison || scene.state.order === "time" || scene.model.events === 0;
  const shift = !byRank ? 0 : counted ? 1 : Math.min(1, scene.model.position[0]);
  for (let at = Math.ceil((view.left + shift) / step); at * step - shift <= view.left + span; at++) {
    const x = at * step - shift;
    const label = byRank ? rankLabel(scene, x) : figure(Number((at * step).toPrecision(10)));
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
