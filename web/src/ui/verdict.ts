// Verdicts: a sign, a word and a colour, in this order of importance.

import type { Verdict } from "../model/types";
import { visible } from "../model/plaintext";
import { element, svgElement } from "./dom";

const WORDS: Record<string, [string, string]> = {
  valid: ["Valid", "M-.55 0L-.15 .42L.6 -.42"],
  invalid: ["Invalid", "M-.42 -.42L.42 .42M.42 -.42L-.42 .42"],
  unknown: ["Unknown", "M-.3 -.25C-.3 -.75 .45 -.7 .35 -.2C.3 .05 0 .05 0 .3M0 .55V.58"],
  vacuous: ["Vacuous", "M-.45 0H.45"],
  unjudged: ["Not judged", "M-.4 0H-.38M0 0H.02M.4 0H.42"],
};

export const verdictWord = (status: string): string => WORDS[status]?.[0] ?? visible(status, 30);
const styleOf = (status: string): string => (status === "valid" || status === "invalid" ? status : "other");

export function verdictIcon(status: string, size: number): SVGElement {
  return svgElement(
    "svg",
    { width: size, height: size, viewBox: "-1.1 -1.1 2.2 2.2", "aria-hidden": "true", class: `verdict-icon status-${styleOf(status)}` },
    svgElement("circle", { r: 1, class: "verdict-ground" }),
    svgElement("path", { d: (WORDS[status] ?? WORDS.unknown)[1], class: "verdict-sign" }),
  );
}

export function verdictChip(verdict: Verdict, press: () => void): HTMLElement {
  return element(
    "button",
    { type: "button", class: `verdict-chip status-${styleOf(verdict.status)}`, title: visible(verdict.sentence, 300), onclick: press },
    verdictIcon(verdict.status, 18),
    verdictWord(verdict.status),
  );
}

export function verdictHero(verdict: Verdict): HTMLElement {
  return element(
    "section",
    { class: `verdict-hero status-${styleOf(verdict.status)}`, "aria-label": "Verdict" },
    verdictIcon(verdict.status, 56),
    element("div", {}, element("p", { class: "verdict-word" }, verdictWord(verdict.status)), element("p", { class: "verdict-sentence" }, visible(verdict.sentence, 4000))),
  );
}
