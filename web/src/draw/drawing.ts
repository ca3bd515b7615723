// The whole drawing, in the order of its layers.

import { drawArrows, type Thinned } from "./arrows";
import { drawAxis, drawBands } from "./axis";
import { drawHeld, drawLabels, drawLaneLines, drawStepsBack } from "./lanes";
import { drawEvents } from "./marks";
import { drawMessages } from "./messagesview";
import type { Scene } from "./scene";
import type { Surface } from "./surface";
import { plotWidth, type Viewport } from "./viewport";

/** Which arrows were left out, and whether bars stand for marks. */
export type Drawn = { thinned: Thinned; bars: boolean };

export function drawBase(surface: Surface, scene: Scene, view: Viewport): Drawn {
  surface.rect(0, 0, view.width, view.height, scene.palette.ground);
  const drawn = drawPlot(surface, scene, view);
  drawSurroundings(surface, scene, view);
  return drawn;
}

/** What moves when one pans. */
export function drawPlot(surface: Surface, scene: Scene, view: Viewport): Drawn {
  const drawn: Drawn = { thinned: "none", bars: false };
  surface.rect(view.gutter, 0, plotWidth(view), view.lanesHeight + view.messagesHeight, scene.palette.ground);
  surface.clipped(view.gutter, 0, plotWidth(view), view.lanesHeight + view.messagesHeight, () => {
    if (scene.state.bands && scene.state.x === "block") drawBands(surface, scene, view);
  });
  surface.clipped(view.gutter, 0, plotWidth(view), view.lanesHeight, () => {
    drawLaneLines(surface, scene, view);
    drawHeld(surface, scene, view);
    drawn.thinned = drawArrows(surface, scene, view);
    drawStepsBack(surface, scene, view);
    drawn.bars = drawEvents(surface, scene, view);
  });
  return drawn;
}

/** What stays in its place, or depends on the edges of what is visible. */
export function drawSurroundings(surface: Surface, scene: Scene, view: Viewport): void {
  drawLabels(surface, scene, view);
  drawMessages(surface, scene, view);
  drawAxis(surface, scene, view);
}
