// Puts a view or a comparison together.

import { compare } from "../model/compare";
import { buildModel, kindOf, messageOf, nameOf, processOf } from "../model/model";
import { directCauses, directEffects } from "../model/cones";
import { count, figure, visible } from "../model/plaintext";
import type { Page } from "../model/types";
import { button, element } from "../ui/dom";
import { verdictChip } from "../ui/verdict";
import { viewApi, type Api } from "./api";
import { App } from "./app";
import { preparePrinting, savePng, saveSvg } from "./exporting";
import { Scrubber, StatusLine } from "./footer";
import { AddressKeeper } from "./hash";
import { Help } from "./help";
import { keyTable, listenToKeys } from "./keys";
import { Panel } from "./panel";
import { listenToPointer } from "./pointer";
import { Stage } from "./stage";
import { Toolbar, themeButton } from "./toolbar";

export async function showView(page: Page, root: HTMLElement): Promise<Api> {
  const comparison = page.kind === "compare" ? compare(page.executions[0], page.executions[1]) : null;
  const model = comparison?.model ?? buildModel(page.executions[0]);
  const app = new App(page.title, model, comparison);
  const stage = new Stage(app);
  const toolbar = new Toolbar(app);
  const panel = new Panel(app);
  const notice = element("div", { class: "notice", role: "alert", hidden: true });
  const notify = (sentence: string) => {
    notice.replaceChildren(visible(sentence), button("Dismiss", "Hide this notice", () => (notice.hidden = true)));
    notice.hidden = false;
  };
  const address = new AddressKeeper(app, notify);
  const keys = keyTable(app, stage, {
    focusSearch: () => toolbar.searchBox.select(),
    toggleHelp: () => help.toggle(),
    closeHelp: () => help.close(),
    openDetails: () => panel.focus(),
  });
  const help = new Help(keys);
  const scrubber = new Scrubber(app);
  const said = element("p", { id: "said", class: "unseen", "aria-live": "polite" });
  app.listen(() => {
    const sentence = selectionInWords(app);
    if (said.textContent !== sentence) said.textContent = sentence;
  });

  root.append(
    header(page, app, stage, help, address, notify),
    ...(model.leftOut === null ? [] : [element("div", { class: "banner", role: "note" }, visible(model.leftOut, 2000))]),
    notice,
    toolbar.root,
    element(
      "main",
      { class: "main" },
      element("div", { class: "left" }, stage.root, scrubber.root, new StatusLine(app, stage).root),
      panel.root,
    ),
    said,
    help.root,
  );
  listenToPointer(app, stage);
  listenToKeys(keys, stage.canvas);
  preparePrinting(app, stage);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => void app.adopt(app.state));
  stage.resize();
  await address.begin();
  if (comparison && location.hash === "") app.set({ tab: "differences" });
  scrubber.refresh();
  stage.drawNow();
  return viewApi(page.kind, app, stage);
}

function header(page: Page, app: App, stage: Stage, help: Help, address: AddressKeeper, notify: (sentence: string) => void): HTMLElement {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(address.address());
      notify("The link to this view is copied.");
    } catch {
      notify(`The browser does not allow copying. The link is ${address.address()}`);
    }
  };
  const chip = app.comparison ? null : verdictChip(app.model.verdict, () => app.set({ panel: true, tab: app.model.violations.length ? "violations" : "event" }));
  const names = app.comparison ? app.comparison.names.map((name) => visible(name, 60)).join(" and ") : visible(app.model.name, 80);
  return element(
    "header",
    { class: "header" },
    element("div", { class: "titles" }, element("h1", {}, visible(page.title, 120)), element("p", { class: "quiet" }, subtitle(app, names))),
    chip,
    element(
      "div",
      { class: "group actions" },
      button("SVG", "Save what is shown as SVG", () => saveSvg(app, stage)),
      button("PNG", "Save what is shown as PNG", () => savePng(app, stage)),
      button("Print", "Print what is shown", () => window.print()),
      button("Copy link", "Copy the address of exactly this view", () => void copy()),
      themeButton(app),
      button("Help", "Keys and search (?)", () => help.toggle()),
    ),
  );
}

function subtitle(app: App, names: string): string {
  const processes = app.comparison ? app.comparison.partSizes[0] : app.model.processes.length;
  const size = `${count(app.model.events, "event")}, ${count(processes, "process", "processes")}`;
  const whole = app.model.total > app.model.events ? ` (of ${figure(app.model.total)} events in all)` : "";
  return names && names !== visible(app.title, 80) ? `${names} · ${size}${whole}` : `${size}${whole}`;
}

function selectionInWords(app: App): string {
  const { model } = app;
  const event = app.state.selected;
  if (event < 0) return "Nothing is selected.";
  const message = messageOf(model, event);
  return [
    `Selected ${visible(nameOf(model, event), 60)}: ${kindOf(model, event)}${message ? ` of ${visible(message, 60)}` : ""} at ${visible(processOf(model, event), 60)}`,
    `position ${figure(model.position[event])}`,
    `level ${figure(model.block[event])}`,
    count(directCauses(model, event).length, "direct cause"),
    count(directEffects(model, event).length, "direct effect"),
    app.scene.violating[event] ? "breaks the causal order" : "",
  ]
    .filter(Boolean)
    .join(", ");
}
