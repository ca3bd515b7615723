// From the text in the page to a checked Page. Whatever is wrong becomes one clear sentence.

import { columnReader, type ColumnReader } from "./columns";
import { PageError, arrayOf, integer, listOf, record, text, textOrNull } from "./checks";
import { readReport } from "./reportheader";
import { TONES, type Execution, type Page, type Verdict, type Violation } from "./types";

const KINDS = ["view", "compare", "report"] as const;
const EXECUTIONS_OF_KIND = { view: [1, 1], compare: [2, 2], report: [0, Infinity] } as const;

export async function openPayload(base64: string): Promise<Page> {
  const trimmed = base64.trim();
  if (trimmed === "" || trimmed.startsWith("@@")) throw new PageError("This page holds no data: it is the empty template.");
  if (typeof DecompressionStream === "undefined")
    throw new PageError("This browser is too old for this page: it cannot decompress data (DecompressionStream).");
  return readPage(await inflate(decodeBase64(trimmed)));
}

export function decodeBase64(base64: string): Uint8Array<ArrayBuffer> {
  let binary: string;
  try {
    binary = atob(base64);
  } catch {
    throw new PageError("The data of this page is damaged: it is not base64.");
  }
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  try {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new PageError("The data of this page is damaged: it cannot be decompressed.");
  }
}

export function readPage(bytes: Uint8Array): Page {
  if (bytes.byteLength < 4) throw new PageError("The data of this page is damaged: it is too short.");
  const headerLength = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  if (4 + headerLength > bytes.byteLength) throw new PageError("The data of this page is damaged: its header is cut off.");
  const header = parseHeader(bytes.subarray(4, 4 + headerLength));
  if (header.version !== 1)
    throw new PageError(`This page cannot read version ${JSON.stringify(header.version) ?? "?"} of its data, only version 1.`);
  const kind = KINDS.find((known) => known === header.kind);
  if (!kind) throw new PageError("The data of this page is damaged: its kind is not view, compare or report.");
  const dataStart = Math.ceil((4 + headerLength) / 8) * 8;
  // A copy aligned to 8 bytes, so that every column is a view and nothing is copied twice.
  const data = bytes.slice(Math.min(dataStart, bytes.byteLength));
  const executions = arrayOf(header.executions, "executions").map((value, index) =>
    readExecution(record(value, `execution ${index}`), columnReader(data)),
  );
  const [fewest, most] = EXECUTIONS_OF_KIND[kind];
  if (executions.length < fewest || executions.length > most)
    throw new PageError(`The data of this page is damaged: a ${kind} page with ${executions.length} executions.`);
  const report = header.report == null ? null : readReport(record(header.report, "report"), executions);
  if (kind === "report" && !report) throw new PageError("The data of this page is damaged: a report page without a report.");
  return { kind, title: text(header.title, "title"), executions, report };
}

function parseHeader(bytes: Uint8Array): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new PageError("The data of this page is damaged: its header is not JSON.");
  }
  return record(header, "header");
}

function readExecution(header: Record<string, unknown>, read: ColumnReader): Execution {
  const events = integer(header.events, "events", 0, 2 ** 31 - 1);
  const processes = listOf(header.processes, "processes", text);
  const strings = listOf(header.strings, "strings", text);
  const columns = record(header.columns, "columns");
  const column = <T extends Parameters<ColumnReader>[2][number]>(name: string, length: number, ...types: T[]) =>
    read(columns[name], name, types, length);
  const stringColumn = (name: string): Int32Array => {
    const values = column(name, events, "i32");
    checkRange(values, -1, strings.length - 1, name);
    return values;
  };
  const process = column("process", events, "u8", "u16", "u32");
  checkRange(process, 0, processes.length - 1, "process");
  const kind = column("kind", events, "u8");
  checkRange(kind, 0, 3, "kind");
  const position = column("position", events, "f64");
  for (let event = 0; event < events; event++)
    if (!Number.isFinite(position[event]) || (event > 0 && position[event] < position[event - 1]))
      throw new PageError(`The data of this page is damaged: event ${event} is not in order of position.`);
  const causeBegin = column("causeBegin", events + 1, "u32");
  const cause = column("cause", causeBegin[events], "u32");
  const causeKind = column("causeKind", cause.length, "u8");
  checkRange(causeKind, 0, 1, "causeKind");
  checkCauses(causeBegin, cause, events);
  return {
    name: text(header.name, "name"),
    processes,
    strings,
    events,
    total: integer(header.total, "total", 0, Number.MAX_SAFE_INTEGER),
    leftOut: textOrNull(header.leftOut, "leftOut"),
    timeUnit: textOrNull(header.timeUnit, "timeUnit"),
    process,
    seq: column("seq", events, "f64"),
    kind,
    control: column("control", events, "u8"),
    block: column("block", events, "u32"),
    time: column("time", events, "f64"),
    position,
    message: stringColumn("message"),
    id: stringColumn("id"),
    text: stringColumn("text"),
    group: stringColumn("group"),
    fault: stringColumn("fault"),
    causeBegin,
    cause,
    causeKind,
    violations: listOf(header.violations ?? [], "violations", (value, name) => readViolation(record(value, name), events)),
    found: header.found === null || header.found === undefined ? null : integer(header.found, "found", 0, Number.MAX_SAFE_INTEGER),
    verdict: readVerdict(header.verdict),
  };
}

function readViolation(value: Record<string, unknown>, events: number): Violation {
  return {
    delivered: integer(value.delivered, "violation's delivered", 0, events - 1),
    before: integer(value.before ?? -1, "violation's before", -1, events - 1),
    sentence: text(value.sentence, "violation's sentence"),
    chain: listOf(value.chain ?? [], "violation's chain", (event, name) => integer(event, name, 0, events - 1)),
  };
}

export function readVerdict(value: unknown): Verdict {
  const verdict = record(value, "verdict");
  const tone = TONES.find((known) => known === verdict.tone);
  if (!tone) throw new PageError("The data of this page is damaged: the verdict's tone is not one of the known ones.");
  return {
    status: text(verdict.status, "verdict's status"),
    word: text(verdict.word, "verdict's word"),
    tone,
    sentence: text(verdict.sentence, "verdict's sentence"),
  };
}

function checkRange(values: ArrayLike<number>, low: number, high: number, name: string): void {
  for (let at = 0; at < values.length; at++)
    if (values[at] < low || values[at] > high)
      throw new PageError(`The data of this page is damaged: ${name} of event ${at} is ${values[at]}, not ${low} to ${high}.`);
}

function checkCauses(begin: Uint32Array, cause: Uint32Array, events: number): void {
  if (begin[0] !== 0) throw new PageError("The data of this page is damaged: causeBegin does not start at 0.");
  for (let event = 0; event < events; event++) {
    if (begin[event + 1] < begin[event] || begin[event + 1] > cause.length)
      throw new PageError(`The data of this page is damaged: causeBegin goes backwards at event ${event}.`);
    for (let at = begin[event]; at < begin[event + 1]; at++)
      if (cause[at] >= event)
        throw new PageError(`The data of this page is damaged: event ${event} has a cause that is not before it.`);
  }
}
