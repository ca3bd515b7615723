// Charts as inline SVG: bars, steps and a heat map. Colours come from the style sheet, so that themes and print work.

import { tickStep } from "../draw/ticks";
import { figure as written, visible } from "../model/plaintext";
import type { Figure } from "../model/types";
import { svgElement } from "../ui/dom";

const WIDTH = 720;
const HEIGHT = 260;
const MARGIN = { left: 64, right: 16, top: 12, bottom: 50 };

const line = (x1: number, y1: number, x2: number, y2: number, name: string) => svgElement("line", { x1, y1, x2, y2, class: name });

function label(text: string, x: number, y: number, anchor: "start" | "middle" | "end", name = "chart-label", turn = 0): SVGElement {
  const attributes: Record<string, string | number> = { x, y, "text-anchor": anchor, class: name };
  if (turn) attributes.transform = `rotate(${turn} ${x} ${y})`;
  return svgElement("text", attributes, visible(text, 40));
}

export function chart(figure: Figure): SVGElement {
  const frame = figure.kind === "heat" ? heat(figure) : plot(figure);
  return svgElement(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${frame.height}`, role: "img", class: "chart", "aria-label": `${visible(figure.title, 200)}. The table holds the same numbers.` },
    ...frame.parts,
  );
}

type Frame = { height: number; parts: SVGElement[] };

function plot(figure: Figure): Frame {
  const inner = { width: WIDTH - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const finite = figure.y.filter(Number.isFinite);
  const high = Math.max(0, ...finite) || 1;
  const low = Math.min(0, ...finite);
  const step = tickStep(high - low, inner.height, 44);
  const top = Math.ceil(high / step) * step;
  const bottom = Math.floor(low / step) * step;
  const toY = (value: number) => MARGIN.top + ((top - value) / (top - bottom)) * inner.height;
  const parts: SVGElement[] = [];
  for (let at = Math.round(bottom / step); at * step <= top + step / 2; at++) {
    const value = Number((at * step).toPrecision(10));
    parts.push(line(MARGIN.left, toY(value), WIDTH - MARGIN.right, toY(value), "chart-rule"));
    parts.push(label(written(value), MARGIN.left - 8, toY(value) + 4, "end"));
  }
  parts.push(...(figure.kind === "bars" ? bars(figure, inner.width, toY) : steps(figure, inner.width, toY)));
  parts.push(line(MARGIN.left, toY(0), WIDTH - MARGIN.right, toY(0), "chart-axis"));
  parts.push(label(figure.xLabel, MARGIN.left + inner.width / 2, HEIGHT - 8, "middle", "chart-name"));
  parts.push(label(figure.yLabel, 14, MARGIN.top + inner.height / 2, "middle", "chart-name", -90));
  return { height: HEIGHT, parts };
}

const withTip = (shape: SVGElement, tip: string): SVGElement => {
  shape.append(svgElement("title", {}, visible(tip, 120)));
  return shape;
};

const shown = (value: string | number): string => (typeof value === "number" ? written(value) : value);

function bars(figure: Figure, width: number, toY: (value: number) => number): SVGElement[] {
  const slot = width / Math.max(1, figure.x.length);
  const every = Math.ceil((widest(figure.x) * 6.4 + 8) / slot);
  return figure.y.flatMap((value, at) => {
    const x = MARGIN.left + at * slot;
    const [top, bottom] = [Math.min(toY(value), toY(0)), Math.max(toY(value), toY(0))];
    const name = shown(figure.x[at]);
    const parts = Number.isFinite(value)
      ? [withTip(svgElement("rect", { x: x + slot * 0.14, y: top, width: Math.max(0.5, slot * 0.72), height: bottom - top, class: "chart-bar" }), `${name}: ${written(value)}`)]
      : [];
    if (at % every === 0) parts.push(label(name, x + slot / 2, HEIGHT - MARGIN.bottom + 16, "middle"));
    return parts;
  });
}

const widest = (names: (string | number)[]): number => Math.max(1, ...names.map((name) => Math.min(40, shown(name).length)));

/** Steps: each value holds from its x to the next. Numbers stand to scale, other labels at equal distances. */
function steps(figure: Figure, width: number, toY: (value: number) => number): SVGElement[] {
  const numeric = figure.x.every((value) => typeof value === "number" && Number.isFinite(value));
  const places = figure.x.map((value, at) => (numeric ? (value as number) : at));
  if (places.length === 0) return [];
  const [first, last] = [Math.min(...places), Math.max(...places)];
  const toX = (value: number) => MARGIN.left + ((value - first) / (last - first || 1)) * width;
  let path = "";
  places.forEach((place, at) => {
    if (!Number.isFinite(figure.y[at])) return;
    path += path === "" ? `M${toX(place)} ${toY(figure.y[at])}` : `H${toX(place)}V${toY(figure.y[at])}`;
  });
  const parts: SVGElement[] = [svgElement("path", { d: path, class: "chart-line" })];
  if (numeric) {
    const step = tickStep(last - first || 1, width, 90);
    for (let at = Math.ceil(first / step); at * step <= last; at++)
      parts.push(label(written(Number((at * step).toPrecision(10))), toX(at * step), HEIGHT - MARGIN.bottom + 16, "middle"));
  } else {
    const every = Math.ceil(((widest(figure.x) * 6.4 + 8) * places.length) / width);
    places.forEach((place, at) => {
      if (at % every === 0) parts.push(label(shown(figure.x[at]), toX(place), HEIGHT - MARGIN.bottom + 16, "middle"));
    });
  }
  return parts;
}

function heat(figure: Figure): Frame {
  const left = Math.min(200, 24 + Math.max(4, ...figure.rows.map((row) => Math.min(28, row.length))) * 6.6);
  const slot = (WIDTH - left - MARGIN.right) / Math.max(1, figure.x.length);
  const row = Math.max(12, Math.min(34, 420 / Math.max(1, figure.rows.length)));
  const top = 8;
  const height = top + row * figure.rows.length + MARGIN.bottom;
  const all = figure.values.flat().filter(Number.isFinite);
  const high = all.reduce((most, value) => Math.max(most, value), 0) || 1;
  const parts: SVGElement[] = [];
  const every = Math.ceil((widest(figure.x) * 6.4 + 8) / slot);
  const everyRow = Math.ceil(13 / row);
  figure.rows.forEach((name, r) => {
    if (r % everyRow === 0) parts.push(label(name, left - 8, top + r * row + row / 2 + 4, "end"));
    figure.values[r].forEach((value, c) => {
      const strength = Number.isFinite(value) ? Math.max(0, value) / high : 0;
      const cell = svgElement("rect", {
        x: left + c * slot + 0.5, y: top + r * row + 0.5, width: Math.max(0.5, slot - 1), height: row - 1,
        class: "chart-cell", "fill-opacity": (0.06 + 0.94 * strength).toFixed(3),
      });
      parts.push(withTip(cell, `${name}, ${shown(figure.x[c])}: ${written(value)}`));
      // The number itself, where it fits: colour is never the only carrier.
      if (slot > 30 && row > 15)
        parts.push(label(written(value), left + (c + 0.5) * slot, top + (r + 0.5) * row + 4, "middle", strength > 0.85 ? "chart-strong" : strength > 0.5 ? "chart-middle" : "chart-weak"));
    });
  });
  figure.x.forEach((name, c) => {
    if (c % every === 0) parts.push(label(shown(name), left + (c + 0.5) * slot, height - MARGIN.bottom + 16, "middle"));
  });
  parts.push(label(figure.xLabel, left + (WIDTH - left - MARGIN.right) / 2, height - 8, "middle", "chart-name"));
  parts.push(label(figure.yLabel, 12, top + (row * figure.rows.length) / 2, "middle", "chart-name", -90));
  return { height, parts };
}
