// Running a query over an execution in slices of time, so that the page never freezes. A regular expression is tried on
// each distinct text once, elsewhere (see regexworker), so that a slow one can be stopped.

import { faultOf, groupOf, kindOf, messageOf, nameOf, processOf, textOf, type Model } from "./model";
import type { Comparison, Field, Term } from "./query";

export const LONGEST_TRIED = 2000;

/** Says for each text whether the regular expression matches. */
export type RegexTester = (source: string, flags: string, texts: string[]) => Promise<Uint8Array>;

type Predicate = (event: number) => boolean;

const READ: Record<Field, (model: Model, event: number) => string> = {
  process: processOf,
  kind: kindOf,
  id: nameOf,
  message: messageOf,
  text: textOf,
  group: groupOf,
  fault: faultOf,
  control: (model, event) => (model.control[event] ? "yes" : "no"),
  seq: (model, event) => String(model.seq[event]),
  time: (model, event) => (Number.isNaN(model.time[event]) ? "" : String(model.time[event])),
  block: (model, event) => String(model.block[event]),
  position: (model, event) => String(model.position[event]),
};

const COMPARE: Record<Comparison, (value: number, bound: number) => boolean> = {
  "=": (value, bound) => value === bound,
  "!=": (value, bound) => value !== bound,
  "<": (value, bound) => value < bound,
  "<=": (value, bound) => value <= bound,
  ">": (value, bound) => value > bound,
  ">=": (value, bound) => value >= bound,
};

const FREE_FIELDS: Field[] = ["process", "kind", "id", "message", "text", "group", "fault"];

async function predicateOf(model: Model, term: Term, test: RegexTester): Promise<Predicate> {
  if (term.type === "number") {
    const values = model[term.field];
    const compare = COMPARE[term.comparison];
    return (event) => compare(values[event], term.value);
  }
  if (term.type === "text") {
    const read = READ[term.field];
    return (event) => (read(model, event) === term.value) !== term.negated;
  }
  if (term.type === "free") {
    const contains = remembered((text) => text.toLowerCase().includes(term.value));
    return (event) => FREE_FIELDS.some((field) => contains(READ[field](model, event)));
  }
  const { places, texts } = distinct(model, term.field);
  const matches = await test(term.source, term.flags, texts);
  return (event) => (matches[places[event]] === 1) !== term.negated;
}

function remembered(decide: (text: string) => boolean): (text: string) => boolean {
  const known = new Map<string, boolean>();
  return (text) => {
    let answer = known.get(text);
    if (answer === undefined) known.set(text, (answer = decide(text)));
    return answer;
  };
}

function distinct(model: Model, field: Field): { places: Uint32Array; texts: string[] } {
  const read = READ[field];
  const known = new Map<string, number>();
  const texts: string[] = [];
  const places = new Uint32Array(model.events);
  for (let event = 0; event < model.events; event++) {
    const text = read(model, event);
    let place = known.get(text);
    if (place === undefined) {
      known.set(text, (place = texts.length));
      texts.push(text.slice(0, LONGEST_TRIED));
    }
    places[event] = place;
  }
  return { places, texts };
}

const SLICE_MILLISECONDS = 10;
const EVENTS_BETWEEN_LOOKS = 512;

/** The mask of events that match all terms, or null once `cancelled` says that nobody waits for it any more. */
export async function search(
  model: Model,
  terms: Term[],
  test: RegexTester,
  cancelled: () => boolean = () => false,
): Promise<Uint8Array | null> {
  const predicates: Predicate[] = [];
  for (const term of terms) {
    predicates.push(await predicateOf(model, term, test));
    if (cancelled()) return null;
  }
  const mask = new Uint8Array(model.events);
  let sliceEnd = performance.now() + SLICE_MILLISECONDS;
  for (let event = 0; event < model.events; event++) {
    if (event % EVENTS_BETWEEN_LOOKS === 0 && performance.now() > sliceEnd) {
      await new Promise((resolve) => setTimeout(resolve));
      if (cancelled()) return null;
      sliceEnd = performance.now() + SLICE_MILLISECONDS;
    }
    mask[event] = predicates.every((predicate) => predicate(event)) ? 1 : 0;
  }
  return mask;
}
