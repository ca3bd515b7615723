// Charts as inline SVG: bars, steps and a heat map. Colours come from the style sheet, so that themes and print work.

import { multiples, nameWithOffset, sharedOffset, differenceLabel, tickLabel, tickStep } from "../draw/ticks";
import { figure as written, visible } from "../model/plaintext";
import type { Figure } from "../model/types";
import { svgElement } from "../ui/dom";
import { axisLabels, cutToWidth, numberThatFits, placeBelow, textWidth } from "./chartlabels";

const WIDTH = 720;
const HEIGHT = 260;
const MARGIN = { left: 64, right: 16, top: 12, bottom: 50 };
/** Room at the left for the turned name of the y axis. */
const TURNED_NAME = 24;
const LABEL_GAP = 8;
/** Beyond this, sums and differences of two values are infinite. */
const LARGEST = Number.MAX_VALUE / 8;

const line = (x1: number, y1: number, x2: number, y2: number, name: string) => svgElement("line", { x1, y1, x2, y2, class: name });

type Anchor = "start" | "middle" | "end";

/** A text; where it was cut, the whole is its title. */
function label(text: string, x: number, y: number, anchor: Anchor, name = "chart-label", turn = 0, whole = text): SVGElement {
  const attributes: Record<string, string | number> = { x, y, "text-anchor": anchor, class: name };
  if (turn) attributes.transform = `rotate(${turn} ${x} ${y})`;
  const made = svgElement("text", attributes, text);
  return visible(whole) === text ? made : withTip(made, whole);
}

/** A text cut to a width. */
const fittingLabel = (text: string, width: number, x: number, y: number, anchor: Anchor, name?: string, turn?: number): SVGElement =>
  label(cutToWidth(text, width), x, y, anchor, name, turn, text);

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
  const height = HEIGHT - MARGIN.top - MARGIN.bottom;
  const values = figure.y.map(withinReach);
  const high = values.reduce((most, value) => Math.max(most, Number.isFinite(value) ? value : 0), 0) || 1;
  const low = values.reduce((least, value) => Math.min(least, Number.isFinite(value) ? value : 0), 0);
  const step = tickStep(high - low, height, 44);
  const top = Math.ceil(high / step) * step;
  const bottom = Math.floor(low / step) * step;
  const toY = (value: number) => MARGIN.top + ((top - value) / (top - bottom)) * height;
  const rules = multiples(bottom - step / 2, top + step / 2, step, height);
  const names = axisLabels(rules, step);
  const left = Math.max(MARGIN.left, TURNED_NAME + LABEL_GAP + names.reduce((most, name) => Math.max(most, textWidth(name)), 0));
  const inner: Inner = { left, width: WIDTH - left - MARGIN.right, toY };
  const parts: SVGElement[] = [];
  rules.forEach((value, at) => {
    parts.push(line(left, toY(value), WIDTH - MARGIN.right, toY(value), "chart-rule"));
    parts.push(label(names[at], left - LABEL_GAP, toY(value) + 4, "end"));
  });
  const reachable = { ...figure, y: values };
  const drawn = figure.kind === "bars" ? bars(reachable, inner) : steps(reachable, inner);
  parts.push(...drawn.parts);
  parts.push(line(left, toY(0), WIDTH - MARGIN.right, toY(0), "chart-axis"));
  parts.push(fittingLabel(drawn.xLabel, inner.width, left + inner.width / 2, HEIGHT - 8, "middle", "chart-name"));
  parts.push(fittingLabel(figure.yLabel, height, 14, MARGIN.top + height / 2, "middle", "chart-name", -90));
  return { height: HEIGHT, parts };
}

type Inner = { left: number; width: number; toY: (value: number) => number };
type Drawn = { parts: SVGElement[]; xLabel: string };

const withinReach = (value: number): number => (Number.isFinite(value) ? Math.max(-LARGEST, Math.min(LARGEST, value)) : value);

const withTip = (shape: SVGElement, tip: string): SVGElement => {
  shape.append(svgElement("title", {}, visible(tip, 120)));
  return shape;
};

const shown = (value: string | number): string => (typeof value === "number" ? written(value) : value);

function bars(figure: Figure, { left, width, toY }: Inner): Drawn {
  const slot = width / Math.max(1, figure.x.length);
  const names = figure.x.map(shown);
  const parts: SVGElement[] = [];
  figure.y.forEach((value, at) => {
    if (!Number.isFinite(value)) return;
    const [top, bottom] = [Math.min(toY(value), toY(0)), Math.max(toY(value), toY(0))];
    const bar = svgElement("rect", {
      x: left + (at + 0.14) * slot, y: top, width: Math.max(0.5, slot * 0.72), height: bottom - top, class: "chart-bar",
    });
    parts.push(withTip(bar, `${names[at]}: ${written(value)}`));
  });
  parts.push(...labelsBelow(names, (at) => left + (at + 0.5) * slot, slot, HEIGHT - MARGIN.bottom + 16));
  return { parts, xLabel: figure.xLabel };
}

