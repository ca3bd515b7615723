// The row of controls above the diagram.

import type { Order, XMode } from "../model/layout";
import { figure } from "../model/plaintext";
import type { Theme } from "../model/state";
import { button, element } from "../ui/dom";
import type { App } from "./app";

type ToggleKey = "control" | "collapse" | "messages" | "bands";

const SEARCH_DELAY = 250;

export class Toolbar {
  readonly root: HTMLElement;
  readonly searchBox: HTMLInputElement;
  private readonly refreshers: (() => void)[] = [];
  private timer = 0;

  constructor(private readonly app: App) {
    this.searchBox = element("input", {
      type: "search",
      id: "search",
      placeholder: "Find: word, process=p1, text~/…/, seq>=5",
      "aria-label": "Find events",
      "aria-describedby": "search-said",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.typed(),
      onkeydown: (event: KeyboardEvent) => this.searchKey(event),
    });
    this.root = element(
      "div",
      { class: "toolbar", role: "toolbar", "aria-label": "View" },
      this.searchGroup(),
      this.choice<XMode>("Across", "x", [["position", "position"], ["block", "level"], ["time", "time"]], {
        position: "One event after the other, by position in causal order",
        block: "By causal level: the longest chain of causes up to the event",
        time: "By the time that each event was given",
      }),
      app.comparison ? null : this.orderChoice(),
      element(
        "div",
        { class: "group", role: "group", "aria-label": "Show" },
        this.toggle("control", "Control", "Show control messages and their events"),
        this.toggle("collapse", "Collapse", "Draw runs of local events as one mark with their number"),
        this.toggle("messages", "Messages", "A second view below, with a row for each message"),
        this.toggle("bands", "Bands", "Bands behind the causal levels"),
      ),
    );
    app.listen(() => this.refresh());
    this.refresh();
  }

  private searchGroup(): HTMLElement {
    const said = element("p", { id: "search-said", class: "search-said", role: "status" });
    const only = button("Only these", "Show only the events found", () => this.app.set({ only: !this.app.state.only }), { "aria-pressed": "false" });
    const previous = button("‹", "Previous result (Shift+Enter)", () => this.app.stepFound(-1), { "aria-label": "Previous result" });
    const next = button("›", "Next result (Enter)", () => this.app.stepFound(1), { "aria-label": "Next result" });
    this.refreshers.push(() => {
      const { finding, state } = this.app;
      const some = finding.list.length > 0;
      for (const each of [previous, next]) each.disabled = !some;
      only.disabled = !some && !state.only;
      only.setAttribute("aria-pressed", String(state.only));
      said.classList.toggle("wrong", finding.error !== "");
      said.textContent = finding.error || (finding.busy ? "searching …" : finding.mask ? this.foundText() : "");
      if (document.activeElement !== this.searchBox && this.searchBox.value !== state.find) this.searchBox.value = state.find;
      this.searchBox.setAttribute("aria-invalid", String(finding.error !== ""));
    });
    return element("div", { class: "group search", role: "search" }, this.searchBox, previous, next, only, said);
  }

  private foundText(): string {
    const { at, list } = this.app.finding;
    if (list.length === 0) return "nothing found";
    return at >= 0 ? `${figure(at + 1)} of ${figure(list.length)} found` : `${figure(list.length)} found`;
  }

  private typed(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.searchNow(), SEARCH_DELAY);
  }

  private searchNow(): Promise<void> {
    window.clearTimeout(this.timer);
    return this.app.find(this.searchBox.value);
  }

  private async searchKey(event: KeyboardEvent): Promise<void> {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (this.searchBox.value !== this.app.finding.query) {
      await this.searchNow();
      if (this.app.finding.list.length > 0) this.app.set({ tab: "results" });
    }
    this.app.stepFound(event.shiftKey ? -1 : 1);
  }

  private choice<T extends string>(legend: string, key: "x" | "order" | "theme", choices: [T, string][], titles: Partial<Record<T, string>> = {}): HTMLElement {
    const inputs = choices.map(([value, label]) => {
      const input = element("input", { type: "radio", name: key, value, onchange: () => this.app.set({ [key]: value }) });
      this.refreshers.push(() => (input.checked = this.app.state[key] === value));
      return element("label", { title: titles[value] ?? "" }, input, element("span", {}, label));
    });
    return element("fieldset", { class: "group choice" }, element("legend", {}, legend), ...inputs);
  }

  private orderChoice(): HTMLElement {
    const field = this.choice<Order>("Order", "order", [["causal", "causal"], ["time", "time"]], {
      causal: "Causes before effects",
      time: "By time: effects placed before their causes are marked",
    }) as HTMLFieldSetElement;
    this.refreshers.push(() => (field.disabled = this.app.state.x !== "position"));
    return field;
  }

  private toggle(key: ToggleKey, label: string, title: string): HTMLElement {
    const pressed = button(label, title, () => this.app.set({ [key]: !this.app.state[key] }), { "aria-pressed": "false" });
    this.refreshers.push(() => {
      pressed.setAttribute("aria-pressed", String(this.app.state[key]));
      if (key === "bands") pressed.disabled = this.app.state.x !== "block";
    });
    return pressed;
  }

  private refresh(): void {
    for (const refresh of this.refreshers) refresh();
  }
}

export function themeButton(app: App): HTMLElement {
  const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
  const made = button("Theme", "Colours: as the system has them, light or dark", () => app.setTheme(next[app.state.theme]));
  const refresh = () => {
    made.textContent = `Theme: ${app.state.theme}`;
    document.documentElement.dataset.theme = app.theme();
  };
  app.listen(refresh);
  refresh();
  return made;
}
