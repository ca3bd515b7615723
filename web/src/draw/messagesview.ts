// The second view, below the lanes: a row for each message that has something in sight.

import { processOf } from "../model/model";
import { visible } from "../model/plaintext";
import { SEND } from "../model/types";
import type { Scene } from "./scene";
import { KIND_SHAPES, fitted, type Surface } from "./surface";
import { MESSAGE_ROW, SPLIT, rightEdge, toPixel, type Viewport } from "./viewport";

export type MessageWindow = { rows: number[]; total: number };

/** Rows that are drawn at this moment: those whose span meets the visible stretch, from the scrolled one on. */
export function messageWindow(scene: Scene, view: Viewport): MessageWindow {
  const { messages } = scene;
  if (!messages) return { rows: [], total: 0 };
  const high = rightEdge(view);
  const room = Math.ceil((view.messagesHeight - SPLIT) / MESSAGE_ROW);
  const skipped = Math.max(0, Math.round(view.messageScroll / MESSAGE_ROW));
  const rows: number[] = [];
  let total = 0;
  for (let row = 0; row < messages.messages.length; row++) {
    if (messages.high[row] < view.left || messages.low[row] > high) continue;
    if (total >= skipped && rows.length < room) rows.push(row);
    total++;
  }
  return { rows, total };
}

export const messageRowMiddle = (view: Viewport, place: number): number => view.messagesTop + SPLIT + (place + 0.5) * MESSAGE_ROW;

export function drawMessages(surface: Surface, scene: Scene, view: Viewport): void {
  const { messages, model, palette, layout } = scene;
  if (!messages || view.messagesHeight === 0) return;
  const top = view.messagesTop;
  const { rows, total } = messageWindow(scene, view);
  surface.rect(0, top, view.width, SPLIT, palette.gutter);
  surface.segments([0, top + 0.5, view.width, top + 0.5], 4, { colour: palette.lane, width: 1 });
  const heading = total > rows.length ? `Messages in sight: ${rows.length} of ${total} (scroll for more)` : `Messages in sight: ${total}`;
  surface.text(heading, 12, top + SPLIT / 2, { colour: palette.quiet, size: 11, weight: 600 });
  surface.rect(0, top + SPLIT, view.gutter, view.messagesHeight - SPLIT, palette.gutter);
  surface.clipped(0, top + SPLIT, view.width, view.messagesHeight - SPLIT, () => {
    rows.forEach((row, place) => {
      const y = messageRowMiddle(view, place);
      const name = fitted(surface, visible(model.strings[messages.messages[row]], 60), view.gutter - 22, 11);
      surface.text(name, view.gutter - 10, y, { colour: palette.ink, size: 11, align: "right" });
      surface.clipped(view.gutter, y - MESSAGE_ROW / 2, view.width - view.gutter, MESSAGE_ROW, () => {
        const begin = Math.max(view.gutter - 20, toPixel(view, messages.low[row]));
        const end = Math.min(view.width + 20, toPixel(view, messages.high[row]));
        surface.segments([begin, y, end, y], 4, { colour: palette.lane, width: 1 });
        for (let at = messages.begin[row]; at < messages.begin[row + 1]; at++) {
          const event = messages.events[at];
          const x = toPixel(view, layout.x[event]);
          if (x < view.gutter - 10 || x > view.width + 10) continue;
          const kind = model.kind[event];
          surface.mark(KIND_SHAPES[kind], x, y, 4, palette.kinds[kind], palette.ground, model.control[event] ? 0.6 : 1);
          if (scene.violating[event]) surface.mark("violation", x, y, 6.5, palette.violation, palette.ground);
          else if (kind !== SEND && view.scale > 46)
            surface.text(fitted(surface, visible(processOf(model, event), 12), view.scale - 14, 9), x + 8, y, { colour: palette.quiet, size: 9 });
        }
      });
    });
  });
}
