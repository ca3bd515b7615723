// What the page is given: the decoded and checked payload.

export const TONES = ["good", "bad", "open", "plain"] as const;

/** Word and tone (green, red, amber, grey) come with the data: `causet.verdict` has the one list of them. */
export type Verdict = { status: string; word: string; tone: (typeof TONES)[number]; sentence: string };

export type Violation = {
  delivered: number;
  before: number;
  sentence: string;
  chain: number[];
};

export type Indexes = Uint8Array | Uint16Array | Uint32Array;

/** One execution as columns: an event is known by its index, and causes have smaller indexes than effects. */
export type Execution = {
  name: string;
  processes: string[];
  strings: string[];
  events: number;
  total: number;
  leftOut: string | null;
  timeUnit: string | null;
  process: Indexes;
  seq: Float64Array;
  kind: Uint8Array;
  control: Uint8Array;
  block: Uint32Array;
  time: Float64Array;
  position: Float64Array;
  message: Int32Array;
  id: Int32Array;
  text: Int32Array;
  group: Int32Array;
  fault: Int32Array;
  causeBegin: Uint32Array;
  cause: Uint32Array;
  causeKind: Uint8Array;
  violations: Violation[];
  /** Violations in the whole execution, of which some may be left out here; null where it was not judged. */
  found: number | null;
  verdict: Verdict;
};

export type Proof = { sentence: string; execution: number; delivered: number; before: number };

export type Figure = {
  name: string;
  title: string;
  note: string;
  kind: "bars" | "steps" | "heat";
  x: (string | number)[];
  y: number[];
  rows: string[];
  values: number[][];
  xLabel: string;
  yLabel: string;
};

export type Report = { verdict: Verdict; facts: [string, string][]; proofs: Proof[]; figures: Figure[] };

export type Page = {
  kind: "view" | "compare" | "report";
  title: string;
  executions: Execution[];
  report: Report | null;
};

export const LOCAL = 0;
export const SEND = 1;
export const RECEIVE = 2;
export const DELIVER = 3;
export const KIND_NAMES = ["local", "send", "receive", "deliver"] as const;

export const BY_MESSAGE = 0;
export const BY_PARENT = 1;
