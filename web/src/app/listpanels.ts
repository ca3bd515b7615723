// The lists of the side panel: results, violations, inversions, differences, processes.

import { nameOf } from "../model/model";
import { count, figure, visible } from "../model/plaintext";
import { button, element } from "../ui/dom";
import { shapeIcon } from "../ui/shapes";
import type { App } from "./app";
import { eventLink } from "./eventpanel";

const WINDOW = 200;

/** Only a part of a long list is made, around the current place. */
function windowed(total: number, current: number, make: (at: number) => Node): Node[] {
  const first = Math.max(0, Math.min(current < 0 ? 0 : current - WINDOW / 2, total - WINDOW));
  const last = Math.min(total, first + WINDOW);
  const items: Node[] = [];
  for (let at = first; at < last; at++)
    items.push(element("li", at === current ? { "aria-current": "true" } : {}, make(at)));
  const note = (sentence: string) => element("p", { class: "quiet" }, sentence);
  return [
    ...(first > 0 ? [note(`${figure(first)} before these`)] : []),
    element("ol", { class: "links", start: first + 1 }, ...items),
    ...(last < total ? [note(`${figure(total - last)} after these`)] : []),
  ];
}

const heading = (text: string) => element("h2", {}, text);
const quiet = (text: string) => element("p", { class: "quiet" }, text);

export function resultsPanel(app: App): Node[] {
  const { finding } = app;
  if (finding.error) return [heading("Results"), element("p", { class: "note wrong" }, finding.error)];
  if (!finding.mask) return [heading("Results"), quiet("Nothing is searched for. Press / to go to the search box.")];
  const hidden = finding.list.filter((event) => !app.scene.runs.marked[event]).length;
  return [
    heading(`${count(finding.list.length, "event")} found`),
    ...(hidden > 0 ? [quiet(`${count(hidden, "of them is", "of them are")} not shown now.`)] : []),
    ...windowed(finding.list.length, finding.at, (at) => eventLink(app, finding.list[at])),
  ];
}

export function violationsPanel(app: App): Node[] {
  const { violations } = app.model;
  if (violations.length === 0) return [heading(app.model.found === null ? "Too early: not judged" : "Too early: none here"), quiet(visible(app.model.verdict.sentence, 2000))];
  const current = app.violation ? violations.indexOf(app.violation) : -1;
  return [
    heading(count(violations.length, "violation")),
    quiet("n and p step through them."),
    ...windowed(violations.length, current, (at) =>
      element(
        "button",
        { type: "button", class: "sentence", onclick: () => app.stepTo(at, "violation", []) },
        shapeIcon("violation", app.scene.palette.violation),
        element("span", {}, visible(violations[at].sentence)),
      ),
    ),
  ];
}

export function orderPanel(app: App): Node[] {
  const { layout } = app.scene;
  const { model } = app;
  const inTime = app.state.order === "time" || app.state.x === "time";
  if (!inTime)
    return [
      heading("Order"),
      element("p", {}, "Events stand in causal order: every cause is left of its effects."),
      element("div", { class: "buttons" }, button("Order by time", "Place events by time and mark the inversions", () => app.set({ x: "position", order: "time" }), { "data-keep": "by-time" })),
    ];
  const steps = app.steps();
  const current = steps.name === "inversion" ? app.stepAt : -1;
  return [
    heading(count(layout.inversions.length, "inversion")),
    element("p", {}, layout.inversions.length === 0
      ? "By time, no arrow goes backwards."
      : "By time, these effects stand before their causes: their arrows go backwards."),
    ...(layout.inversions.length > 0 ? [quiet("n and p step through them.")] : []),
    ...windowed(layout.inversions.length, current, (at) => {
      const edge = layout.inversions[at];
      return element(
        "button",
        { type: "button", class: "sentence", onclick: () => app.stepTo(at, "inversion", Array.from(layout.inversions, (each) => model.edgeTo[each])) },
        element("span", { class: "sample backwards" }),
        element("span", {}, `${visible(nameOf(model, model.edgeTo[edge]), 40)} before its cause ${visible(nameOf(model, model.cause[edge]), 40)}`),
      );
    }),
    ...(layout.stepsBack.length > 0
      ? [
          element("p", {}, `Within processes, ${count(layout.stepsBack.length, "event stands", "events stand")} before the event that came before ${layout.stepsBack.length === 1 ? "it" : "them"}.`),
          ...windowed(layout.stepsBack.length, -1, (at) => eventLink(app, layout.stepsBack[at])),
        ]
      : []),
  ];
}

