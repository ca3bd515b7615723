import { beforeAll, describe, expect, it, vi } from "vitest";
import { App } from "../src/app/app";
import { START } from "../src/model/state";
import { HELD, modelOf } from "./tiny";

beforeAll(() => {
  vi.stubGlobal("matchMedia", () => ({ matches: false }));
});

const violations = [{ delivered: 8, before: 7, sentence: "s", chain: [0, 4] }];
const appOf = () => new App("t", modelOf(HELD, { violations }), null);

describe("the view", () => {
  it("shows the chain of a violation that the address selects", async () => {
    const app = appOf();
    await app.adopt({ ...START, selected: 8 });
    expect(app.violation?.chain).toEqual([0, 4]);
    await app.adopt({ ...START, selected: 3 });
    expect(app.violation).toBe(null);
  });
  it("keeps the stretch when nothing moves", async () => {
    const app = appOf();
    await app.adopt({ ...START, from: 1.5, to: 4.25 });
    app.set({ messages: true });
    app.set({ messages: false });
    expect([app.state.from, app.state.to]).toEqual([1.5, 4.25]);
  });
  it("follows the events where they move", async () => {
    const app = appOf();
    await app.adopt({ ...START, from: 3.5, to: 8.25 });
    app.set({ x: "time" });
    expect(app.state.from).toBeLessThan(4);
    expect(app.state.to).toBeGreaterThan(8);
  });
});
