import { describe, expect, it } from "vitest";
import { alignedX, compare, longestIncreasing } from "../src/model/compare";
import { commonSubsequence } from "../src/model/twins";
import { readPage } from "../src/model/payload";
import { encodePage, type TinyEvent } from "./encode";

const comparisonOf = (first: TinyEvent[], second: TinyEvent[]) => {
  const { executions } = readPage(encodePage("compare", [{ events: first, name: "one" }, { events: second, name: "two" }]));
  return compare(executions[0], executions[1]);
};

describe("comparison", () => {
  it("finds what is only in one and what moved", () => {
    const result = comparisonOf(
      [{ p: "a", id: "1" }, { p: "a", id: "2" }, { p: "a", id: "3" }, { p: "b", id: "4" }],
      [{ p: "a", id: "2" }, { p: "a", id: "3" }, { p: "a", id: "1" }, { p: "c", id: "4" }],
    );
    expect(result.model.processes).toEqual(["a", "b", "c", "a", "b", "c"]);
    expect([...result.twin]).toEqual([6, 4, 5, -1, 1, 2, 0, -1]);
    expect([...result.mark]).toEqual([2, 0, 0, 1, 0, 0, 2, 1]);
    expect(result.differences).toEqual([
      { kind: "moved", event: 0, other: 6 },
      { kind: "only in first", event: 3, other: -1 },
      { kind: "only in second", event: 7, other: -1 },
    ]);
    expect([...alignedX(result, new Uint8Array(8).fill(1))]).toEqual([0, 1, 2, 3, 1, 2, 3, 4]);
  });
  it("matches without ids by process, kind, message and text", () => {
    const result = comparisonOf([{ p: "a", text: "x" }, { p: "a", text: "y" }], [{ p: "a", text: "x" }, { p: "a", text: "z" }]);
    expect([...result.twin]).toEqual([2, -1, 0, -1]);
  });
  it("takes one inserted event for one difference", () => {
    const events: TinyEvent[] = Array.from({ length: 30 }, (_, at) => ({ p: "a", text: `t${at % 4}` }));
    const inserted = [...events.slice(0, 10), { p: "a", text: "new" }, ...events.slice(10)];
    expect(comparisonOf(events, inserted).differences).toEqual([{ kind: "only in second", event: 40, other: -1 }]);
    const twice = [{ p: "a", text: "first" }, ...inserted, { p: "a", text: "last" }];
    expect(comparisonOf(twice, events).differences.map(({ event }) => event)).toEqual([0, 11, 32]);
  });
  it("tells what changed in an event that is the same by id", () => {
    const same: TinyEvent = { p: "a", id: "0" };
    const result = comparisonOf(
      [same, { p: "a", id: "1", text: "x" }, { p: "a", id: "2" }, { p: "a", id: "3", group: "g" }, { p: "a", id: "4" }],
      [same, { p: "a", id: "1", text: "y" }, { p: "a", id: "2", kind: "send" }, { p: "a", id: "3", group: "h" }, { p: "a", id: "4", control: true }],
    );
    expect(result.differences).toEqual([1, 2, 3, 4].map((event) => ({ kind: "changed", event, other: event + 5 })));
    expect([...result.mark]).toEqual([0, 3, 3, 3, 3, 0, 3, 3, 3, 3]);
  });
  it("tells what changed in an event that is the same by place", () => {
    const result = comparisonOf([{ p: "a", text: "x", control: true }], [{ p: "a", text: "x" }]);
    expect(result.differences).toEqual([{ kind: "changed", event: 0, other: 1 }]);
  });
  it("lists an event that moved and changed twice", () => {
    const result = comparisonOf([{ p: "a", id: "1" }, { p: "a", id: "2" }, { p: "a", id: "3" }],
      [{ p: "a", id: "2" }, { p: "a", id: "3" }, { p: "a", id: "1", text: "x" }]);
    expect(result.differences.map(({ kind, event }) => [kind, event])).toEqual([["moved", 0], ["changed", 0]]);
  });
  it("finds deliveries in another order", () => {
    const deliver = (message: string): TinyEvent => ({ p: "a", kind: "deliver", message });
    const result = comparisonOf(["m", "n", "o"].map(deliver), ["n", "o", "m"].map(deliver));
    expect(result.differences).toEqual([{ kind: "moved", event: 0, other: 5 }]);
  });
  it("goes by number where a process has too many events", () => {
    const many = (begin: string, end: string): TinyEvent[] =>
      [begin, ...Array.from({ length: 5100 }, (_, at) => `t${at}`), end].map((text) => ({ p: "a", text }));
    expect(comparisonOf(many("a", "b"), many("c", "d")).differences).toHaveLength(4);
  });
  it("finds a longest common subsequence", () => {
    expect(commonSubsequence([1, 2, 3, 4], [2, 4, 3, 4])).toEqual([[1, 0], [2, 2], [3, 3]]);
    expect(commonSubsequence([], [1])).toEqual([]);
  });
  it("shifts causes of the second execution", () => {
    const events: TinyEvent[] = [{ p: "a", kind: "send", message: "m" }, { p: "b", kind: "receive", message: "m", causes: [0] }];
    const { model } = comparisonOf(events, events);
    expect([...model.cause]).toEqual([0, 2]);
    expect([...model.edgeTo]).toEqual([1, 3]);
    expect([...model.part]).toEqual([0, 0, 1, 1]);
  });
  it("finds a longest increasing subsequence", () => {
    expect(longestIncreasing([3, 1, 2, 5, 4])).toEqual([1, 2, 4]);
    expect(longestIncreasing([])).toEqual([]);
  });
});
