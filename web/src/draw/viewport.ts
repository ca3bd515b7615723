// Where the plane of the layout lies on the screen. All in CSS pixels.

import type { Layout, XMode } from "../model/layout";

export const AXIS_HEIGHT = 26;
export const MESSAGE_ROW = 18;
export const SPLIT = 26;

export type Viewport = {
  width: number;
  height: number;
  /** Width of the labels at the left. */
  gutter: number;
  rowHeight: number;
  /** Pixels for a unit of x, and the x at the left edge of the plot. */
  scale: number;
  left: number;
  /** Pixels scrolled off at the top of the lanes and of the messages. */
  scroll: number;
  messageScroll: number;
  lanesHeight: number;
  /** Top and height of the message view, height 0 where it is not shown. */
  messagesTop: number;
  messagesHeight: number;
};

export const toPixel = (view: Viewport, x: number): number => view.gutter + (x - view.left) * view.scale;
export const toUnit = (view: Viewport, pixel: number): number => view.left + (pixel - view.gutter) / view.scale;
export const rowMiddle = (view: Viewport, row: number): number => (row + 0.5) * view.rowHeight - view.scroll;
export const rowAt = (view: Viewport, pixel: number): number => Math.floor((pixel + view.scroll) / view.rowHeight);
export const plotWidth = (view: Viewport): number => Math.max(1, view.width - view.gutter);
export const rightEdge = (view: Viewport): number => view.left + plotWidth(view) / view.scale;

const LARGEST_UNIT = 84;
const LOWEST_ROW = 32;
const HIGHEST_ROW = 104;

/** Part of the size of a number: a shorter stretch would hold a handful of floats, and zooming further shows nothing more. */
const RESOLUTION = 2 ** -48;

/** The shortest stretch around here that is worth showing. */
export const finestSpan = (from: number, to: number): number =>
  Math.max(Math.abs(from) * RESOLUTION, Math.abs(to) * RESOLUTION, 1e-300);

/** The stretch of x that shows everything. */
export function wholeRange(layout: Layout, mode: XMode): [number, number] {
  const span = layout.high - layout.low;
  const finest = finestSpan(layout.low, layout.high);
  const margin = mode === "time" ? Math.max(span * 0.03 || 1, finest) : Math.max(0.8, span * 0.012);
  return [layout.low - margin, layout.high + margin];
}

/** Processes whose lanes are wholly in sight, and all that have a lane. */
export function processesInSight(layout: Layout, view: Viewport): { inSight: number; all: number } {
  const first = Math.ceil(view.scroll / view.rowHeight - 0.01);
  const last = Math.floor((view.scroll + view.lanesHeight) / view.rowHeight + 0.01);
  let [inSight, all] = [0, 0];
  layout.rows.forEach((process, row) => {
    if (process < 0) return;
    all++;
    if (row >= first && row < last) inSight++;
  });
  return { inSight, all };
}

export function makeViewport(
  size: { width: number; height: number; gutter: number },
  layout: Layout,
  mode: XMode,
  wanted: { from: number | null; to: number | null; top: number; messageTop: number; messages: boolean; messageCount: number },
): Viewport {
  const plot = Math.max(1, size.width - size.gutter);
  const [low, high] = wholeRange(layout, mode);
  const from = wanted.from ?? low;
  const to = wanted.to ?? high;
  let scale = plot / Math.max(to - from, finestSpan(from, to));
  // A handful of events is not spread over the whole width.
  if (wanted.from === null && mode !== "time") scale = Math.min(scale, LARGEST_UNIT);
  const available = Math.max(40, size.height - AXIS_HEIGHT);
  const lowest = 3 * LOWEST_ROW;
  const messagesHeight = wanted.messages
    ? Math.round(Math.max(60, Math.min(available * 0.42, wanted.messageCount * MESSAGE_ROW + SPLIT, available - lowest)))
    : 0;
  const lanesHeight = available - messagesHeight;
  const rows = Math.max(1, layout.rows.length);
  const rowHeight = Math.max(LOWEST_ROW, Math.min(HIGHEST_ROW, Math.floor(lanesHeight / rows)));
  return {
    ...size,
    rowHeight,
    scale,
    left: from,
    scroll: Math.max(0, Math.min(wanted.top * rowHeight, rows * rowHeight - lanesHeight)),
    messageScroll: wanted.messageTop * MESSAGE_ROW,
    lanesHeight,
    messagesTop: lanesHeight,
    messagesHeight,
  };
}
