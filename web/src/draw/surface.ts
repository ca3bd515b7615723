// What a drawing is made of. The same drawing goes to a canvas and to SVG.

/** The width of one pixel of the screen. */
export const HAIRLINE = 0;

export type Stroke = { colour: string; width: number; dash?: number[]; opacity?: number };

export type TextStyle = {
  colour: string;
  size: number;
  align?: "left" | "center" | "right";
  weight?: number;
  /** Colour of an outline that keeps the text legible on top of lines. */
  halo?: string;
  opacity?: number;
};

/** Shapes as SVG paths around the origin with radius 1. Canvas and SVG both draw these. */
export const SHAPES = {
  circle: { path: "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z", filled: true },
  ring: { path: "M.85 0A.85 .85 0 1 1 -.85 0A.85 .85 0 1 1 .85 0Z", filled: false },
  diamond: { path: "M0 -1.2L1.2 0L0 1.2L-1.2 0Z", filled: true },
  square: { path: "M-.72 -.72H.72V.72H-.72Z", filled: true },
  violation: {
    path: "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0ZM-.5 -.5L.5 .5M.5 -.5L-.5 .5",
    filled: false,
  },
  triangle: { path: "M0 -1L1.05 .85H-1.05Z", filled: true },
  moved: { path: "M-1 -.45H.95M.35 -1L1 -.45L.35 .1M1 .5H-.95M-.35 -.05L-1 .5L-.35 1.05", filled: false },
  /** Unequal: two bars and a stroke through them. */
  changed: { path: "M-1 -.4H1M-1 .4H1M-.55 1L.55 -1", filled: false },
  halo: { path: "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z", filled: false },
} as const;

export type Shape = keyof typeof SHAPES;

/** Shapes that are lines only: what is behind them is seen. */
export const isOpen = (shape: Shape): boolean => shape === "halo" || shape === "moved" || shape === "changed";

export const KIND_SHAPES: readonly Shape[] = ["square", "circle", "ring", "diamond"];

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

export interface Surface {
  rect(x: number, y: number, width: number, height: number, fill: string, opacity?: number): void;
  outline(x: number, y: number, width: number, height: number, radius: number, stroke: Stroke, fill?: string): void;
  hatch(x: number, y: number, width: number, height: number, colour: string): void;
  /** Lines given as x1, y1, x2, y2, … */
  segments(points: ArrayLike<number>, length: number, stroke: Stroke): void;
  /** Heads of arrows at the second end of each segment. */
  heads(points: ArrayLike<number>, length: number, size: number, colour: string, opacity?: number): void;
  mark(shape: Shape, x: number, y: number, radius: number, colour: string, ground: string, opacity?: number): void;
  text(value: string, x: number, y: number, style: TextStyle): void;
  clipped(x: number, y: number, width: number, height: number, draw: () => void): void;
  /** Width of a text in pixels. */
  measure(value: string, size: number, weight?: number): number;
}

/** The two sides of an arrow head, as offsets from its tip. */
export function headOffsets(x1: number, y1: number, x2: number, y2: number, size: number): [number, number, number, number] {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const dx = ((x2 - x1) / length) * size;
  const dy = ((y2 - y1) / length) * size;
  return [-dx - dy * 0.45, -dy + dx * 0.45, -dx + dy * 0.45, -dy - dx * 0.45];
}

/** A text cut so that it fits a width, with an ellipsis. */
export function fitted(surface: Surface, value: string, width: number, size: number, weight?: number): string {
  if (surface.measure(value, size, weight) <= width) return value;
  let [low, high] = [0, value.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (surface.measure(`${value.slice(0, middle)}…`, size, weight) <= width) low = middle;
    else high = middle - 1;
  }
  return `${value.slice(0, low)}…`;
}
