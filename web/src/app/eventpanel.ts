// Details of the selected event, or the legend when nothing is selected.

import { directCauses, directEffects } from "../model/cones";
import { waitedFor } from "../model/held";
import { faultOf, groupOf, kindOf, messageOf, nameOf, processOf, textOf } from "../model/model";
import { count, figure, visible } from "../model/plaintext";
import type { ConeWay } from "../model/reduce";
import { DELIVER, KIND_NAMES, RECEIVE } from "../model/types";
import { button, element } from "../ui/dom";
import { kindIcon, shapeIcon } from "../ui/shapes";
import type { App } from "./app";
import { toggleCone } from "./keys";

const MOST_LISTED = 200;

export function eventLink(app: App, event: number): HTMLElement {
  const { model } = app;
  const message = messageOf(model, event);
  const hidden = !app.scene.runs.marked[event];
  return element(
    "button",
    { type: "button", class: "link", onclick: () => app.select(event), title: hidden ? "This event is not shown now" : "" },
    kindIcon(model.kind[event], app.scene.palette),
    element("span", { class: "link-name" }, visible(nameOf(model, event), 60)),
    element("span", { class: "link-more" }, [
      KIND_NAMES[model.kind[event]],
      message ? visible(message, 40) : visible(textOf(model, event), 40),
      hidden ? "(hidden)" : "",
    ].filter(Boolean).join(" ")),
  );
}

export function eventList(app: App, title: string, events: number[]): HTMLElement {
  return element(
    "section",
    {},
    element("h3", {}, `${title} (${figure(events.length)})`),
    events.length === 0
      ? element("p", { class: "quiet" }, "none")
      : element("ul", { class: "links" }, ...events.slice(0, MOST_LISTED).map((event) => element("li", {}, eventLink(app, event)))),
    events.length > MOST_LISTED ? element("p", { class: "quiet" }, `… and ${figure(events.length - MOST_LISTED)} more`) : null,
  );
}

export function eventPanel(app: App): Node[] {
  const event = app.state.selected;
  return event < 0 ? legend(app) : details(app, event);
}

function details(app: App, event: number): Node[] {
  const { model } = app;
  const kind = model.kind[event];
  const heading = element("h2", { class: "event-name" }, kindIcon(kind, app.scene.palette, 18), element("span", {}, visible(nameOf(model, event), 80)));
  return [
    heading,
    app.scene.runs.marked[event] ? null : element("p", { class: "note" }, "This event is not shown now."),
    ...violationsOf(app, event),
    fields(app, event),
    heldSentence(app, event),
    coneButtons(app),
    eventList(app, "Direct causes", directCauses(model, event)),
    eventList(app, "Direct effects", directEffects(model, event)),
    twinSection(app, event),
  ].filter((node): node is HTMLElement => node !== null);
}

function violationsOf(app: App, event: number): HTMLElement[] {
  return app.model.violations
    .filter(({ delivered }) => delivered === event)
    .slice(0, 20)
    .map(({ sentence }) => element("p", { class: "note wrong" }, shapeIcon("violation", app.scene.palette.violation), visible(sentence)));
}

function fields(app: App, event: number): HTMLElement {
  const { model } = app;
  const rows: [string, string][] = [
    ["process", processOf(model, event)],
    ["kind", kindOf(model, event) + (model.control[event] ? ", control" : "")],
    ["message", messageOf(model, event)],
    ["text", textOf(model, event)],
    ["group", groupOf(model, event)],
    ["fault", faultOf(model, event)],
    ["seq", figure(model.seq[event])],
    ["position", figure(model.position[event])],
    ["level", figure(model.block[event])],
    ["time", Number.isNaN(model.time[event]) ? "" : `${figure(model.time[event])}${model.timeUnit ? ` ${model.timeUnit}` : ""}`],
  ];
  const run = app.scene.runs.size.get(event);
  if (run) rows.push(["run", `stands for ${count(run, "local event")}, to ${nameOf(model, app.scene.runs.last.get(event) ?? event)}`]);
  const list = element("dl", { class: "fields" });
  for (const [name, value] of rows) if (value !== "") list.append(element("dt", {}, name), element("dd", {}, visible(value)));
  return list;
}

