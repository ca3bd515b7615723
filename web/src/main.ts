// Opens the payload and shows the page of its kind. What goes wrong is said in one sentence.

import { showReport } from "./report/reportpage";
import type { Api } from "./app/api";
import { showView } from "./app/viewpage";
import { PageError } from "./model/checks";
import { openPayload } from "./model/payload";
import { element } from "./ui/dom";
import "./ui/style.css";

async function open(): Promise<Api> {
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const root = document.getElementById("page") as HTMLElement;
  const data = document.getElementById("causet-data");
  try {
    const page = await openPayload(data?.textContent ?? "");
    // The text is large and no longer needed.
    data?.replaceChildren();
    root.replaceChildren();
    root.className = page.kind;
    return page.kind === "report" ? showReport(page, root) : await showView(page, root);
  } catch (error) {
    const sentence = error instanceof PageError ? error.message : `This page could not be shown: ${error instanceof Error ? error.message : String(error)}.`;
    root.className = "broken";
    root.replaceChildren(element("p", { role: "alert" }, sentence));
    throw error;
  }
}

const ready = open();
// Whoever does not wait for it is told by the page itself.
ready.catch(() => undefined);

const hook: Record<string, unknown> = { ready: ready.then(() => undefined) };
(hook.ready as Promise<void>).catch(() => undefined);
let api: Api | null = null;
ready.then((opened) => (api = opened)).catch(() => undefined);
Object.defineProperty(hook, "kind", { enumerable: true, get: () => api?.kind ?? null });
const calls = ["state", "shown", "geometry", "past", "future", "concurrent", "differences", "frames", "frameTimes", "resetFrames", "select", "svg"] as const;
for (const name of calls)
  hook[name] = (...given: unknown[]) => {
    if (!api) throw new Error("The page is not ready yet.");
    return (api[name] as (...given: unknown[]) => unknown)(...given);
  };
Object.defineProperty(window, "causet", { value: Object.freeze(hook) });
