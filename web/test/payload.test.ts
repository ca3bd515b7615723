import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { openPayload, readPage } from "../src/model/payload";
import { Writer, encode, encodePage, executionHeader } from "./encode";
import { HELD } from "./tiny";

const header = (change: (execution: any, writer: Writer) => void): Uint8Array => {
  const writer = new Writer();
  const execution = executionHeader({ events: HELD }, writer);
  change(execution, writer);
  return encode({ version: 1, kind: "view", title: "t", executions: [execution], report: null }, writer);
};

describe("payload", () => {
  it("reads what was written", () => {
    const page = readPage(encodePage("view", [{ events: HELD, name: "run" }]));
    const [execution] = page.executions;
    expect(page.kind).toBe("view");
    expect(execution.name).toBe("run");
    expect(execution.processes).toEqual(["a", "b", "c"]);
    expect([...execution.process]).toEqual([0, 1, 1, 0, 1, 2, 2, 2, 2, 0]);
    expect([...execution.kind]).toEqual([1, 2, 3, 0, 1, 2, 2, 3, 3, 0]);
    expect([...execution.cause]).toEqual([0, 0, 4, 0, 0, 4]);
    expect([...execution.causeBegin]).toEqual([0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 6]);
    expect(execution.strings).toContain("thinks");
  });

  it("opens base64 of zlib", async () => {
    const base64 = deflateSync(encodePage("view", [{ events: HELD }])).toString("base64");
    expect((await openPayload(`\n${base64}\n`)).executions[0].events).toBe(10);
  });

  it.each([
    ["@@nothing@@", /empty template/],
    ["", /empty template/],
    ["%%%", /not base64/],
    ["AAAA", /decompressed/],
    [deflateSync(Buffer.from([1, 2])).toString("base64"), /too short/],
    [deflateSync(Buffer.from([9, 0, 0, 0, 1])).toString("base64"), /header is cut off/],
    [deflateSync(Buffer.from([1, 0, 0, 0, 65])).toString("base64"), /header is not JSON/],
  ])("says what is wrong with %s", async (text, sentence) => {
    await expect(openPayload(text)).rejects.toThrow(sentence);
  });

  it.each<[string, (execution: any, writer: Writer) => void, RegExp]>([
    ["a column too short", (e) => (e.columns.kind.length = 9), /column kind has 9 values, not 10/],
    ["a column out of bounds", (e) => (e.columns.time.at = 80000), /column time lies outside/],
    ["a column not aligned", (e) => (e.columns.time.at += 4), /column time lies outside/],
    ["a column of a wrong type", (e) => (e.columns.block.type = "f64"), /column block is not of type u32/],
    ["a missing column", (e) => delete e.columns.seq, /column seq is not an object/],
    ["a process that is not there", (e) => e.processes.pop(), /process of event 5 is 2, not 0 to 1/],
    ["a string that is not there", (e) => (e.strings = ["m1"]), /message of event 4 is 1, not -1 to 0/],
    ["an unknown kind", (e, w) => (e.columns.kind = w.add("u8", [9, 0, 0, 0, 0, 0, 0, 0, 0, 0])), /kind of event 0 is 9/],
    ["a cause after its effect", (e, w) => (e.columns.cause = w.add("u32", [5, 0, 4, 0, 0, 4])), /event 1 has a cause/],
    ["positions out of order", (e, w) => (e.columns.position = w.add("f64", [2, 1, 3, 4, 5, 6, 7, 8, 9, 9])), /order of position/],
    ["a violation of no event", (e) => (e.violations = [{ delivered: 10, before: 0, sentence: "", chain: [] }]), /0 to 9/],
    ["strings that are no texts", (e) => (e.strings[0] = 7), /strings\[0\] is not a text/],
  ])("refuses %s", (_, change, sentence) => {
    expect(() => readPage(header(change))).toThrow(sentence);
  });

  it("refuses another version, kind or number of executions", () => {
    expect(() => readPage(encode({ version: 2 }, new Writer()))).toThrow(/version 2/);
    expect(() => readPage(encode({ version: 1, kind: "film" }, new Writer()))).toThrow(/kind/);
    expect(() => readPage(encodePage("compare", [{ events: HELD }]))).toThrow(/compare page with 1 executions/);
    expect(() => readPage(encodePage("report", []))).toThrow(/without a report/);
  });

  it("reads an execution without events", () => {
    expect(readPage(encodePage("view", [{ events: [] }])).executions[0].events).toBe(0);
  });
});
