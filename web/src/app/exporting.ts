// Pictures of what is shown: SVG, PNG, and the one that is printed.

import { CanvasSurface } from "../draw/canvassurface";
import { drawBase } from "../draw/drawing";
import { drawOverlay } from "../draw/overlay";
import { LIGHT, type Palette } from "../draw/palette";
import type { Surface } from "../draw/surface";
import { SvgSurface } from "../draw/svgsurface";
import { visible } from "../model/plaintext";
import { element, fileName, offerDownload } from "../ui/dom";
import type { App } from "./app";
import type { Stage } from "./stage";

function drawAll(surface: Surface, app: App, stage: Stage, palette: Palette): void {
  const scene = { ...app.scene, palette };
  drawBase(surface, scene, stage.view);
  drawOverlay(surface, scene, stage.view, { ...stage.highlights(), hovered: -1 });
}

export function svgOf(app: App, stage: Stage, palette: Palette = app.scene.palette): string {
  const surface = new SvgSurface(stage.view.width, stage.view.height);
  drawAll(surface, app, stage, palette);
  return surface.toString(visible(app.title), `${app.scene.shownCount} of ${app.model.events} events`);
}

export function saveSvg(app: App, stage: Stage): void {
  offerDownload(`${fileName(app.title)}.svg`, new Blob([svgOf(app, stage)], { type: "image/svg+xml" }));
}

const PNG_RATIO = 2;

export function savePng(app: App, stage: Stage): void {
  const canvas = element("canvas", { width: stage.view.width * PNG_RATIO, height: stage.view.height * PNG_RATIO });
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  context.scale(PNG_RATIO, PNG_RATIO);
  drawAll(new CanvasSurface(context, PNG_RATIO), app, stage, app.scene.palette);
  canvas.toBlob((blob) => {
    if (blob) offerDownload(`${fileName(app.title)}.png`, blob);
  });
}

/** While the page is printed, a picture with light colours stands in for the canvases. */
export function preparePrinting(app: App, stage: Stage): void {
  const picture = element("img", { class: "printed", alt: "" });
  stage.root.append(picture);
  window.addEventListener("beforeprint", () => {
    picture.alt = `Diagram of ${visible(app.title)}`;
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgOf(app, stage, LIGHT))}`;
  });
}
