import { describe, expect, it } from "vitest";
import { indexesOf } from "../src/model/cones";
import { parseQuery } from "../src/model/query";
import { testInSlices } from "../src/model/regexworker";
import { search } from "../src/model/search";
import { START, readHash, writeHash, type ViewState } from "../src/model/state";
import { count, figure, visible } from "../src/model/plaintext";
import { HELD, modelOf } from "./tiny";

const model = modelOf([...HELD, { p: "d", kind: "local", text: `${"a".repeat(3000)}z`, group: "g 1", control: true }]);
const found = async (query: string) => indexesOf((await search(model, parseQuery(query), testInSlices))!);

describe("queries", () => {
  it.each([
    ["process=a", [0, 3, 9]],
    ["kind=deliver", [2, 7, 8]],
    ["kind=deliver process!=c", [2]],
    ["message=m2 kind=send", [4]],
    ["text~/^th/", [3]],
    ["text~/TH/i", [3]],
    ["id~/^a#[12]$/", [0, 3]],
    ["id=c#4", [8]],
    ["seq>=4", [8]],
    ["time<1", [0]],
    ["time<=1", [0, 1]],
    ["time=2.5", [9]],
    ["block>7", [8]],
    ["position=3", [2]],
    ['"think"', [3]],
    ["THINK", [3]],
    ['group="g 1"', [10]],
    ["control=yes", [10]],
    ["control!=no", [10]],
    ["text!~/s/ kind=local", [10]],
    ["text~/z/", []], // Only the first 2,000 characters are tried.
    ["", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
  ])("%s", async (query, expected) => {
    expect(await found(query)).toEqual(expected);
  });

  it.each([
    ["colour=red", /no field “colour”; the fields are process, kind/],
    ["text~/(/", /not valid/],
    ["text~abc", /between slashes/],
    ["text~/abc", /not closed by a slash/],
    ['"abc', /quotation mark is not closed/],
    ["seq>=x", /seq is a number/],
    ["kind=cat", /no kind “cat”/],
    ["process>3", /process is a text/],
    ["control=maybe", /yes or no/],
    ["message=", /value is missing/],
  ])("says what is wrong with %s", (query, sentence) => {
    expect(() => parseQuery(query)).toThrow(sentence);
  });

  it("stops when cancelled", async () => {
    expect(await search(model, parseQuery("text~/a/"), testInSlices, () => true)).toBe(null);
  });
});

describe("the address", () => {
  const limits = { events: 20, processes: 9 };
  it("is empty at the start and comes back whole", () => {
    expect(writeHash(START)).toBe("");
    const state: ViewState = {
      x: "time", order: "time", from: -1.5, to: 22, top: 3, messageTop: 2, hidden: [0, 1, 2, 5], control: false,
      find: "text~/a&b=c#/ 50%", only: true, selected: 0, cone: { event: 7, way: "both" }, direct: true, scrub: 4,
      bands: false, collapse: true, messages: true, theme: "dark", tab: "results", panel: false,
    };
    expect(readHash(`#${writeHash(state)}`, limits)).toEqual({ state, complaints: [] });
    expect(writeHash({ ...START, hidden: [0, 1, 2, 5], cone: { event: 7, way: "past" } })).toBe("hidden=0-2,5&cone=past:7");
  });
  it.each(["x=up", "selected=20", "selected=-1", "cone=past", "cone=past:99", "hidden=9", "hidden=3-1", "from=1", "from=2&to=1",
    "colour=red", "find=%E0%A4%A", "control=maybe", "top=", "constructor=1", "to=NaN&from=0", "from=-1.7e308&to=1.7e308", "from=%20&to=1",
    "top=-1", "messageTop=1e300"])("tells of %s and uses the rest", (hash) => {
    const { state, complaints } = readHash(`#${hash}&messages=on`, limits);
    expect(state).toEqual({ ...START, messages: true });
    expect(complaints).toHaveLength(1);
    expect(complaints[0]).toMatch(/^The address has .* that part was not used\.$/);
  });
  it("tells of each bad part", () => {
    expect(readHash("#x=up&from=2&to=1&bands=off", limits).complaints).toEqual([
      "The address has a bad value for “x”, so that part was not used.",
      "The address has a bad value for “from” and “to”, so that part was not used.",
    ]);
  });
  it.each([[1369438082.125, 1369438082.25], [1.7e18, 1.7e18 + 4096], [1, 1 + 2 ** -50], [1.5, 4.25], [-4e307, 4e307]])(
    "keeps the stretch from %d to %d", (from, to) => {
      const { state, complaints } = readHash(writeHash({ ...START, x: "time", from, to }), limits);
      expect(complaints).toEqual([]);
      expect(Math.abs(state.from! - from)).toBeLessThanOrEqual((to - from) * 1e-6);
      expect(Math.abs(state.to! - to)).toBeLessThanOrEqual((to - from) * 1e-6);
    },
  );
  it("writes no more digits than needed", () => {
    expect(writeHash({ ...START, from: 1 / 3, to: 2 })).toBe("from=0.33333333&to=2");
  });
});

describe("text", () => {
  it("escapes what cannot be seen or deceives", () => {
    expect(visible("a\u202eb\u200bc\u0000d\ne\u2066\ufeff\u{e0041}")).toBe("a\\u202eb\\u200bc\\u0000d\\ne\\u2066\\ufeff\\u{e0041}");
    expect(visible("é 日本 🙂 <b>")).toBe("é 日本 🙂 <b>");
    expect(visible("x\ud800y")).toBe("x\\ud800y");
  });
  it("cuts long texts, never within a character", () => {
    expect(visible("abcdef", 3)).toBe("abc…");
    expect(visible("ab🙂cd", 3)).toBe("ab…");
    expect(visible("x".repeat(1_000_000)).length).toBe(401);
  });
  it("writes numbers", () => {
    expect(figure(12345)).toBe("12,345");
    expect(figure(0.1 + 0.2)).toBe("0.3");
    expect(figure(NaN)).toBe("none");
    expect(count(1, "event")).toBe("1 event");
    expect(count(2, "event")).toBe("2 events");
  });
});
