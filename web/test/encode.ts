// Writes payloads as the Python side does, from tiny descriptions, for tests.

type Kind = "local" | "send" | "receive" | "deliver";

export type TinyEvent = {
  p: string;
  kind?: Kind;
  message?: string;
  id?: string;
  text?: string;
  group?: string;
  fault?: string;
  time?: number;
  block?: number;
  control?: boolean;
  /** Indexes of direct causes in other processes; negative-free. */
  causes?: number[];
  parents?: number[];
};

export type TinyExecution = {
  name?: string;
  processes?: string[];
  events: TinyEvent[];
  violations?: unknown[];
  verdict?: unknown;
  leftOut?: string | null;
  timeUnit?: string | null;
};

const KINDS: Kind[] = ["local", "send", "receive", "deliver"];
const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f64: Float64Array };

export class Writer {
  chunks: Uint8Array[] = [];
  size = 0;
  add(type: keyof typeof ARRAYS, values: number[]): { at: number; length: number; type: string } {
    const array = new ARRAYS[type](values);
    const bytes = new Uint8Array(Math.ceil(array.byteLength / 8) * 8);
    bytes.set(new Uint8Array(array.buffer));
    const at = this.size;
    this.chunks.push(bytes);
    this.size += bytes.length;
    return { at, length: values.length, type };
  }
}

export function executionHeader(tiny: TinyExecution, writer: Writer): Record<string, unknown> {
  const { events } = tiny;
  const processes = tiny.processes ?? [...new Set(events.map((event) => event.p))];
  const strings: string[] = [];
  const known = new Map<string, number>();
  const stringIndex = (value: string | undefined): number => {
    if (value === undefined) return -1;
    if (!known.has(value)) {
      known.set(value, strings.length);
      strings.push(value);
    }
    return known.get(value)!;
  };
  const seen = new Map<string, number>();
  const seq = events.map(({ p }) => {
    seen.set(p, (seen.get(p) ?? 0) + 1);
    return seen.get(p)!;
  });
  const causeBegin = [0];
  const cause: number[] = [];
  const causeKind: number[] = [];
  for (const event of events) {
    for (const from of event.causes ?? []) cause.push(from) && causeKind.push(0);
    for (const from of event.parents ?? []) cause.push(from) && causeKind.push(1);
    causeBegin.push(cause.length);
  }
  return {
    name: tiny.name ?? "tiny",
    processes,
    events: events.length,
    total: events.length,
    leftOut: tiny.leftOut ?? null,
    timeUnit: tiny.timeUnit ?? null,
    columns: {
      process: writer.add("u16", events.map(({ p }) => processes.indexOf(p))),
      seq: writer.add("f64", seq),
      kind: writer.add("u8", events.map(({ kind }) => KINDS.indexOf(kind ?? "local"))),
      control: writer.add("u8", events.map(({ control }) => (control ? 1 : 0))),
      block: writer.add("u32", events.map(({ block }) => block ?? 1)),
      time: writer.add("f64", events.map(({ time }) => time ?? NaN)),
      position: writer.add("f64", events.map((_, at) => at + 1)),
      message: writer.add("i32", events.map(({ message }) => stringIndex(message))),
      id: writer.add("i32", events.map(({ id }) => stringIndex(id))),
      text: writer.add("i32", events.map(({ text }) => stringIndex(text))),
      group: writer.add("i32", events.map(({ group }) => stringIndex(group))),
      fault: writer.add("i32", events.map(({ fault }) => stringIndex(fault))),
      causeBegin: writer.add("u32", causeBegin),
      cause: writer.add("u32", cause),
      causeKind: writer.add("u8", causeKind),
    },
    strings,
    violations: tiny.violations ?? [],
    verdict: tiny.verdict ?? { status: "valid", word: "Valid", tone: "good", sentence: "Every process delivers in causal order." },
  };
}

export function encode(header: Record<string, unknown>, writer: Writer): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(header));
  const start = Math.ceil((4 + json.length) / 8) * 8;
  const bytes = new Uint8Array(start + writer.size);
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  let at = start;
  for (const chunk of writer.chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

export function encodePage(
  kind: string,
  executions: TinyExecution[],
  report: unknown = null,
  title = "A tiny execution",
): Uint8Array {
  const writer = new Writer();
  const headers = executions.map((tiny) => executionHeader(tiny, writer));
  return encode({ version: 1, kind, title, executions: headers, report }, writer);
}
