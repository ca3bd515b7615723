import { describe, expect, it } from "vitest";
import { alignedX, compare, longestIncreasing } from "../src/model/compare";
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
  it("matches without ids by process, number, kind, message and text", () => {
    const result = comparisonOf([{ p: "a", text: "x" }, { p: "a", text: "y" }], [{ p: "a", text: "x" }, { p: "a", text: "z" }]);
    expect([...result.twin]).toEqual([2, -1, 0, -1]);
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
