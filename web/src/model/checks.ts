// Small checks of JSON values. Each says in one sentence what is wrong.

/** An error whose message is meant for the reader of the page. */
export class PageError extends Error {}

const damaged = (what: string) => new PageError(`The data of this page is damaged: ${what}.`);

export function record(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw damaged(`${name} is not an object`);
  return value as Record<string, unknown>;
}

export function arrayOf(value: unknown, name: string): unknown[] {
  if (!Array.isArray(value)) throw damaged(`${name} is not a list`);
  return value;
}

export function listOf<T>(value: unknown, name: string, read: (item: unknown, name: string) => T): T[] {
  return arrayOf(value, name).map((item, at) => read(item, `${name}[${at}]`));
}

export function text(value: unknown, name: string): string {
  if (typeof value !== "string") throw damaged(`${name} is not a text`);
  return value;
}

export function textOrNull(value: unknown, name: string): string | null {
  return value == null ? null : text(value, name);
}

export function integer(value: unknown, name: string, low: number, high: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < low || value > high)
    throw damaged(`${name} is not a whole number from ${low} to ${high}`);
  return value;
}

export function number(value: unknown, name: string): number {
  if (typeof value !== "number") throw damaged(`${name} is not a number`);
  return value;
}
