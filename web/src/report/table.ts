// The numbers of a figure as a table and as CSV.

import { figure as written, visible } from "../model/plaintext";
import type { Figure } from "../model/types";
import { element } from "../ui/dom";

type Cell = string | number;

export function tableOf(figure: Figure): { head: string[]; rows: Cell[][] } {
  if (figure.kind === "heat")
    return {
      head: [figure.yLabel || "row", ...figure.x.map(String)],
      rows: figure.rows.map((name, at) => [name, ...figure.values[at]]),
    };
  return { head: [figure.xLabel || "x", figure.yLabel || "y"], rows: figure.x.map((x, at) => [x, figure.y[at]]) };
}

/** Texts are quoted; one that a spreadsheet would take for a formula gets an apostrophe in front. */
export function csvOf(figure: Figure): string {
  const { head, rows } = tableOf(figure);
  const cell = (value: Cell): string => {
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
    const harmless = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(harmless) ? `"${harmless.replace(/"/g, '""')}"` : harmless;
  };
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

const MOST_ROWS = 500;

export function tableElement(figure: Figure): HTMLElement {
  const { head, rows } = tableOf(figure);
  const shown = (value: Cell) => (typeof value === "number" ? written(value) : visible(value, 120));
  return element(
    "div",
    { class: "table-frame", tabindex: 0, role: "region", "aria-label": `Table: ${visible(figure.title, 120)}` },
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, visible(name, 60))))),
      element(
        "tbody",
        {},
        ...rows.slice(0, MOST_ROWS).map((row) =>
          element("tr", {}, ...row.map((value, at) => element(at === 0 ? "th" : "td", at === 0 ? { scope: "row" } : {}, shown(value)))),
        ),
      ),
    ),
    rows.length > MOST_ROWS ? element("p", { class: "quiet" }, `… and ${written(rows.length - MOST_ROWS)} rows more: download the data`) : null,
  );
}
