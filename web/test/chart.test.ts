import { beforeAll, describe, expect, it, vi } from "vitest";
import type { Figure } from "../src/model/types";
import { chart } from "../src/report/chart";
import { axisLabels, compact, cutToWidth, numberThatFits, placeBelow, textWidth } from "../src/report/chartlabels";

/** As much of an element as a chart needs. */
class Made {
  readonly attributes: Record<string, string> = {};
  readonly children: (Made | string)[] = [];
  constructor(readonly tag: string) {}
  setAttribute(name: string, value: string): void {
    this.attributes[name] = value;
  }
  append(child: Made | string): void {
    this.children.push(child);
  }
}

beforeAll(() => {
  vi.stubGlobal("document", { createElementNS: (_: string, tag: string) => new Made(tag) });
});

const all = (made: Made): Made[] => [made, ...made.children.flatMap((child) => (child instanceof Made ? all(child) : []))];
const figureOf = (more: Partial<Figure>): Figure =>
  ({ name: "f", title: "t", note: "", kind: "bars", x: ["a", "b"], y: [1, 2], rows: [], values: [], xLabel: "x", yLabel: "y", ...more });
const drawn = (more: Partial<Figure>) => {
  const parts = all(chart(figureOf(more)) as unknown as Made);
  const texts = parts.filter(({ tag }) => tag === "text").map((made) => ({
    text: made.children[0] as string,
    title: (made.children[1] as Made | undefined)?.children[0] ?? null,
    x: Number(made.attributes.x),
    anchor: made.attributes["text-anchor"],
    turned: "transform" in made.attributes,
  }));
  for (const made of parts) for (const value of Object.values(made.attributes)) expect(value).not.toMatch(/NaN|Infinity/);
  for (const { text, x, anchor, turned } of texts) {
    if (turned) continue;
    const width = textWidth(text);
    const begin = anchor === "end" ? x - width : x - width / 2;
    expect(begin).toBeGreaterThanOrEqual(0);
    expect(begin + width).toBeLessThanOrEqual(720);
  }
  return texts;
};

describe("labels of charts", () => {
  it("are compact where they are long", () => {
    expect(compact(1_200_000_000, 2e8)).toBe("1.2 G");
    expect(compact(-2_500, 500)).toBe("-2.5 k");
    expect(axisLabels([0, 500, 1000], 500)).toEqual(["0", "500", "1,000"]);
    expect(axisLabels([0, 5e8, 1e9], 5e8)).toEqual(["0", "500 M", "1 G"]);
    expect(numberThatFits(123456, "123,456", 100)).toBe("123,456");
    expect(numberThatFits(123456, "123,456", 45)).toBe("123 k");
    expect(numberThatFits(123456, "123,456", 5)).toBe("");
  });
  it("are cut to a width", () => {
    expect(cutToWidth("short", 100)).toBe("short");
    expect(cutToWidth("a very long name indeed", 60)).toBe("a very l…");
    expect(textWidth(cutToWidth("日本語".repeat(40), 90))).toBeLessThanOrEqual(90);
  });
  it("stay within the picture and apart", () => {
    const placed = placeBelow(["first and long", "second", "last and long"], (at) => at * 100, 100, 200);
    for (const { x, text } of placed) expect(x - textWidth(text) / 2 >= 0 && x + textWidth(text) / 2 <= 200).toBe(true);
  });
});

describe("charts", () => {
  it("have room for large numbers", () => {
    expect(drawn({ y: [3e9, 1e9] }).map(({ text }) => text)).toContain("3 G");
    drawn({ y: [1.7e308, -1.7e308] });
    drawn({ kind: "steps", x: [1.7e18, 1.7e18 + 512], y: [1e15, 2e15] });
    drawn({ kind: "steps", x: [-1.7e308, 1.7e308] });
    drawn({ kind: "steps", x: [2 ** 60, 2 ** 60] });
    drawn({ y: [NaN, NaN] });
    drawn({ x: [], y: [] });
  });
  it("subtract what large x share", () => {
    const texts = drawn({ kind: "steps", x: [1369438082, 1369438099], xLabel: "time" }).map(({ text }) => text);
    expect(texts).toContain("time − 1,369,438,000");
    expect(texts).toContain("+90");
  });
  it("cut long names and keep the whole as title", () => {
    const long = "a name that is far too long for any bar of a chart";
    const found = drawn({ x: [long, "b", `${long} 2`], y: [1, 2, 3] }).filter(({ title }) => title !== null);
    expect(found[0].text).toMatch(/…$/);
    expect(found[0].title).toBe(long);
    const rows = drawn({ kind: "heat", rows: [long, "r"], x: ["c1", "c2"], y: [], values: [[1e12, 2], [3, NaN]], yLabel: long });
    expect(rows.find(({ title, turned }) => title === long && !turned)?.text).toMatch(/^a name that .*…$/);
  });
});
