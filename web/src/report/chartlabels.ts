// The texts of charts: how wide they are, cut where they do not fit, and numbers short enough for an axis.

import { tickLabel } from "../draw/ticks";
import { visible } from "../model/plaintext";

const LETTER = 6.6;
const WIDE_LETTER = 12;
/** East Asian letters, and all that needs more than 16 bits, such as emoji. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]|[\u{10000}-\u{10ffff}]/u;

const widthOfLetter = (letter: string): number => (WIDE.test(letter) ? WIDE_LETTER : LETTER);

/** Pixels of a text in a chart. An estimate, rather too wide: charts are made before they are in the page. */
export function textWidth(text: string): number {
  let width = 0;
  for (const letter of text) width += widthOfLetter(letter);
  return width;
}

const LONGEST_LABEL = 200;

/** A text that is safe to show and fits a width, with an ellipsis where it was cut. */
export function cutToWidth(text: string, width: number): string {
  const shown = visible(text, LONGEST_LABEL);
  if (textWidth(shown) <= width) return shown;
  let cut = "";
  let room = width - LETTER;
  for (const letter of shown) {
    room -= widthOfLetter(letter);
    if (room < 0) break;
    cut += letter;
  }
  return `${cut.replace(/…$/, "")}…`;
}

const UNITS: [string, number][] = [["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];

/** 1,200,000,000 as 1.2 G. */
export function compact(value: number, step: number): string {
  const size = Math.abs(value);
  if (size >= 1e21) return tickLabel(value, step);
  const [unit, factor] = UNITS.find(([, least]) => size >= least) ?? ["", 1];
  return unit ? `${tickLabel(value / factor, step / factor)} ${unit}` : tickLabel(value, step);
}

const LONGEST_PLAIN = 62;

/** Labels of an axis: as they are where all are short, else all compact. */
export function axisLabels(values: number[], step: number): string[] {
  const plain = values.map((value) => tickLabel(value, step));
  if (plain.every((label) => textWidth(label) <= LONGEST_PLAIN)) return plain;
  return values.map((value) => compact(value, step));
}

/** A number that fits a width, with fewer digits where it must be; "" where nothing fits. */
export function numberThatFits(value: number, plain: string, width: number): string {
  if (textWidth(plain) <= width) return plain;
  if (!Number.isFinite(value)) return "";
  for (const digits of [10, 100]) {
    const short = compact(value, Math.abs(value) / digits);
    if (textWidth(short) <= width) return short;
  }
  return "";
}

export type Placed = { at: number; x: number; text: string };

/** Labels below a chart around their places: cut, kept within the picture, and only those that leave room to the one before. */
export function placeBelow(names: string[], placeOf: (at: number) => number, apart: number, picture: number, widest = 120): Placed[] {
  const texts = names.map((name) => cutToWidth(name, widest));
  const longest = texts.reduce((most, text) => Math.max(most, textWidth(text)), 1);
  const every = Math.max(1, Math.ceil((longest + 8) / apart));
  const placed: Placed[] = [];
  let end = -Infinity;
  for (let at = 0; at < texts.length; at += every) {
    const half = textWidth(texts[at]) / 2;
    const x = Math.max(half + 2, Math.min(placeOf(at), picture - half - 2));
    if (x - half < end + 6) continue;
    placed.push({ at, x, text: texts[at] });
    end = x + half;
  }
  return placed;
}
