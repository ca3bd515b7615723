// The side panel: tabs, and the content of the chosen one.

import { figure } from "../model/plaintext";
import type { Tab } from "../model/state";
import { element, replace } from "../ui/dom";
import { violationsLabel } from "../ui/verdict";
import type { App } from "./app";
import { eventPanel } from "./eventpanel";
import { differencesPanel, orderPanel, processesPanel, resultsPanel, violationsPanel } from "./listpanels";

export class Panel {
  readonly root: HTMLElement;
  private readonly body = element("div", { class: "panel-body", id: "panel-body", role: "tabpanel", tabindex: 0 });
  private readonly tabs: { tab: Tab; button: HTMLButtonElement; label: () => string }[];
  private filter = "";
  private shownFor: unknown[] = [];

  constructor(private readonly app: App) {
    const names: [Tab, () => string][] = [
      ["event", () => "Event"],
      ...(app.comparison ? ([["differences", () => `Differences ${figure(app.comparison?.differences.length ?? 0)}`]] as [Tab, () => string][]) : []),
      ["results", () => (app.finding.mask ? `Found ${figure(app.finding.list.length)}` : "Found")],
      ["violations", () => violationsLabel(app.model.violations.length, app.model.found)],
      ["processes", () => "Processes"],
      ...(app.comparison ? [] : ([["order", () => (app.scene.layout.inversions.length ? `Order ${figure(app.scene.layout.inversions.length)}` : "Order")]] as [Tab, () => string][])),
    ];
    this.tabs = names.map(([tab, label]) => ({
      tab,
      label,
      button: element("button", { type: "button", role: "tab", "aria-controls": "panel-body", onclick: () => app.set({ tab }) }),
    }));
    const list = element("div", { class: "tabs", role: "tablist", "aria-label": "Side panel", onkeydown: (event: KeyboardEvent) => this.tabKey(event) });
    list.append(...this.tabs.map(({ button }) => button));
    this.root = element("aside", { class: "panel", "aria-label": "Details and lists" }, list, this.body);
    app.listen((change) => {
      if (change !== "view") this.refresh();
    });
    this.refresh();
  }

  private tabKey(event: KeyboardEvent): void {
    const direction = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (direction === 0) return;
    event.preventDefault();
    const at = this.tabs.findIndex(({ tab }) => tab === this.current());
    const next = this.tabs[(at + direction + this.tabs.length) % this.tabs.length];
    this.app.set({ tab: next.tab });
    next.button.focus();
  }

  private current(): Tab {
    const { tab } = this.app.state;
    return this.tabs.some((known) => known.tab === tab) ? tab : "event";
  }

  focus(): void {
    this.app.set({ panel: true, tab: "event" });
    this.body.focus();
  }

  private refresh(): void {
    const current = this.current();
    this.root.hidden = !this.app.state.panel;
    for (const { tab, button, label } of this.tabs) {
      button.textContent = label();
      button.setAttribute("aria-selected", String(tab === current));
      button.tabIndex = tab === current ? 0 : -1;
    }
    const { app } = this;
    const relevant = [current, app.scene, app.state.selected, app.finding, app.finding.at, app.violation, app.stepAt, this.filter];
    if (relevant.every((value, at) => value === this.shownFor[at])) return;
    const sameList = this.shownFor[0] === current && this.shownFor[2] === app.state.selected;
    this.shownFor = relevant;
    this.rebuild(current, sameList);
  }

  private rebuild(current: Tab, keepScroll: boolean): void {
    // Content is made anew, so the focus goes back to the control that had it.
    const focused = document.activeElement instanceof HTMLElement && this.body.contains(document.activeElement) ? document.activeElement.dataset.keep : undefined;
    const caret = document.activeElement instanceof HTMLInputElement ? document.activeElement.selectionStart : null;
    const hadFocus = this.body.contains(document.activeElement);
    const scroll = this.body.scrollTop;
    replace(this.body, ...this.content(current));
    this.body.scrollTop = keepScroll ? scroll : 0;
    this.body.querySelector("[aria-current=true]")?.scrollIntoView({ block: "nearest" });
    if (!hadFocus) return;
    const again = focused ? this.body.querySelector<HTMLElement>(`[data-keep="${focused}"]`) : this.body.querySelector<HTMLElement>("[aria-current=true] button");
    (again ?? this.body).focus();
    if (again instanceof HTMLInputElement && again.type === "search" && caret !== null) again.setSelectionRange(caret, caret);
  }

  private content(tab: Tab): Node[] {
    switch (tab) {
      case "event":
        return eventPanel(this.app);
      case "results":
        return resultsPanel(this.app);
      case "violations":
        return violationsPanel(this.app);
      case "order":
        return orderPanel(this.app);
      case "differences":
        return differencesPanel(this.app);
      case "processes":
        return processesPanel(this.app, this.filter, (text) => {
          this.filter = text;
          this.refresh();
        });
    }
  }
}
