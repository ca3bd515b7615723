// The whole state of the view, and its form in the address: readable key=value pairs, only what differs from the start.

import type { Order, XMode } from "./layout";
import type { Cone, ConeWay } from "./reduce";

export type Theme = "auto" | "light" | "dark";
export type Tab = "event" | "results" | "violations" | "processes" | "order" | "differences";

export type ViewState = {
  x: XMode;
  order: Order;
  /** The visible stretch of x, null to fit everything. */
  from: number | null;
  to: number | null;
  /** Rows scrolled off at the top, of lanes and of messages. */
  top: number;
  messageTop: number;
  hidden: number[];
  control: boolean;
  find: string;
  only: boolean;
  selected: number;
  cone: Cone | null;
  direct: boolean;
  /** The last event that has happened at the scrub point, -1 for all. */
  scrub: number;
  bands: boolean;
  collapse: boolean;
  messages: boolean;
  theme: Theme;
  tab: Tab;
  panel: boolean;
};

export const START: Readonly<ViewState> = Object.freeze({
  x: "position",
  order: "causal",
  from: null,
  to: null,
  top: 0,
  messageTop: 0,
  hidden: [],
  control: true,
  find: "",
  only: false,
  selected: -1,
  cone: null,
  direct: false,
  scrub: -1,
  bands: true,
  collapse: false,
  messages: false,
  theme: "auto",
  tab: "event",
  panel: true,
});

export type Limits = { events: number; processes: number };

class HashError extends Error {}

const X_MODES: readonly XMode[] = ["position", "block", "time"];
const ORDERS: readonly Order[] = ["causal", "time"];
const WAYS: readonly ConeWay[] = ["past", "future", "both", "concurrent"];
const THEMES: readonly Theme[] = ["auto", "light", "dark"];
const TABS: readonly Tab[] = ["event", "results", "violations", "processes", "order", "differences"];

type Codec = {
  write: (state: ViewState) => string | null;
  read: (text: string, limits: Limits) => Partial<ViewState>;
};

const bad = (key: string) => new HashError(`The address has a bad value for “${key}”, so that part was not used.`);

function choice<K extends keyof ViewState>(key: K, choices: readonly ViewState[K][]): Codec {
  return {
    write: (state) => (state[key] === START[key] ? null : String(state[key])),
    read: (text) => {
      const found = choices.find((known) => known === text);
      if (found === undefined) throw bad(key);
      return { [key]: found } as Partial<ViewState>;
    },
  };
}

function toggle(key: "control" | "only" | "direct" | "bands" | "collapse" | "messages" | "panel"): Codec {
  return {
    write: (state) => (state[key] === START[key] ? null : state[key] ? "on" : "off"),
    read: (text) => {
      if (text !== "on" && text !== "off") throw bad(key);
      return { [key]: text === "on" };
    },
  };
}

/** Rows scrolled off. */
function amount(key: "top" | "messageTop"): Codec {
  return {
    write: (state) => (state[key] === START[key] ? null : String(Number(state[key].toPrecision(8)))),
    read: (text) => {
      const value = readNumber(text, key);
      if (value < 0 || value > MOST_ROWS) throw bad(key);
      return { [key]: value };
    },
  };
}

const MOST_ROWS = 1e9;

/** One end of the visible stretch. */
function edge(key: "from" | "to"): Codec {
  return {
    write: ({ from, to }) => (from === null || to === null ? null : String(stretchDigits(from, to)[key])),
    read: (text) => ({ [key]: readNumber(text, key) }),
  };
}

/** Both ends with as few digits as move neither by a visible part of the stretch: times since 1970 need many. */
function stretchDigits(from: number, to: number): { from: number; to: number } {
  const tolerance = (to - from) * 1e-6;
  for (let digits = 8; digits < 17; digits++) {
    const short = { from: Number(from.toPrecision(digits)), to: Number(to.toPrecision(digits)) };
    const kept = Math.abs(short.from - from) <= tolerance && Math.abs(short.to - to) <= tolerance;
    if (kept && short.from < short.to) return short;
  }
  return { from, to };
}

function readNumber(text: string, key: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw bad(key);
  return value;
}

function readIndex(text: string, length: number, key: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) >= length) throw bad(key);
  return Number(text);
}