function heldSentence(app: App, event: number): HTMLElement | null {
  const { model } = app;
  const { receipts, deliveries } = app.scene.held;
  const at = model.kind[event] === DELIVER ? deliveries.indexOf(event) : model.kind[event] === RECEIVE ? receipts.indexOf(event) : -1;
  if (at < 0) return null;
  const waited = waitedFor(model, deliveries[at]);
  const names = waited.slice(0, 20).map((delivery) => visible(messageOf(model, delivery), 40));
  const reason = names.length === 0 ? "" : `, waited for ${names.join(", ")}${waited.length > 20 ? ", …" : ""}`;
  return element("p", { class: "note held" }, `held from ${momentOf(app, receipts[at])} to ${momentOf(app, deliveries[at])}${reason}`);
}

function momentOf(app: App, event: number): string {
  const { model } = app;
  const name = visible(nameOf(model, event), 40);
  return app.state.x === "time" && !Number.isNaN(model.time[event]) ? `${name} (time ${figure(model.time[event])})` : `${name} (position ${figure(model.position[event])})`;
}

const CONES: [ConeWay, string, string][] = [
  ["past", "Past", "Show only what may have caused this event (c)"],
  ["future", "Future", "Show only what this event may have caused (f)"],
  ["both", "Both", "Show only its past and its future (b)"],
  ["concurrent", "Concurrent", "Show only what neither caused it nor was caused by it (x)"],
];

function coneButtons(app: App): HTMLElement {
  const { cone, selected, direct } = app.state;
  const ways = CONES.map(([way, label, title]) =>
    button(label, title, () => toggleCone(app, way), { "aria-pressed": String(cone?.way === way && cone.event === selected), "data-keep": `cone-${way}` }),
  );
  const directBox = element("input", { type: "checkbox", "data-keep": "direct", onchange: () => app.set({ direct: !app.state.direct }) });
  directBox.checked = direct;
  const process = app.model.process[selected];
  return element(
    "section",
    {},
    element("h3", {}, "Show only"),
    element("div", { class: "buttons" }, ...ways,
      button("Its process", "Hide all other processes", () => app.set({ hidden: app.model.processes.map((_, at) => at).filter((at) => at !== process) }), { "data-keep": "process" })),
    element("label", { class: "check" }, directBox, "direct causes and effects only"),
  );
}

function twinSection(app: App, event: number): HTMLElement | null {
  if (!app.comparison) return null;
  const twin = app.comparison.twin[event];
  return eventList(app, "In the other execution", twin < 0 ? [] : [twin]);
}

function legend(app: App): Node[] {
  const { palette } = app.scene;
  const meanings: [Node, string][] = [
    [kindIcon(1, palette, 16), "send"],
    [kindIcon(2, palette, 16), "receive"],
    [kindIcon(3, palette, 16), "deliver"],
    [kindIcon(0, palette, 16), "local event"],
    [shapeIcon("violation", palette.violation, 16), "delivered too early: breaks the order"],
  ];
  if (app.comparison)
    meanings.push(
      [shapeIcon("triangle", palette.onlyHere, 16), "only in this execution"],
      [shapeIcon("moved", palette.moved, 16), "in both, in another order at its process"],
      [shapeIcon("changed", palette.moved, 16), "in both, with another kind, text, group or control mark"],
    );
  const line = (className: string) => element("span", { class: `sample ${className}` });
  meanings.push(
    [line("message"), "message"],
    [line("parent"), "explicit cause"],
    [line("through"), "causality through hidden events"],
    [line("backwards"), "effect placed before its cause"],
    [line("held"), "received, not yet delivered: held back"],
  );
  const { verdict } = app.model;
  return [
    app.comparison ? element("h2", {}, "Two executions") : element("h2", {}, "Verdict"),
    app.comparison
      ? element("p", {}, `${count(app.comparison.differences.length, "difference")}; n and p step through them.`)
      : element("p", { class: `note tone-${verdict.tone}` }, visible(verdict.sentence, 2000)),
    element("h3", {}, "How to read this"),
    element("ul", { class: "legend" }, ...meanings.map(([sign, meaning]) => element("li", {}, element("span", { class: "sign" }, sign), meaning))),
    element("p", { class: "quiet" }, "Click an event for its causes and effects. Press ? for all keys."),
  ];
}
