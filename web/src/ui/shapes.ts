// The shapes of the drawing as small pictures for legends and lists.

import type { Palette } from "../draw/palette";
import { KIND_SHAPES, SHAPES, type Shape } from "../draw/surface";
import { svgElement } from "./dom";

export function shapeIcon(shape: Shape, colour: string, size = 14): SVGElement {
  const { path, filled } = SHAPES[shape];
  const paint: Record<string, string | number> = filled ? { fill: colour } : { fill: "none", stroke: colour, "stroke-width": 0.32 };
  return svgElement(
    "svg",
    { width: size, height: size, viewBox: "-1.45 -1.45 2.9 2.9", "aria-hidden": "true", class: "shape" },
    svgElement("path", { d: path, "stroke-linecap": "round", ...paint }),
  );
}

export const kindIcon = (kind: number, palette: Palette, size = 14): SVGElement =>
  shapeIcon(KIND_SHAPES[kind], palette.kinds[kind], size);
