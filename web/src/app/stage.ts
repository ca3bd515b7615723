// The canvases: the drawing below, highlights above. Draws only when something changed, once for each frame.

import { faultOf, kindOf, messageOf, nameOf, processOf, textOf } from "../model/model";
import { lowerBound } from "../model/layout";
import { visible } from "../model/plaintext";
import { CanvasSurface } from "../draw/canvassurface";
import { drawSurroundings, type Drawn } from "../draw/drawing";
import { messageRowMiddle, messageWindow } from "../draw/messagesview";
import { drawOverlay, type Highlights } from "../draw/overlay";
import { Sheet } from "../draw/sheet";
import {
  MESSAGE_ROW, finestSpan, makeViewport, plotWidth, rowAt, rowMiddle, toPixel, toUnit, wholeRange, type Viewport,
} from "../draw/viewport";
import { element } from "../ui/dom";
import type { App, Change } from "./app";
import { FrameLog } from "./frames";

const REACH = 14;

export class Stage {
  readonly root: HTMLElement;
  readonly frames = new FrameLog();
  readonly canvas: HTMLCanvasElement;
  view: Viewport;
  drawn: Drawn = { thinned: "none", bars: false };
  hovered = -1;
  /** Told after each drawing of the base. */
  afterDrawing: () => void = () => undefined;
  private readonly overlay: HTMLCanvasElement;
  private width = 800;
  private height = 400;
  private baseStale = true;
  private overlayStale = true;
  private overlayEmpty = false;
  private readonly sheet = new Sheet();
  private scheduled = false;

  constructor(private readonly app: App) {
    this.canvas = element("canvas", {
      tabindex: 0,
      role: "application",
      "aria-label": "Diagram of the execution. Arrow keys move the selection, question mark lists all keys.",
      "aria-describedby": "said",
    });
    this.overlay = element("canvas", { class: "overlay", "aria-hidden": "true" });
    this.root = element("div", { class: "stage" }, this.canvas, this.overlay);
    this.view = this.viewportFor(this.width, this.height);
    app.reveal = (event) => this.reveal(event);
    app.listen((change) => this.changed(change));
    new ResizeObserver(() => this.resize()).observe(this.root);
  }

  private changed(change: Change): void {
    if (change !== "highlight") {
      this.baseStale = true;
      this.view = this.viewportFor(this.width, this.height);
    }
    this.overlayStale = true;
    this.schedule();
  }

  resize(): void {
    const { width, height } = this.root.getBoundingClientRect();
    if (width < 2 || height < 2) return;
    this.width = Math.floor(width);
    this.height = Math.floor(height);
    this.changed("view");
  }

  viewportFor(width: number, height: number): Viewport {
    const { state, scene } = this.app;
    return makeViewport({ width, height, gutter: this.gutter(width) }, scene.layout, state.x, {
      from: state.from,
      to: state.to,
      top: state.top,
      messageTop: state.messageTop,
      messages: state.messages,
      messageCount: scene.messages?.messages.length ?? 0,
    });
  }

  private gutter(width: number): number {
    const { processes } = this.app.model;
    let longest = 4;
    for (let process = 0; process < Math.min(processes.length, 500); process++) longest = Math.max(longest, processes[process].length);
    return Math.round(Math.min(Math.max(96, longest * 7 + 26), 200, width * 0.28));
  }

  schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.drawNow();
    });
  }

  drawNow(): void {
    const start = performance.now();
    if (this.baseStale) {
      this.view = this.viewportFor(this.width, this.height);
      const surface = this.surface(this.canvas);
      const context = this.canvas.getContext("2d") as CanvasRenderingContext2D;
      this.drawn = this.sheet.paint(context, this.app.scene, this.view, window.devicePixelRatio || 1);
      drawSurroundings(surface, this.app.scene, this.view);
      this.baseStale = false;
      this.overlayStale = true;
      this.afterDrawing();
    }
    const highlights = this.highlights();
    const empty = highlights.selected < 0 && highlights.hovered < 0 && !highlights.found && !highlights.violation && highlights.scrubX === null;
    if (this.overlayStale && !(empty && this.overlayEmpty)) {
      const context = this.overlay.getContext("2d") as CanvasRenderingContext2D;
      const surface = this.surface(this.overlay);
      context.clearRect(0, 0, this.width, this.height);
      drawOverlay(surface, this.app.scene, this.view, highlights);
      this.overlayEmpty = empty;
    }
    this.overlayStale = false;
    this.frames.drawn(performance.now() - start);
  }

  private surface(canvas: HTMLCanvasElement): CanvasSurface {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    // The lower canvas covers everything it stands on, which saves mixing it with what is behind.
    const context = canvas.getContext("2d", { alpha: canvas !== this.canvas }) as CanvasRenderingContext2D;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return new CanvasSurface(context, ratio);
  }

  highlights(): Highlights {
    const { state, scene, finding, violation } = this.app;
    return {
      selected: state.selected,
      hovered: this.hovered,
      found: finding.mask,
      violation,
      scrubX: state.scrub < 0 ? null : this.scrubX(scene.layout.x[state.scrub]),
    };
  }

  /** A little right of the event, so that the event itself is not faded. */
  private scrubX(x: number): number | null {
    if (Number.isNaN(x)) return null;
    return this.app.state.x === "position" ? x + 0.5 : x + 7 / this.view.scale;
  }

  hover(event: number): void {
    if (event === this.hovered) return;
    this.hovered = event;
    this.overlayStale = true;
    this.schedule();
  }

  /** The event at a place of the canvas, or -1. */
  eventAt(x: number, y: number): number {
    const { view } = this;
    const { layout, messages } = this.app.scene;
    if (x < view.gutter || y < 0) return -1;
    if (y >= view.messagesTop + 1 && messages) return this.messageEventAt(x, y);
    const row = rowAt(view, y);
    if (y >= view.lanesHeight || row < 0 || row >= layout.rows.length) return -1;
    const unit = toUnit(view, x);
    const right = lowerBound(layout.rowX, unit, layout.rowBegin[row], layout.rowBegin[row + 1]);
    let best = -1;
    let distance = REACH / view.scale;
    for (const at of [right - 1, right])
      if (at >= layout.rowBegin[row] && at < layout.rowBegin[row + 1] && Math.abs(layout.rowX[at] - unit) <= distance) {
        best = layout.rowEvents[at];
        distance = Math.abs(layout.rowX[at] - unit);
      }
    return best;
  }

  private messageEventAt(x: number, y: number): number {
    const { messages, layout } = this.app.scene;
    if (!messages) return -1;
    const { rows } = messageWindow(this.app.scene, this.view);
    let best = -1;
    let distance = REACH;
    rows.forEach((row, place) => {
      if (Math.abs(messageRowMiddle(this.view, place) - y) > MESSAGE_ROW / 2) return;
      for (let at = messages.begin[row]; at < messages.begin[row + 1]; at++) {
        const away = Math.abs(toPixel(this.view, layout.x[messages.events[at]]) - x);
        if (away <= distance) [best, distance] = [messages.events[at], away];
      }
    });
    return best;
  }

  /** A name of a process that the label at the left cuts off, or "". */
  labelAt(x: number, y: number): string {
    const row = rowAt(this.view, y);
    if (x >= this.view.gutter || y >= this.view.lanesHeight) return "";
    const process = this.app.scene.layout.rows[row];
    return process === undefined || process < 0 ? "" : visible(this.app.model.processes[process]);
  }

  describe(event: number): string {
    const { model } = this.app;
    const message = messageOf(model, event);
    const text = textOf(model, event);
    const fault = faultOf(model, event);
    return [
      `${visible(nameOf(model, event), 60)}: ${kindOf(model, event)}${message ? ` of ${visible(message, 60)}` : ""} at ${visible(processOf(model, event), 60)}`,
      text ? visible(text, 120) : "",
      fault ? `fault: ${visible(fault, 40)}` : "",
    ]
      .filter(Boolean)
      .join("\n");
  }

  reveal(event: number): void {
    const { layout, messages } = this.app.scene;
    const x = layout.x[event];
    const row = layout.rowOf[this.app.model.process[event]];
    if (Number.isNaN(x) || row < 0) return;
    const { view } = this;
    const span = plotWidth(view) / view.scale;
    const pixel = toPixel(view, x);
    const patch: { from?: number; to?: number; top?: number; messageTop?: number } = {};
    if (pixel < view.gutter + 20 || pixel > view.width - 20) {
      patch.from = x - span / 2;
      patch.to = x + span / 2;
    }
    const y = rowMiddle(view, row);
    if (y < view.rowHeight / 2 || y > view.lanesHeight - view.rowHeight / 2)
      patch.top = Math.max(0, row + 0.5 - view.lanesHeight / view.rowHeight / 2);
    this.app.set(patch);
    const messageRow = messages?.rowOf.get(this.app.model.message[event]);
    if (messageRow === undefined || !messages) return;
    const window = messageWindow(this.app.scene, this.view);
    if (window.rows.indexOf(messageRow) >= 0) return;
    let before = 0;
    const edge = this.view.left + plotWidth(this.view) / this.view.scale;
    for (let at = 0; at < messageRow; at++) if (messages.high[at] >= this.view.left && messages.low[at] <= edge) before++;
    this.app.set({ messageTop: Math.max(0, before - 2) });
  }

  /** Zooms by a factor around a pixel. */
  zoom(factor: number, pixel: number): void {
    const { view } = this;
    const { layout } = this.app.scene;
    const [low, high] = wholeRange(layout, this.app.state.x);
    const fixed = toUnit(view, pixel);
    const finest = finestSpan(low, high);
    const smallest = Math.max(finest, this.app.state.x === "time" ? (high - low) * 1e-7 : plotWidth(view) / 220);
    const width = plotWidth(view) / view.scale;
    const span = Math.max(Math.min(smallest, width), Math.min(width / factor, Math.max(high - low, width)));
    const from = fixed - ((pixel - view.gutter) / plotWidth(view)) * span;
    this.go(from, span);
  }

  pan(pixels: number): void {
    this.go(this.view.left + pixels / this.view.scale, plotWidth(this.view) / this.view.scale);
  }

  /** Shows a stretch, held within the execution. */
  private go(from: number, span: number): void {
    const [low, high] = wholeRange(this.app.scene.layout, this.app.state.x);
    if (span >= high - low) {
      if (this.app.state.from !== null) this.app.set({ from: null, to: null });
      return;
    }
    const held = Math.max(low, Math.min(from, high - span));
    this.app.set({ from: held, to: held + span });
  }

  scrollRows(rows: number): void {
    const { view } = this;
    const most = Math.max(0, this.app.scene.layout.rows.length - view.lanesHeight / view.rowHeight);
    this.app.set({ top: Math.max(0, Math.min(most, view.scroll / view.rowHeight + rows)) });
  }

  scrollMessages(rows: number): void {
    const { total } = messageWindow(this.app.scene, this.view);
    this.app.set({ messageTop: Math.max(0, Math.min(Math.max(0, total - 3), Math.round(this.app.state.messageTop + rows))) });
  }

  redraw(): void {
    this.changed("view");
  }
}
