// The part of the header that a report page has.

import { PageError, arrayOf, integer, listOf, number, record, text } from "./checks";
import { readVerdict } from "./payload";
import type { Execution, Figure, Proof, Report } from "./types";

const FIGURE_KINDS = ["bars", "steps", "heat"] as const;

export function readReport(header: Record<string, unknown>, executions: Execution[]): Report {
  return {
    verdict: readVerdict(header.verdict),
    facts: listOf(header.facts ?? [], "facts", readFact),
    proofs: listOf(header.proofs ?? [], "proofs", (value, name) => readProof(record(value, name), executions)),
    figures: listOf(header.figures ?? [], "figures", (value, name) => readFigure(record(value, name), name)),
  };
}

function readFact(value: unknown, name: string): [string, string] {
  const [label, fact] = arrayOf(value, name);
  return [text(label, `${name}'s label`), typeof fact === "number" ? String(fact) : text(fact, `${name}'s value`)];
}

function readProof(value: Record<string, unknown>, executions: Execution[]): Proof {
  const execution = integer(value.execution, "proof's execution", 0, executions.length - 1);
  const last = executions[execution].events - 1;
  return {
    sentence: text(value.sentence, "proof's sentence"),
    execution,
    delivered: integer(value.delivered, "proof's delivered", 0, last),
    before: integer(value.before ?? -1, "proof's before", -1, last),
  };
}

function readFigure(value: Record<string, unknown>, name: string): Figure {
  const kind = FIGURE_KINDS.find((known) => known === value.kind);
  if (!kind) throw new PageError(`The data of this page is damaged: ${name} is not bars, steps or heat.`);
  const figure: Figure = {
    name: text(value.name, `${name}'s name`),
    title: text(value.title, `${name}'s title`),
    note: text(value.note ?? "", `${name}'s note`),
    kind,
    x: listOf(value.x ?? [], `${name}'s x`, (item, at) => (typeof item === "number" ? item : text(item, at))),
    y: kind === "heat" ? [] : listOf(value.y, `${name}'s y`, number),
    rows: kind === "heat" ? listOf(value.rows, `${name}'s rows`, text) : [],
    values: kind === "heat" ? listOf(value.values, `${name}'s values`, (row, at) => listOf(row, at, number)) : [],
    xLabel: text(value.xLabel ?? "", `${name}'s xLabel`),
    yLabel: text(value.yLabel ?? "", `${name}'s yLabel`),
  };
  const sound =
    kind === "heat"
      ? figure.values.length === figure.rows.length && figure.values.every((row) => row.length === figure.x.length)
      : figure.y.length === figure.x.length;
  if (!sound) throw new PageError(`The data of this page is damaged: ${name} has lists of unequal lengths.`);
  return figure;
}