const labelsBelow = (names: string[], placeOf: (at: number) => number, apart: number, y: number): SVGElement[] =>
  placeBelow(names, placeOf, apart, WIDTH).map(({ at, x, text }) => label(text, x, y, "middle", "chart-label", 0, names[at]));

/** Steps: each value holds from its x to the next. Numbers stand to scale, other labels at equal distances. */
function steps(figure: Figure, { left, width, toY }: Inner): Drawn {
  const numeric = figure.x.every((value) => typeof value === "number" && Number.isFinite(value));
  const places = figure.x.map((value, at) => (numeric ? withinReach(value as number) : at));
  if (places.length === 0) return { parts: [], xLabel: figure.xLabel };
  const first = places.reduce((least, place) => Math.min(least, place), Infinity);
  const last = places.reduce((most, place) => Math.max(most, place), -Infinity);
  const toX = (value: number) => left + ((value - first) / (last - first || 1)) * width;
  let path = "";
  places.forEach((place, at) => {
    if (!Number.isFinite(figure.y[at])) return;
    path += path === "" ? `M${toX(place)} ${toY(figure.y[at])}` : `H${toX(place)}V${toY(figure.y[at])}`;
  });
  const parts: SVGElement[] = [svgElement("path", { d: path, class: "chart-line" })];
  const y = HEIGHT - MARGIN.bottom + 16;
  if (!numeric) {
    parts.push(...labelsBelow(figure.x.map(shown), (at) => toX(places[at]), width / Math.max(1, places.length - 1), y));
    return { parts, xLabel: figure.xLabel };
  }
  const offset = sharedOffset(first, last);
  const step = tickStep(last - first || 1, width, 90);
  const ticks = multiples(first - offset, last - offset, step, width / 40);
  const names = ticks.map((value) => (offset === 0 ? tickLabel(value, step) : differenceLabel(value, step)));
  parts.push(...labelsBelow(names, (at) => toX(ticks[at] + offset), (step / (last - first || 1)) * width, y));
  return { parts, xLabel: nameWithOffset(figure.xLabel, offset) };
}

/** Row names of a heat map take at most this much of its width. */
const WIDEST_ROWS = 240;

function heat(figure: Figure): Frame {
  const widest = figure.rows.reduce((most, name) => Math.max(most, textWidth(visible(name))), 28);
  const left = Math.min(WIDEST_ROWS, TURNED_NAME + LABEL_GAP + widest);
  const slot = (WIDTH - left - MARGIN.right) / Math.max(1, figure.x.length);
  const row = Math.max(12, Math.min(34, 420 / Math.max(1, figure.rows.length)));
  const top = 8;
  const height = top + row * figure.rows.length + MARGIN.bottom;
  const all = figure.values.flat().filter(Number.isFinite);
  const high = all.reduce((most, value) => Math.max(most, value), 0) || 1;
  const parts: SVGElement[] = [];
  const everyRow = Math.ceil(13 / row);
  figure.rows.forEach((name, r) => {
    if (r % everyRow === 0) parts.push(fittingLabel(name, left - LABEL_GAP - TURNED_NAME, left - LABEL_GAP, top + r * row + row / 2 + 4, "end"));
    figure.values[r].forEach((value, c) => {
      const strength = Number.isFinite(value) ? Math.max(0, value) / high : 0;
      const cell = svgElement("rect", {
        x: left + c * slot + 0.5, y: top + r * row + 0.5, width: Math.max(0.5, slot - 1), height: row - 1,
        class: "chart-cell", "fill-opacity": (0.06 + 0.94 * strength).toFixed(3),
      });
      parts.push(withTip(cell, `${name}, ${shown(figure.x[c])}: ${written(value)}`));
      // The number itself, where it fits: colour is never the only carrier.
      const number = slot > 30 && row > 15 ? numberThatFits(value, written(value), slot - 4) : "";
      if (number !== "")
        parts.push(label(number, left + (c + 0.5) * slot, top + (r + 0.5) * row + 4, "middle", strength > 0.85 ? "chart-strong" : strength > 0.5 ? "chart-middle" : "chart-weak"));
    });
  });
  const inner = WIDTH - left - MARGIN.right;
  parts.push(...labelsBelow(figure.x.map(shown), (c) => left + (c + 0.5) * slot, slot, height - MARGIN.bottom + 16));
  parts.push(fittingLabel(figure.xLabel, inner, left + inner / 2, height - 8, "middle", "chart-name"));
  parts.push(fittingLabel(figure.yLabel, Math.max(60, row * figure.rows.length), 12, top + (row * figure.rows.length) / 2, "middle", "chart-name", -90));
  return { height, parts };
}
