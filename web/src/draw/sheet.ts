// A bitmap of the plot, wider than what is visible, so that panning only copies. Without a graphics card drawing thousands
// of lines takes several frames, copying far less than one.

import { CanvasSurface } from "./canvassurface";
import { drawPlot, type Drawn } from "./drawing";
import type { Scene } from "./scene";
import { plotWidth, type Viewport } from "./viewport";

/** Part of the plot's width that is drawn beyond each edge once one pans. */
const MARGIN = 0.4;

export class Sheet {
  private readonly canvas = document.createElement("canvas");
  private scene: Scene | null = null;
  private key = "";
  private left = 0;
  private width = 0;
  private drawn: Drawn = { thinned: "none", bars: false };

  /** Copies the plot to a context, drawing it anew only when it must. */
  paint(target: CanvasRenderingContext2D, scene: Scene, view: Viewport, ratio: number): Drawn {
    // The scale comes from a subtraction, so its last digits differ while nothing has changed.
    const key = [view.scale.toPrecision(9), view.scroll, view.rowHeight, view.lanesHeight, view.messagesHeight, view.width, view.gutter, ratio].join(" ");
    const same = this.scene === scene && this.key === key;
    const visible = Math.round(plotWidth(view) * ratio);
    let offset = Math.round((view.left - this.left) * view.scale * ratio);
    if (!same || offset < 0 || offset + visible > this.width) {
      // Only who pans needs a margin: a first drawing or a zoom should not pay for one.
      const margin = same ? Math.round(plotWidth(view) * MARGIN) : 0;
      this.draw(scene, view, ratio, margin);
      this.scene = scene;
      this.key = key;
      offset = margin * ratio;
    }
    const height = view.lanesHeight + view.messagesHeight;
    target.save();
    target.setTransform(1, 0, 0, 1, 0, 0);
    target.drawImage(this.canvas, offset, 0, visible, Math.round(height * ratio), Math.round(view.gutter * ratio), 0, visible, Math.round(height * ratio));
    target.restore();
    return this.drawn;
  }

  private draw(scene: Scene, view: Viewport, ratio: number, margin: number): void {
    const width = plotWidth(view) + 2 * margin;
    const height = view.lanesHeight + view.messagesHeight;
    const [pixelWidth, pixelHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== pixelWidth || this.canvas.height !== pixelHeight) {
      this.canvas.width = pixelWidth;
      this.canvas.height = pixelHeight;
    }
    const context = this.canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.left = view.left - margin / view.scale;
    this.width = pixelWidth;
    this.drawn = drawPlot(new CanvasSurface(context, ratio), scene, { ...view, gutter: 0, width, left: this.left });
  }
}
