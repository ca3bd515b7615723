// Verdicts: words and colours come with the data, and what was not judged is never 0.

import { describe, expect, it } from "vitest";
import { readVerdict } from "../src/model/payload";
import { violationsLabel } from "../src/ui/verdict";

describe("verdicts", () => {
  it("shows a number only where it was judged", () => {
    expect(violationsLabel(0, null)).toBe("Too early: not judged");
    expect(violationsLabel(0, 0)).toBe("Too early 0");
    expect(violationsLabel(1, 10)).toBe("Too early 1 of 10");
  });

  it("takes the word and a known tone from the data", () => {
    const verdict = { status: "measured", word: "Measured", tone: "plain", sentence: "3 of 5." };
    expect(readVerdict(verdict)).toEqual(verdict);
    expect(() => readVerdict({ ...verdict, tone: "url(evil)" })).toThrow("damaged");
    expect(() => readVerdict({ ...verdict, word: 5 })).toThrow("damaged");
  });
});
