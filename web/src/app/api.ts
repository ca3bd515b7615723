// What tests may ask the page: window.causet.

import { concurrentMask, futureMask, indexesOf, pastMask } from "../model/cones";
import type { Difference } from "../model/compare";
import { nameOf, processOf } from "../model/model";
import { BY_PARENT, type Page } from "../model/types";
import type { App } from "./app";
import { svgOf } from "./exporting";
import type { Stage } from "./stage";

type GeometryEvent = { index: number; id: string; process: string; x: number; y: number; execution: number };
type GeometryArrow = { from: number; to: number; kind: "message" | "parent"; backwards: boolean };
export type Geometry = { events: GeometryEvent[]; arrows: GeometryArrow[]; dashed: { from: number; to: number }[] };

export type Api = {
  kind: Page["kind"];
  state(): object;
  shown(): number[];
  geometry(): Geometry;
  past(index: number): number[];
  future(index: number): number[];
  concurrent(index: number): number[];
  differences(): Difference[];
  frames(): number[];
  frameTimes(): number[];
  resetFrames(): void;
  select(index: number): void;
  svg(): string;
};

export function viewApi(kind: Page["kind"], app: App, stage: Stage): Api {
  const { model } = app;
  const known = (index: number): number => {
    if (!Number.isInteger(index) || index < 0 || index >= model.events) throw new RangeError(`There is no event ${index}.`);
    return index;
  };
  const without = (mask: Uint8Array, index: number): number[] => indexesOf(mask).filter((event) => event !== index);
  return {
    kind,
    state: () => JSON.parse(JSON.stringify(app.state)) as object,
    shown: () => indexesOf(app.scene.runs.marked),
    geometry: () => geometryOf(app, stage),
    past: (index) => without(pastMask(model, known(index)), index),
    future: (index) => without(futureMask(model, known(index)), index),
    concurrent: (index) => without(concurrentMask(model, known(index)), index),
    differences: () => (app.comparison?.differences ?? []).map((difference) => ({ ...difference })),
    frames: () => Object.assign(stage.frames.drawTimes(), { frameTimes: stage.frames.frameTimes() }),
    frameTimes: () => stage.frames.frameTimes(),
    resetFrames: () => stage.frames.reset(),
    select: (index) => app.select(index === -1 ? -1 : known(index)),
    svg: () => svgOf(app, stage),
  };
}

function geometryOf(app: App, stage: Stage): Geometry {
  const { model, scene } = app;
  const { layout, dashed } = scene;
  return {
    events: indexesOf(scene.runs.marked).map((index) => ({
      index,
      id: nameOf(model, index),
      process: processOf(model, index),
      x: layout.x[index],
      y: (layout.rowOf[model.process[index]] + 0.5) * stage.view.rowHeight,
      execution: model.part[index],
    })),
    arrows: Array.from(layout.arrows, (edge) => ({
      from: model.cause[edge],
      to: model.edgeTo[edge],
      kind: model.causeKind[edge] === BY_PARENT ? "parent" : "message",
      backwards: layout.x[model.edgeTo[edge]] < layout.x[model.cause[edge]],
    })),
    dashed: Array.from(dashed.from, (from, at) => ({ from, to: dashed.to[at] })),
  };
}
