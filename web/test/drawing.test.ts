import { describe, expect, it } from "vitest";
import { multiples, nameWithOffset, sharedOffset, tickLabel, tickStep } from "../src/draw/ticks";
import { drawBase } from "../src/draw/drawing";
import { LIGHT } from "../src/draw/palette";
import { buildScene, factsOf } from "../src/draw/scene";
import { SvgSurface } from "../src/draw/svgsurface";
import { AXIS_HEIGHT, makeViewport, processesInSight, rowAt, rowMiddle, toPixel, toUnit } from "../src/draw/viewport";
import { START, type ViewState } from "../src/model/state";
import type { Figure } from "../src/model/types";
import { excerptOf } from "../src/report/excerpt";
import { csvOf } from "../src/report/table";
import { HELD, modelOf } from "./tiny";

const wanted = { from: null, to: null, top: 0, messageTop: 0, messages: false, messageCount: 0 };
const sceneOf = (model: ReturnType<typeof modelOf>, state: Partial<ViewState> = {}) =>
  buildScene(factsOf(model, null), { ...START, ...state }, null, LIGHT);
const svgOf = (model: ReturnType<typeof modelOf>, state: Partial<ViewState> = {}) => {
  const scene = sceneOf(model, state);
  const surface = new SvgSurface(600, 300);
  const view = makeViewport({ width: 600, height: 300, gutter: 100 }, scene.layout, scene.state.x, {
    ...wanted, messages: scene.state.messages, messageCount: scene.messages?.messages.length ?? 0,
  });
  drawBase(surface, scene, view);
  return surface.toString("t <1>");
};
const times = (text: string, part: string) => text.split(part).length - 1;

describe("viewport", () => {
  it("maps units to pixels and back", () => {
    const { layout } = sceneOf(modelOf(HELD));
    const view = makeViewport({ width: 600, height: 326, gutter: 100 }, layout, "position", { ...wanted, from: 0, to: 10 });
    expect(toPixel(view, 0)).toBe(100);
    expect(toPixel(view, 10)).toBe(600);
    expect(toUnit(view, 350)).toBe(5);
    expect(view.lanesHeight).toBe(326 - AXIS_HEIGHT);
    expect(rowAt(view, rowMiddle(view, 2))).toBe(2);
  });
  it("chooses round steps for ticks", () => {
    expect(tickStep(100, 1000, 100)).toBe(10);
    expect(tickStep(130, 1000, 100)).toBe(20);
    expect(tickStep(430, 1000, 100)).toBe(50);
    expect(tickStep(0.7, 1000, 100)).toBeCloseTo(0.1);
  });
});

describe("ticks", () => {
  it("ends where floats stand too close to count", () => {
    expect(multiples(2 ** 60, 2 ** 60 + 4096, 1, 20)).toEqual([2 ** 60]);
    expect(multiples(0, 1e9, 1, 20)).toHaveLength(20);
    expect(multiples(-3, 3, 2, 20)).toEqual([-2, 0, 2]);
    expect(multiples(NaN, Infinity, 1, 20)).toEqual([]);
    expect(multiples(-1.7e308, 1.7e308, 1e-300, 20)).toEqual([]);
  });
  it("subtracts what large times share", () => {
    expect(sharedOffset(1369438082, 1369438142)).toBe(1369438000);
    expect(sharedOffset(1.7e18, 1.7e18 + 3e9)).toBe(1.7e18);
    expect(sharedOffset(-2000000050, -2000000001)).toBe(-2000000100);
    expect(sharedOffset(0, 5e9)).toBe(0);
    expect(sharedOffset(10, 20)).toBe(0);
    expect(sharedOffset(-4e307, 4e307)).toBe(0);
    expect(nameWithOffset("time", 1369438000)).toBe("time − 1,369,438,000");
    expect(nameWithOffset("time", 0)).toBe("time");
  });
  it("writes digits as the step asks for", () => {
    expect(tickLabel(0.30000000000000004, 0.1)).toBe("0.3");
    expect(tickLabel(1500, 500)).toBe("1,500");
    expect(tickLabel(4e307, 2e307)).toBe("4e307");
    expect(tickLabel(1.0000000003e18, 1e8)).not.toBe(tickLabel(1.0000000002e18, 1e8));
  });
});

/** Labels of the axis with their places, and the name of the axis. */
const axisOf = (svg: string) =>
  [...svg.matchAll(/<text x="([^"]+)" y="289"[^>]*>([^<]*)<\/text>/g)].map(([, x, label]) => ({ x: Number(x), label }));