export function differencesPanel(app: App): Node[] {
  const { comparison, model } = app;
  if (!comparison) return [];
  const { differences } = comparison;
  const amount = (kind: string) => differences.filter((difference) => difference.kind === kind).length;
  const [first, second] = comparison.names.map((name) => visible(name, 60));
  return [
    heading(count(differences.length, "difference")),
    element(
      "dl",
      { class: "fields" },
      element("dt", {}, "only in first"), element("dd", {}, `${figure(amount("only in first"))} (${first})`),
      element("dt", {}, "only in second"), element("dd", {}, `${figure(amount("only in second"))} (${second})`),
      element("dt", {}, "moved"), element("dd", {}, figure(amount("moved"))),
      element("dt", {}, "changed"), element("dd", {}, figure(amount("changed"))),
    ),
    quiet("n and p step through them."),
    ...windowed(differences.length, app.stepAt, (at) => {
      const { kind, event } = differences[at];
      const { palette } = app.scene;
      return element(
        "button",
        { type: "button", class: "sentence", onclick: () => app.stepTo(at) },
        kind === "moved" || kind === "changed" ? shapeIcon(kind, palette.moved) : shapeIcon("triangle", palette.onlyHere),
        element("span", {}, `${visible(nameOf(model, event), 60)}: ${kind}`),
      );
    }),
  ];
}

export function processesPanel(app: App, filter: string, setFilter: (text: string) => void): Node[] {
  const { model, comparison } = app;
  // Both executions of a comparison have the same processes, which are hidden together.
  const shownOnce = comparison ? comparison.partSizes[0] : model.processes.length;
  const twinsOf = (process: number) => (comparison ? [process, process + shownOnce] : [process]);
  const hidden = new Set(app.state.hidden);
  const wanted = filter.toLowerCase();
  const matching: number[] = [];
  for (let process = 0; process < shownOnce; process++)
    if (model.processes[process].toLowerCase().includes(wanted)) matching.push(process);
  const change = (processes: number[], hide: boolean) => {
    const next = new Set(app.state.hidden);
    for (const process of processes.flatMap(twinsOf)) hide ? next.add(process) : next.delete(process);
    app.set({ hidden: [...next].sort((a, b) => a - b) });
  };
  const onlyMatching = () => {
    const kept = new Set(matching.flatMap(twinsOf));
    app.set({ hidden: model.processes.map((_, at) => at).filter((at) => !kept.has(at)) });
  };
  const box = (process: number) => {
    const check = element("input", { type: "checkbox", "data-keep": `process-${process}`, onchange: () => change([process], check.checked === false) });
    check.checked = !hidden.has(process);
    const events = twinsOf(process).reduce((sum, each) => sum + model.laneBegin[each + 1] - model.laneBegin[each], 0);
    return element("label", { class: "check" }, check, element("span", { class: "link-name" }, visible(model.processes[process], 60)), element("span", { class: "link-more" }, figure(events)));
  };
  const filterBox = element("input", {
    type: "search", placeholder: "Filter by name", "aria-label": "Filter processes by name", "data-keep": "process-filter", value: filter,
    oninput: (event: Event) => setFilter((event.target as HTMLInputElement).value),
  });
  const hiddenCount = comparison ? hidden.size / 2 : hidden.size;
  return [
    heading(`${count(shownOnce, "process", "processes")}, ${figure(hiddenCount)} hidden`),
    filterBox,
    element(
      "div",
      { class: "buttons" },
      button("Show", "Show these processes", () => change(matching, false), { "data-keep": "show-all" }),
      button("Hide", "Hide these processes", () => change(matching, true), { "data-keep": "hide-all" }),
      button("Only these", "Hide all processes but these", onlyMatching, { "data-keep": "only-these" }),
    ),
    element("ul", { class: "links" }, ...matching.slice(0, 300).map((process) => element("li", {}, box(process)))),
    ...(matching.length > 300 ? [quiet(`… and ${figure(matching.length - 300)} more: filter by name`)] : []),
  ];
}
