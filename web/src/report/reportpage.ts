// A report: the verdict first, then facts, proofs with diagrams, and figures.

import type { Api } from "../app/api";
import { DARK, LIGHT } from "../draw/palette";
import { count, visible } from "../model/plaintext";
import type { Theme } from "../model/state";
import type { Figure, Page, Proof, Report } from "../model/types";
import { button, element, fileName, offerDownload, replace } from "../ui/dom";
import { verdictHero } from "../ui/verdict";
import { chart } from "./chart";
import { proofDiagram } from "./excerpt";
import { csvOf, tableElement } from "./table";

const DIAGRAM_WIDTH = 860;
const MOST_PROOFS = 100;

export function showReport(page: Page, root: HTMLElement): Api {
  const report = page.report as Report;
  const look = new Look();
  const diagrams = report.proofs.slice(0, MOST_PROOFS).map((proof, at) => diagramOf(page, proof, at, look));
  root.append(
    element(
      "header",
      { class: "header" },
      element("div", { class: "titles" }, element("h1", {}, visible(page.title, 200))),
      element("div", { class: "group actions" }, button("Print", "Print this report", () => window.print()), look.button),
    ),
    element(
      "main",
      { class: "report-main" },
      verdictHero(report.verdict),
      facts(report),
      proofs(report, diagrams),
      ...report.figures.map(figureSection),
    ),
  );
  return reportApi(page, look, diagrams);
}

/** The theme of a report, kept in the address. */
class Look {
  theme: Theme = "auto";
  readonly button = button("Theme", "Colours: as the system has them, light or dark", () => this.next());
  private readonly redraws: (() => void)[] = [];
  private printing = false;

  constructor() {
    const written = /(?:^|[#&])theme=(auto|light|dark)(?:&|$)/.exec(location.hash);
    if (written) this.theme = written[1] as Theme;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.apply());
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    this.apply();
  }

  private print(printing: boolean): void {
    this.printing = printing;
    this.apply();
  }

  dark(): boolean {
    if (this.printing) return false;
    return this.theme === "dark" || (this.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  }

  onRedraw(redraw: () => void): void {
    this.redraws.push(redraw);
    redraw();
  }

  private next(): void {
    this.theme = ({ auto: "light", light: "dark", dark: "auto" } as const)[this.theme];
    try {
      history.replaceState(null, "", this.theme === "auto" ? "#" : `#theme=${this.theme}`);
    } catch {
      // Some embeddings forbid it; the theme works without.
    }
    this.apply();
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.dark() ? "dark" : "light";
    this.button.textContent = `Theme: ${this.theme}`;
    for (const redraw of this.redraws) redraw();
  }
}

function facts(report: Report): HTMLElement | null {
  if (report.facts.length === 0) return null;
  const list = element("dl", { class: "facts" });
  for (const [label, value] of report.facts)
    list.append(element("div", {}, element("dt", {}, visible(label, 120)), element("dd", {}, visible(value, 600))));
  return element("section", { "aria-label": "Facts" }, list);
}

type Diagram = { svg: () => string; picture: HTMLImageElement };

function diagramOf(page: Page, proof: Proof, at: number, look: Look): Diagram {
  const picture = element("img", { class: "diagram", alt: `Diagram: ${visible(proof.sentence)}`, width: DIAGRAM_WIDTH });
  const svg = () => proofDiagram(page.executions[proof.execution], proof, look.dark() ? DARK : LIGHT, DIAGRAM_WIDTH, `proof${at}`);
  look.onRedraw(() => (picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg())}`));
  return { svg, picture };
}

function proofs(report: Report, diagrams: Diagram[]): HTMLElement | null {
  if (report.proofs.length === 0) return null;
  return element(
    "section",
    {},
    element("h2", {}, count(report.proofs.length, "proof")),
    element(
      "ol",
      { class: "proofs" },
      ...diagrams.map(({ picture }, at) =>
        element("li", {}, element("p", { class: "proof-sentence" }, visible(report.proofs[at].sentence, 2000)), element("div", { class: "diagram-frame", tabindex: 0, role: "region", "aria-label": "Diagram" }, picture)),
      ),
    ),
    report.proofs.length > MOST_PROOFS ? element("p", { class: "quiet" }, `… and ${count(report.proofs.length - MOST_PROOFS, "proof")} more`) : null,
  );
}

function figureSection(figure: Figure, at: number): HTMLElement {
  const frame = element("div", { class: "figure-frame", id: `figure-${at}` }, chart(figure));
  let asTable = false;
  const toggle = button("Show as table", "The same numbers as a table", () => {
    asTable = !asTable;
    toggle.textContent = asTable ? "Show as chart" : "Show as table";
    toggle.setAttribute("aria-pressed", String(asTable));
    replace(frame, asTable ? tableElement(figure) : chart(figure));
  }, { "aria-pressed": "false", "aria-controls": `figure-${at}` });
  const save = button("Download data (CSV)", "Save the numbers of this figure", () =>
    offerDownload(`${fileName(figure.name)}.csv`, new Blob([csvOf(figure)], { type: "text/csv" })));
  return element(
    "figure",
    { class: "figure" },
    element("figcaption", {}, element("h2", {}, visible(figure.title, 200)), figure.note ? element("p", {}, visible(figure.note, 1000)) : null),
    frame,
    element("div", { class: "buttons" }, toggle, save),
  );
}

function reportApi(page: Page, look: Look, diagrams: Diagram[]): Api {
  return {
    kind: page.kind,
    state: () => ({ theme: look.theme }),
    shown: () => [],
    geometry: () => ({ events: [], arrows: [], dashed: [] }),
    past: () => [],
    future: () => [],
    concurrent: () => [],
    differences: () => [],
    frames: () => [],
    frameTimes: () => [],
    resetFrames: () => undefined,
    select: () => undefined,
    svg: () => diagrams[0]?.svg() ?? "",
  };
}
