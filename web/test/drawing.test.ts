import { describe, expect, it } from "vitest";
import { tickStep } from "../src/draw/ticks";
import { drawBase } from "../src/draw/drawing";
import { LIGHT } from "../src/draw/palette";
import { buildScene, factsOf } from "../src/draw/scene";
import { SvgSurface } from "../src/draw/svgsurface";
import { AXIS_HEIGHT, makeViewport, rowAt, rowMiddle, toPixel, toUnit } from "../src/draw/viewport";
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