describe("the axis of large times", () => {
  const at = (times: number[]) => modelOf(times.map((time) => ({ p: "a", time })));
  it.each([
    ["seconds since 1970", [1369438082, 1369438090.5]],
    ["nanoseconds since 1970", [1.7e18, 1.7e18 + 51200]],
    ["one moment", [1.7e18, 1.7e18]],
    ["the largest numbers", [-1.7e308, 0, 1.7e308]],
    ["tiny times", [1e-20, 3e-20]],
  ])("%s: labels differ and do not overlap, marks are drawn", (_, times) => {
    const svg = svgOf(at(times), { x: "time" });
    const labels = axisOf(svg);
    expect(labels.length).toBeGreaterThan(0);
    expect(new Set(labels.map(({ label }) => label)).size).toBe(labels.length);
    labels.slice(1).forEach(({ x, label }, before) => expect(x - labels[before].x).toBeGreaterThan(label.length * 5.5));
    const marks = [...svg.matchAll(/causet-square" transform="translate\((\S+) /g)].map(([, x]) => Number(x));
    expect(marks).toHaveLength(times.length);
    for (const x of marks) expect(x > 100 && x < 600).toBe(true);
    if (times.at(-1)! - times[0] > 0) expect(Math.max(...marks) - Math.min(...marks)).toBeGreaterThan(200);
    expect(svg).not.toContain("NaN");
    expect(svg).not.toContain("Infinity");
  });
  it("names the offset once", () => {
    const svg = svgOf(at([1369438082, 1369438090.5]), { x: "time" });
    expect(svg).toContain(">time − 1,369,438,080<");
    expect(svg).toContain(">+4<");
  });
  it("draws a stretch that floats cannot divide", () => {
    const { layout, ...scene } = sceneOf(modelOf(HELD), { x: "block" });
    const view = makeViewport({ width: 600, height: 300, gutter: 100 }, layout, "block", { ...wanted, from: 1e17, to: 1e17 + 16 });
    const surface = new SvgSurface(600, 300);
    drawBase(surface, { ...scene, layout }, view);
    expect(surface.toString("t")).not.toContain("NaN");
  });
});

describe("lanes in sight", () => {
  it("are counted", () => {
    const { layout } = sceneOf(modelOf(Array.from({ length: 50 }, (_, at) => ({ p: `p${at}` }))));
    const view = (top: number) => makeViewport({ width: 600, height: 346, gutter: 100 }, layout, "position", { ...wanted, top });
    expect(processesInSight(layout, view(0))).toEqual({ inSight: 10, all: 50 });
    expect(processesInSight(layout, view(0.5))).toEqual({ inSight: 9, all: 50 });
    expect(processesInSight(layout, view(50))).toEqual({ inSight: 10, all: 50 });
  });
});

describe("SVG", () => {
  it("draws each event with the shape of its kind", () => {
    const svg = svgOf(modelOf(HELD));
    expect(times(svg, 'href="#causet-circle"')).toBe(2);
    expect(times(svg, 'href="#causet-ring"')).toBe(3);
    expect(times(svg, 'href="#causet-diamond"')).toBe(3);
    expect(times(svg, 'href="#causet-square"')).toBe(2);
    expect(svg).toContain("<title>t &lt;1&gt;</title>");
  });
  it("marks violations, faults and messages", () => {
    const model = modelOf([...HELD, { p: "b", fault: "kill" }], { violations: [{ delivered: 8, before: -1, sentence: "s", chain: [] }] });
    const svg = svgOf(model, { messages: true });
    expect(times(svg, 'href="#causet-violation"')).toBe(2);
    expect(svg).toContain(">kill</text>");
    expect(svg).toContain("Messages in sight: 2");
  });
  it("escapes names", () => {
    const svg = svgOf(modelOf([{ p: '<script>"&\u202e', kind: "send", message: "</svg>" }]));
    expect(svg).not.toContain("<script>");
    expect(svg).not.toContain("\u202e");
    expect(times(svg, "</svg>")).toBe(1);
  });
  it("draws an execution without events", () => {
    expect(svgOf(modelOf([]))).toContain("<svg");
  });
});

describe("report", () => {
  it("shows the messages of a proof with their sends and receipts", () => {
    const model = modelOf(HELD);
    const proof = { sentence: "", execution: 0, delivered: 8, before: 7 };
    expect(excerptOf(model, proof, null).sort((a, b) => a - b)).toEqual([0, 1, 2, 4, 5, 6, 7, 8]);
  });
  it("writes CSV that no spreadsheet takes for formulas", () => {
    const bars: Figure = { name: "f", title: "", note: "", kind: "bars", x: ["a,b", "=1+1", 'q"'], y: [1, 2.5, NaN], rows: [], values: [], xLabel: "name", yLabel: "ms" };
    expect(csvOf(bars)).toBe('name,ms\r\n"a,b",1\r\n\'=1+1,2.5\r\n"q""",\r\n');
    const heat: Figure = { ...bars, kind: "heat", x: ["to1", "to2"], rows: ["r1"], values: [[3, 4]], yLabel: "from" };
    expect(csvOf(heat)).toBe("from,to1,to2\r\nr1,3,4\r\n");
  });
});
