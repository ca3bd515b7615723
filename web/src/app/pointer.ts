// Mouse and touch on the diagram: wheel zooms, dragging pans, click selects, resting shows a hint.

import { element } from "../ui/dom";
import type { App } from "./app";
import type { Stage } from "./stage";

const DRAG_STARTS = 4;
const WHEEL_LINE = 30;

export function listenToPointer(app: App, stage: Stage): void {
  const { canvas } = stage;
  const hint = element("div", { class: "hint", role: "presentation", hidden: true });
  stage.root.append(hint);
  let drag: { x: number; y: number; moved: boolean } | null = null;

  const place = (event: MouseEvent): [number, number] => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  const showHint = (text: string, x: number, y: number) => {
    hint.hidden = text === "";
    if (text === "") return;
    hint.textContent = text;
    const width = Math.min(320, hint.offsetWidth);
    hint.style.left = `${Math.max(4, Math.min(x + 14, stage.view.width - width - 8))}px`;
    hint.style.top = `${y + 18 + hint.offsetHeight > stage.view.height ? y - hint.offsetHeight - 10 : y + 18}px`;
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = place(event);
    drag = { x, y, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (drag) {
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < DRAG_STARTS) return;
      drag.moved = true;
      canvas.classList.add("dragging");
      showHint("", 0, 0);
      if (x !== drag.x) stage.pan(drag.x - x);
      if (y !== drag.y) {
        if (drag.y > stage.view.messagesTop && stage.view.messagesHeight > 0) stage.scrollMessages((drag.y - y) / 18);
        else stage.scrollRows((drag.y - y) / stage.view.rowHeight);
      }
      drag.x = x;
      drag.y = y;
      return;
    }
    const under = stage.eventAt(x, y);
    stage.hover(under);
    canvas.classList.toggle("over", under >= 0);
    showHint(under >= 0 ? stage.describe(under) : stage.labelAt(x, y), x, y);
  });

  const end = (event: PointerEvent) => {
    if (!drag) return;
    const { moved } = drag;
    drag = null;
    canvas.classList.remove("dragging");
    if (!moved && event.type === "pointerup") {
      app.select(stage.eventAt(...place(event)), false);
      if (app.state.selected >= 0) app.set({ tab: "event" });
    }
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    stage.hover(-1);
    showHint("", 0, 0);
  });

  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      showHint("", 0, 0);
      const unit = event.deltaMode === 1 ? WHEEL_LINE : event.deltaMode === 2 ? stage.view.height : 1;
      const [x, y] = place(event);
      const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
      if (event.shiftKey) {
        const amount = dy || dx;
        if (y > stage.view.messagesTop && stage.view.messagesHeight > 0) stage.scrollMessages(Math.sign(amount) * 3);
        else stage.scrollRows(amount / stage.view.rowHeight);
      } else if (Math.abs(dx) > Math.abs(dy)) stage.pan(dx);
      else stage.zoom(Math.exp(-Math.max(-120, Math.min(120, dy)) / 400), Math.max(stage.view.gutter, x));
    },
    { passive: false },
  );
}
