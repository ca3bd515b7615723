// A Surface that writes SVG text. Everything from the data is escaped.

import { strokeOf } from "./canvassurface";
import { FONT, SHAPES, headOffsets, isOpen, type Shape, type Stroke, type Surface, type TextStyle } from "./surface";

export const escaped = (value: string): string =>
  value.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");

const short = (value: number): string => String(Math.round(value * 100) / 100);

export class SvgSurface implements Surface {
  private readonly parts: string[] = [];
  private clips = 0;
  private readonly shapes = new Set<Shape>();

  /** `prefix` keeps the names of several drawings in one page apart. */
  constructor(
    private readonly width: number,
    private readonly height: number,
    private readonly prefix = "causet",
  ) {}

  toString(title: string, description = ""): string {
    const symbols = [...this.shapes].map((shape) => `<path id="${this.prefix}-${shape}" d="${SHAPES[shape].path}"/>`).join("");
    const size = `width="${short(this.width)}" height="${short(this.height)}" viewBox="0 0 ${short(this.width)} ${short(this.height)}"`;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" font-family="${escaped(FONT)}">` +
      `<title>${escaped(title)}</title>${description ? `<desc>${escaped(description)}</desc>` : ""}` +
      `<defs>${symbols}</defs>${this.parts.join("")}</svg>`
    );
  }

  rect(x: number, y: number, width: number, height: number, fill: string, opacity = 1): void {
    this.parts.push(
      `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" fill="${fill}"${opacity === 1 ? "" : ` opacity="${opacity}"`}/>`,
    );
  }

  outline(x: number, y: number, width: number, height: number, radius: number, stroke: Stroke, fill?: string): void {
    this.parts.push(
      `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" rx="${radius}" fill="${fill ?? "none"}"${this.stroke(stroke)}/>`,
    );
  }

  hatch(x: number, y: number, width: number, height: number, colour: string): void {
    this.rect(x, y, width, height, colour, 0.18);
    if (width < 4) return;
    let path = "";
    for (let at = Math.floor((x - height) / 6) * 6; at < x + width; at += 6) {
      // The line from (at, bottom) to (at + height, top), cut at the sides of the bar.
      const begin = Math.max(0, x - at);
      const end = Math.min(height, x + width - at);
      if (begin < end) path += `M${short(at + begin)} ${short(y + height - begin)}L${short(at + end)} ${short(y + height - end)}`;
    }
    this.parts.push(`<path d="${path}" stroke="${colour}" stroke-width="1" opacity=".75" fill="none"/>`);
  }

  segments(points: ArrayLike<number>, length: number, stroke: Stroke): void {
    if (length === 0) return;
    let path = "";
    for (let at = 0; at < length; at += 4)
      path += `M${short(points[at])} ${short(points[at + 1])}L${short(points[at + 2])} ${short(points[at + 3])}`;
    this.parts.push(`<path d="${path}" fill="none"${this.stroke(stroke)}/>`);
  }

  heads(points: ArrayLike<number>, length: number, size: number, colour: string, opacity = 1): void {
    if (length === 0) return;
    let path = "";
    for (let at = 0; at < length; at += 4) {
      const [x, y] = [points[at + 2], points[at + 3]];
      const [leftX, leftY, rightX, rightY] = headOffsets(points[at], points[at + 1], x, y, size);
      path += `M${short(x)} ${short(y)}l${short(leftX)} ${short(leftY)}L${short(x + rightX)} ${short(y + rightY)}Z`;
    }
    this.parts.push(`<path d="${path}" fill="${colour}"${opacity === 1 ? "" : ` opacity="${opacity}"`}/>`);
  }

  mark(shape: Shape, x: number, y: number, radius: number, colour: string, ground: string, opacity = 1): void {
    this.shapes.add(shape);
    const { filled } = SHAPES[shape];
    const paint = filled
      ? `fill="${colour}"`
      : `fill="${isOpen(shape) ? "none" : ground}" stroke="${colour}" stroke-width="${short(strokeOf(shape) / radius)}"`;
    this.parts.push(
      `<use href="#${this.prefix}-${shape}" transform="translate(${short(x)} ${short(y)}) scale(${short(radius)})" ${paint}${opacity === 1 ? "" : ` opacity="${opacity}"`}/>`,
    );
  }

  text(value: string, x: number, y: number, style: TextStyle): void {
    const anchor = { left: "start", center: "middle", right: "end" }[style.align ?? "left"];
    const halo = style.halo ? ` stroke="${style.halo}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"` : "";
    const opacity = style.opacity === undefined ? "" : ` opacity="${style.opacity}"`;
    this.parts.push(
      `<text x="${short(x)}" y="${short(y)}" dy=".35em" font-size="${style.size}" font-weight="${style.weight ?? 400}" text-anchor="${anchor}" fill="${style.colour}"${halo}${opacity}>${escaped(value)}</text>`,
    );
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    const name = `${this.prefix}-clip${++this.clips}`;
    this.parts.push(
      `<clipPath id="${name}"><rect x="${short(x)}" y="${short(y)}" width="${short(Math.max(0, width))}" height="${short(Math.max(0, height))}"/></clipPath><g clip-path="url(#${name})">`,
    );
    draw();
    this.parts.push("</g>");
  }

  measure(value: string, size: number, weight = 400): number {
    // Without a canvas: a little wider than the usual letter, so that texts are rather cut than overlap.
    return value.length * size * (weight > 500 ? 0.6 : 0.56);
  }

  private stroke({ colour, width, dash, opacity }: Stroke): string {
    return (
      ` stroke="${colour}" stroke-width="${width || 1}"` +
      (dash ? ` stroke-dasharray="${dash.join(" ")}"` : "") +
      (opacity === undefined ? "" : ` opacity="${opacity}"`)
    );
  }
}