function event(key: "selected" | "scrub"): Codec {
  return {
    write: (state) => (state[key] < 0 ? null : String(state[key])),
    read: (text, limits) => ({ [key]: readIndex(text, limits.events, key) }),
  };
}

const cone: Codec = {
  write: ({ cone }) => (cone ? `${cone.way}:${cone.event}` : null),
  read: (text, limits) => {
    const [way, index, ...more] = text.split(":");
    const known = WAYS.find((candidate) => candidate === way);
    if (!known || index === undefined || more.length > 0) throw bad("cone");
    return { cone: { way: known, event: readIndex(index, limits.events, "cone") } };
  },
};

/** Hidden processes as ranges of their numbers: 0-3,7. */
const hidden: Codec = {
  write: ({ hidden }) => (hidden.length === 0 ? null : ranges(hidden)),
  read: (text, limits) => {
    const processes: number[] = [];
    for (const range of text.split(",")) {
      const [first, last = first, ...more] = range.split("-");
      const begin = readIndex(first, limits.processes, "hidden");
      const end = readIndex(last, limits.processes, "hidden");
      if (more.length > 0 || end < begin) throw bad("hidden");
      for (let process = begin; process <= end; process++) processes.push(process);
    }
    return { hidden: [...new Set(processes)].sort((a, b) => a - b) };
  },
};

function ranges(values: number[]): string {
  const parts: string[] = [];
  const sorted = [...values].sort((a, b) => a - b);
  for (let start = 0; start < sorted.length; ) {
    let end = start;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end] + 1) end++;
    parts.push(start === end ? String(sorted[start]) : `${sorted[start]}-${sorted[end]}`);
    start = end + 1;
  }
  return parts.join(",");
}

const CODECS: Record<keyof ViewState, Codec> = {
  x: choice("x", X_MODES),
  order: choice("order", ORDERS),
  from: edge("from"),
  to: edge("to"),
  top: amount("top"),
  messageTop: amount("messageTop"),
  hidden,
  control: toggle("control"),
  find: { write: ({ find }) => find || null, read: (text) => ({ find: text }) },
  only: toggle("only"),
  selected: event("selected"),
  cone,
  direct: toggle("direct"),
  scrub: event("scrub"),
  bands: toggle("bands"),
  collapse: toggle("collapse"),
  messages: toggle("messages"),
  theme: choice("theme", THEMES),
  tab: choice("tab", TABS),
  panel: toggle("panel"),
};

export function writeHash(state: ViewState): string {
  const parts: string[] = [];
  for (const [key, codec] of Object.entries(CODECS)) {
    const value = codec.write(state);
    // Commas and colons may stand in an address as they are.
    if (value !== null) parts.push(`${key}=${encodeURIComponent(value).replace(/%2C/g, ",").replace(/%3A/g, ":")}`);
  }
  return parts.join("&");
}

export type ReadHash = { state: ViewState; complaints: string[] };

/** The state that a hash tells of. A part that is wrong becomes a sentence; all others are used. */
export function readHash(hash: string, limits: Limits): ReadHash {
  const state: ViewState = { ...START };
  const complaints: string[] = [];
  for (const part of hash.replace(/^#/, "").split("&")) {
    if (part === "") continue;
    try {
      Object.assign(state, readPart(part, limits));
    } catch (error) {
      if (!(error instanceof HashError)) throw error;
      complaints.push(error.message);
    }
  }
  if (!isStretch(state.from, state.to)) {
    // Where one end was bad, that is told already.
    if (!complaints.some((sentence) => /“(from|to)”/.test(sentence))) complaints.push(bad("from” and “to").message);
    state.from = state.to = null;
  }
  return { state, complaints };
}

function readPart(part: string, limits: Limits): Partial<ViewState> {
  const [key, ...rest] = part.split("=");
  if (!Object.hasOwn(CODECS, key)) throw new HashError(`The address has an unknown part “${key.slice(0, 40)}”, so that part was not used.`);
  let text: string;
  try {
    text = decodeURIComponent(rest.join("="));
  } catch {
    throw bad(key);
  }
  return CODECS[key as keyof ViewState].read(text, limits);
}

/** No ends at all, or two in order whose distance is a number. */
function isStretch(from: number | null, to: number | null): boolean {
  if (from === null || to === null) return from === to;
  return from < to && Number.isFinite(to - from);
}
