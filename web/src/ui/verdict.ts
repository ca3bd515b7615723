// Verdicts: a sign, a word and a colour, in this order of importance.

import type { Verdict } from "../model/types";
import { figure, visible } from "../model/plaintext";
import { element, svgElement } from "./dom";

const SIGNS: Record<Verdict["tone"], string> = {
  good: "M-.55 0L-.15 .42L.6 -.42",
  bad: "M-.42 -.42L.42 .42M.42 -.42L-.42 .42",
  open: "M-.3 -.25C-.3 -.75 .45 -.7 .35 -.2C.3 .05 0 .05 0 .3M0 .55V.58",
  plain: "M-.45 0H.45",
};

export const verdictWord = (verdict: Verdict): string => visible(verdict.word, 30);

/** A number of violations as a reader takes it: 0 only where it was judged. */
export function violationsLabel(shown: number, found: number | null): string {
  if (found === null) return "Too early: not judged";
  return shown < found ? `Too early ${figure(shown)} of ${figure(found)}` : `Too early ${figure(found)}`;
}

export function verdictIcon({ tone }: Verdict, size: number): SVGElement {
  return svgElement(
    "svg",
    { width: size, height: size, viewBox: "-1.1 -1.1 2.2 2.2", "aria-hidden": "true", class: `verdict-icon tone-${tone}` },
    svgElement("circle", { r: 1, class: "verdict-ground" }),
    svgElement("path", { d: SIGNS[tone], class: "verdict-sign" }),
  );
}

export function verdictChip(verdict: Verdict, press: () => void): HTMLElement {
  return element(
    "button",
    { type: "button", class: `verdict-chip tone-${verdict.tone}`, title: visible(verdict.sentence, 300), onclick: press },
    verdictIcon(verdict, 18),
    verdictWord(verdict),
  );
}

export function verdictHero(verdict: Verdict): HTMLElement {
  return element(
    "section",
    { class: `verdict-hero tone-${verdict.tone}`, "aria-label": "Verdict" },
    verdictIcon(verdict, 56),
    element("div", {}, element("p", { class: "verdict-word" }, verdictWord(verdict)), element("p", { class: "verdict-sentence" }, visible(verdict.sentence, 4000))),
  );
}
