// A Surface on a canvas. Marks are drawn once into small bitmaps and copied, which is much faster than paths.

import { FONT, SHAPES, headOffsets, isOpen, type Shape, type Stroke, type Surface, type TextStyle } from "./surface";

type Context = CanvasRenderingContext2D;

// Long paths of crossing lines are slow to fill in software, so lines go out in small batches.
const SEGMENTS_IN_A_PATH = 64;

const sprites = new Map<string, HTMLCanvasElement>();
const widths = new Map<string, number>();
const MOST_REMEMBERED = 20_000;

export class CanvasSurface implements Surface {
  private font = "";

  constructor(
    private readonly context: Context,
    private readonly ratio: number,
  ) {
    context.textBaseline = "middle";
    context.lineCap = "round";
    context.lineJoin = "round";
  }

  rect(x: number, y: number, width: number, height: number, fill: string, opacity = 1): void {
    this.context.globalAlpha = opacity;
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }

  outline(x: number, y: number, width: number, height: number, radius: number, stroke: Stroke, fill?: string): void {
    const { context } = this;
    context.beginPath();
    context.roundRect(x, y, width, height, radius);
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    this.use(stroke);
    context.stroke();
    this.reset();
  }

  hatch(x: number, y: number, width: number, height: number, colour: string): void {
    this.rect(x, y, width, height, colour, 0.18);
    if (width < 4) return;
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.beginPath();
    // The pattern hangs on the plane, not on the bar, so that it does not crawl while panning.
    const step = 6;
    for (let at = Math.floor((x - height) / step) * step; at < x + width; at += step) {
      context.moveTo(at, y + height);
      context.lineTo(at + height, y);
    }
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.globalAlpha = 0.75;
    context.stroke();
    context.restore();
  }

  segments(points: ArrayLike<number>, length: number, stroke: Stroke): void {
    if (length === 0) return;
    const { context } = this;
    this.use(stroke);
    for (let start = 0; start < length; start += SEGMENTS_IN_A_PATH * 4) {
      const end = Math.min(length, start + SEGMENTS_IN_A_PATH * 4);
      context.beginPath();
      for (let at = start; at < end; at += 4) {
        context.moveTo(points[at], points[at + 1]);
        context.lineTo(points[at + 2], points[at + 3]);
      }
      context.stroke();
    }
    this.reset();
  }

  heads(points: ArrayLike<number>, length: number, size: number, colour: string, opacity = 1): void {
    if (length === 0) return;
    const { context } = this;
    context.globalAlpha = opacity;
    context.fillStyle = colour;
    for (let start = 0; start < length; start += SEGMENTS_IN_A_PATH * 4) {
      const end = Math.min(length, start + SEGMENTS_IN_A_PATH * 4);
      context.beginPath();
      for (let at = start; at < end; at += 4) {
        const [x, y] = [points[at + 2], points[at + 3]];
        const [leftX, leftY, rightX, rightY] = headOffsets(points[at], points[at + 1], x, y, size);
        context.moveTo(x, y);
        context.lineTo(x + leftX, y + leftY);
        context.lineTo(x + rightX, y + rightY);
        context.closePath();
      }
      context.fill();
    }
    context.globalAlpha = 1;
  }

  mark(shape: Shape, x: number, y: number, radius: number, colour: string, ground: string, opacity = 1): void {
    const sprite = this.sprite(shape, radius, colour, ground);
    const size = sprite.width / this.ratio;
    const { context } = this;
    if (opacity !== 1) context.globalAlpha = opacity;
    context.drawImage(sprite, Math.round((x - size / 2) * this.ratio) / this.ratio, Math.round((y - size / 2) * this.ratio) / this.ratio, size, size);
    if (opacity !== 1) context.globalAlpha = 1;
  }

  private sprite(shape: Shape, radius: number, colour: string, ground: string): HTMLCanvasElement {
    const key = `${shape} ${radius} ${colour} ${ground} ${this.ratio}`;
    let sprite = sprites.get(key);
    if (sprite) return sprite;
    sprite = document.createElement("canvas");
    sprite.width = sprite.height = Math.ceil((radius * 1.3 + 2) * this.ratio) * 2;
    const context = sprite.getContext("2d") as Context;
    context.translate(sprite.width / 2, sprite.height / 2);
    context.scale(radius * this.ratio, radius * this.ratio);
    const path = new Path2D(SHAPES[shape].path);
    if (SHAPES[shape].filled) {
      context.fillStyle = colour;
      context.fill(path);
    } else {
      if (!isOpen(shape)) {
        context.fillStyle = ground;
        context.fill(path);
      }
      context.strokeStyle = colour;
      context.lineWidth = strokeOf(shape) / radius;
      context.lineCap = context.lineJoin = "round";
      context.stroke(path);
    }
    sprites.set(key, sprite);
    return sprite;
  }

  text(value: string, x: number, y: number, style: TextStyle): void {
    const { context } = this;
    this.useFont(style.size, style.weight ?? 400);
    context.textAlign = style.align ?? "left";
    context.globalAlpha = style.opacity ?? 1;
    if (style.halo) {
      // A plain box behind the text: outlines of letters are slow to draw.
      const width = this.measure(value, style.size, style.weight) + 4;
      const left = x - 2 - (style.align === "center" ? width / 2 - 2 : style.align === "right" ? width - 4 : 0);
      context.fillStyle = style.halo;
      context.globalAlpha = 0.65;
      context.fillRect(left, y - style.size / 2 - 1, width, style.size + 2);
      context.globalAlpha = style.opacity ?? 1;
    }
    context.fillStyle = style.colour;
    context.fillText(value, x, y);
    context.globalAlpha = 1;
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
    this.font = "";
  }

  measure(value: string, size: number, weight = 400): number {
    const key = `${size} ${weight} ${value}`;
    let width = widths.get(key);
    if (width === undefined) {
      this.useFont(size, weight);
      width = this.context.measureText(value).width;
      if (widths.size > MOST_REMEMBERED) widths.clear();
      widths.set(key, width);
    }
    return width;
  }

  /** Setting a font is slow even when it is the same. */
  private useFont(size: number, weight: number): void {
    const font = `${weight} ${size}px ${FONT}`;
    if (font === this.font) return;
    this.font = this.context.font = font;
  }

  private use(stroke: Stroke): void {
    const { context } = this;
    context.strokeStyle = stroke.colour;
    context.lineWidth = stroke.width || 1 / this.ratio;
    context.globalAlpha = stroke.opacity ?? 1;
    if (stroke.dash) context.setLineDash(stroke.dash);
  }

  private reset(): void {
    this.context.globalAlpha = 1;
    this.context.setLineDash([]);
  }
}

export const strokeOf = (shape: Shape): number => (shape === "violation" ? 2 : shape === "halo" ? 2 : 1.8);
