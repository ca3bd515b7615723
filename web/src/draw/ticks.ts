// Where the ticks of an axis stand and what they say. Nothing here loops further than it is told to: numbers above 2^53 do
// not change when one is added.

/** Steps of 1, 2 or 5 times a power of ten, about one for every `apart` pixels. */
export function tickStep(span: number, width: number, apart: number): number {
  const rough = (span / Math.max(1, width)) * apart;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-300)));
  const times = rough / power;
  return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

/** Multiples of a step from low to high, at most `most`, each only once even where floats cannot tell neighbours apart. */
export function multiples(low: number, high: number, step: number, most: number): number[] {
  const first = Math.ceil(low / step);
  const size = Math.min(Math.floor(high / step) - first + 1, most);
  if (!Number.isFinite(first) || !(size > 0)) return [];
  const found: number[] = [];
  for (let at = 0; at < size; at++) {
    const value = (first + at) * step;
    if (found.length === 0 || value > found[found.length - 1]) found.push(value);
  }
  return found;
}

const SMALLEST_OFFSET = 1e6;

/** A round number to subtract from values that are large but lie close together, such as times since 1970; else 0. */
export function sharedOffset(low: number, high: number): number {
  const span = high - low;
  const nearest = Math.min(Math.abs(low), Math.abs(high));
  if (low < 0 !== high < 0 || nearest < SMALLEST_OFFSET || nearest < span) return 0;
  const unit = 10 ** Math.max(1, Math.ceil(Math.log10(Math.max(span, 1))));
  return Math.floor(low / unit) * unit;
}

const LONGEST_PLAIN = 1e15;
const FINEST_PLAIN = 1e-9;

/** A tick's number with as many digits as its step asks for, so that neighbours never read the same. */
export function tickLabel(value: number, step: number): string {
  if (value === 0) return "0";
  if (Math.abs(value) >= LONGEST_PLAIN || step < FINEST_PLAIN) {
    const digits = Math.max(0, Math.min(15, Math.round(Math.log10(Math.abs(value) / step)) + 1));
    return value.toExponential(digits).replace(/\.?0+e/, "e").replace("e+", "e");
  }
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return value.toLocaleString("en-GB", { maximumFractionDigits: decimals }).replace(/^-0$/, "0");
}

export const differenceLabel = (value: number, step: number): string =>
  value < 0 ? `−${tickLabel(-value, step)}` : `+${tickLabel(value, step)}`;

/** "time" and an offset as "time − 1,369,438,000". */
export function nameWithOffset(name: string, offset: number): string {
  if (offset === 0) return name;
  return `${name} ${offset < 0 ? "+" : "−"} ${Math.abs(offset).toLocaleString("en-GB", { maximumSignificantDigits: 17 })}`;
}
