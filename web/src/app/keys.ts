// The keyboard. One table serves both the keys and the list of them in the help.

import { lowerBound } from "../model/layout";
import type { ConeWay } from "../model/reduce";
import type { App } from "./app";
import type { Stage } from "./stage";

export type KeyActions = { focusSearch: () => void; toggleHelp: () => void; closeHelp: () => boolean; openDetails: () => void };

type Key = { keys: string[]; shown: string; does: string; act: (event: KeyboardEvent) => void; onCanvas?: boolean };

export function keyTable(app: App, stage: Stage, actions: KeyActions): Key[] {
  const middle = () => (stage.view.gutter + stage.view.width) / 2;
  const cone = (way: ConeWay) => () => {
    if (app.state.selected >= 0) toggleCone(app, way);
  };
  const panOrMove = (direction: 1 | -1) => (event: KeyboardEvent) =>
    event.shiftKey ? stage.pan(direction * stage.view.width * 0.2) : moveAlong(app, stage, direction);
  return [
    { keys: ["/"], shown: "/", does: "go to the search box", act: actions.focusSearch },
    { keys: ["F3"], shown: "F3, Shift+F3", does: "next or previous result", act: (event) => app.stepFound(event.shiftKey ? -1 : 1) },
    { keys: ["ArrowRight"], shown: "→", does: "next event of the process", act: panOrMove(1), onCanvas: true },
    { keys: ["ArrowLeft"], shown: "←", does: "previous event of the process", act: panOrMove(-1), onCanvas: true },
    { keys: ["ArrowDown", "ArrowUp"], shown: "↑ ↓", does: "nearest event of the neighbouring process", act: (event) => moveAcross(app, event.key === "ArrowDown" ? 1 : -1), onCanvas: true },
    { keys: ["Enter"], shown: "Enter", does: "details of the selected event", act: actions.openDetails, onCanvas: true },
    { keys: ["+", "="], shown: "+", does: "zoom in", act: () => stage.zoom(1.5, anchor(app, stage, middle())) },
    { keys: ["-", "_"], shown: "−", does: "zoom out", act: () => stage.zoom(1 / 1.5, anchor(app, stage, middle())) },
    { keys: ["0"], shown: "0", does: "fit everything", act: () => app.set({ from: null, to: null, top: 0 }) },
    { keys: ["h", "l"], shown: "h l, Shift+← →", does: "pan left or right", act: (event) => stage.pan((event.key === "h" ? -1 : 1) * stage.view.width * 0.2) },
    { keys: ["PageDown", "PageUp"], shown: "Page ↑ ↓", does: "scroll the processes", act: (event) => stage.scrollRows((event.key === "PageDown" ? 1 : -1) * 5), onCanvas: true },
    { keys: ["c"], shown: "c", does: "only the past of the selected event (again: everything)", act: cone("past") },
    { keys: ["f"], shown: "f", does: "only its future", act: cone("future") },
    { keys: ["b"], shown: "b", does: "both, past and future", act: cone("both") },
    { keys: ["x"], shown: "x", does: "only what is concurrent with it", act: cone("concurrent") },
    { keys: ["n"], shown: "n", does: "next violation, inversion or difference", act: () => app.step(1) },
    { keys: ["p"], shown: "p", does: "the previous one", act: () => app.step(-1) },
    { keys: ["m"], shown: "m", does: "message view on or off", act: () => app.set({ messages: !app.state.messages }) },
    { keys: ["[", "]"], shown: "[ ]", does: "scrub one event back or forth", act: (event) => scrubBy(app, event.key === "]" ? 1 : -1) },
    { keys: ["d"], shown: "d", does: "side panel on or off", act: () => app.set({ panel: !app.state.panel }) },
    { keys: ["Escape"], shown: "Esc", does: "clear: help, then scrub point and cone, then selection", act: () => clear(app, actions) },
    { keys: ["?"], shown: "?", does: "this list", act: actions.toggleHelp },
  ];
}

export function listenToKeys(table: Key[], canvas: HTMLElement): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target as HTMLElement;
    const typing = target.matches("input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select");
    if (typing && event.key !== "Escape" && event.key !== "F3") return;
    const key = table.find(({ keys }) => keys.includes(event.key));
    if (!key || (key.onCanvas && target !== canvas && target !== document.body)) return;
    if (typing && event.key === "Escape") {
      canvas.focus();
      return;
    }
    event.preventDefault();
    key.act(event);
  });
}

export function toggleCone(app: App, way: ConeWay): void {
  const { cone, selected } = app.state;
  if (selected < 0) return;
  app.set({ cone: cone?.way === way && cone.event === selected ? null : { way, event: selected } });
}

function anchor(app: App, stage: Stage, otherwise: number): number {
  const x = app.scene.layout.x[app.state.selected];
  const pixel = stage.view.gutter + (x - stage.view.left) * stage.view.scale;
  return pixel > stage.view.gutter && pixel < stage.view.width ? pixel : otherwise;
}

/** The selected event if it is shown, or else the first one in sight. */
function start(app: App, stage: Stage): number | null {
  const { layout } = app.scene;
  if (app.state.selected >= 0 && !Number.isNaN(layout.x[app.state.selected])) return app.state.selected;
  const first = layout.order.find((event) => layout.x[event] >= stage.view.left);
  if (first !== undefined) app.select(first);
  return null;
}

function moveAlong(app: App, stage: Stage, direction: 1 | -1): void {
  const event = start(app, stage);
  if (event === null) return;
  const { layout } = app.scene;
  const row = layout.rowOf[app.model.process[event]];
  const place = layout.rowEvents.subarray(layout.rowBegin[row], layout.rowBegin[row + 1]).indexOf(event) + direction;
  if (place >= 0 && layout.rowBegin[row] + place < layout.rowBegin[row + 1]) app.select(layout.rowEvents[layout.rowBegin[row] + place]);
}

function moveAcross(app: App, direction: 1 | -1): void {
  const { layout } = app.scene;
  const event = app.state.selected >= 0 && !Number.isNaN(layout.x[app.state.selected]) ? app.state.selected : layout.order[0];
  if (event === undefined) return;
  const x = layout.x[event];
  for (let row = layout.rowOf[app.model.process[event]] + direction; row >= 0 && row < layout.rows.length; row += direction) {
    const [begin, end] = [layout.rowBegin[row], layout.rowBegin[row + 1]];
    if (begin === end) continue;
    const right = Math.min(end - 1, lowerBound(layout.rowX, x, begin, end));
    const near = right > begin && x - layout.rowX[right - 1] <= Math.abs(layout.rowX[right] - x) ? right - 1 : right;
    app.select(layout.rowEvents[near]);
    return;
  }
}

export function scrubBy(app: App, direction: 1 | -1): void {
  const { order } = app.scene.layout;
  if (order.length === 0) return;
  const at = app.state.scrub < 0 ? order.length : order.indexOf(app.state.scrub) + direction;
  if (at >= order.length) app.set({ scrub: direction > 0 ? -1 : order[order.length - 1] });
  else app.set({ scrub: order[Math.max(0, at)] });
}

function clear(app: App, actions: KeyActions): void {
  if (actions.closeHelp()) return;
  if (app.state.cone || app.state.scrub >= 0) app.set({ cone: null, scrub: -1 });
  else app.select(-1);
}
