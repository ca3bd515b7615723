// Everything a drawing needs to know, worked out once from the model and the state.

import { alignedX, type Comparison } from "../model/compare";
import { heldStretches, type Held } from "../model/held";
import { arrange, placeX, planRows, type Layout } from "../model/layout";
import { messageRows, type MessageRows } from "../model/messages";
import type { Model } from "../model/model";
import { collapseRuns, dashedEdges, shownMask, type Dashed, type Runs } from "../model/reduce";
import type { ViewState } from "../model/state";
import type { Palette } from "./palette";

export type Scene = {
  model: Model;
  comparison: Comparison | null;
  state: ViewState;
  palette: Palette;
  shown: Uint8Array;
  shownCount: number;
  runs: Runs;
  layout: Layout;
  dashed: Dashed;
  held: Held;
  messages: MessageRows | null;
  /** 1 for events whose delivery breaks the order. */
  violating: Uint8Array;
};

export type Facts = { model: Model; comparison: Comparison | null; held: Held; violating: Uint8Array };

/** What depends on the model alone. */
export function factsOf(model: Model, comparison: Comparison | null): Facts {
  const violating = new Uint8Array(model.events);
  for (const { delivered } of model.violations) violating[delivered] = 1;
  return { model, comparison, held: heldStretches(model), violating };
}

export function buildScene(facts: Facts, state: ViewState, only: Uint8Array | null, palette: Palette): Scene {
  const { model, comparison } = facts;
  const hiddenProcesses = new Set(state.hidden);
  const shown = shownMask(model, {
    hiddenProcesses,
    control: state.control,
    cone: state.cone,
    direct: state.direct,
    only: state.only ? only : null,
  });
  let shownCount = 0;
  for (const mark of shown) shownCount += mark;
  const nothing: Dashed = { from: new Uint32Array(0), to: new Uint32Array(0), capped: false };
  const dashed = shownCount === model.events ? nothing : dashedEdges(model, shown);
  const runs: Runs = state.collapse
    ? collapseRuns(model, shown, dashed)
    : { marked: shown, last: new Map(), size: new Map() };
  const placed =
    comparison && state.x === "position"
      ? { x: alignedX(comparison, runs.marked), untimed: 0 }
      : placeX(model, runs.marked, state.x, state.order);
  const rows = planRows(model, runs.marked, hiddenProcesses, comparison?.partSizes ?? [model.processes.length]);
  const layout = arrange(model, runs.marked, placed.x, placed.untimed, rows);
  return {
    ...facts,
    state,
    palette,
    shown,
    shownCount,
    runs,
    layout,
    dashed,
    messages: state.messages ? messageRows(model, runs.marked, layout.x) : null,
  };
}
