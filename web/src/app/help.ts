// The list of keys, of search terms, and of what the shapes mean.

import { element } from "../ui/dom";

const QUERIES: [string, string][] = [
  ["refused", "any field holds this word"],
  ['"two words"', "any field holds these words"],
  ["process=p1 kind=send", "both are true"],
  ["message!=m3", "another message or none"],
  ["text~/time ?out/i", "a regular expression matches"],
  ["seq>=5 time<10", "numbers compare: seq, time, block, position"],
];

export class Help {
  readonly root: HTMLDialogElement;

  constructor(keys: { shown: string; does: string }[]) {
    const row = ([name, meaning]: [string, string]) =>
      element("tr", {}, element("td", {}, element("kbd", {}, name)), element("td", {}, meaning));
    this.root = element(
      "dialog",
      { class: "help", "aria-labelledby": "help-title" },
      element(
        "div",
        { class: "help-head" },
        element("h2", { id: "help-title" }, "Keys and search"),
        element("button", { type: "button", onclick: () => this.root.close() }, "Close"),
      ),
      element("table", {}, element("caption", {}, "Keys"), element("tbody", {}, ...keys.map((key) => row([key.shown, key.does])))),
      element("table", {}, element("caption", {}, "Search"), element("tbody", {}, ...QUERIES.map(row))),
      element(
        "p",
        {},
        "Fields: process, kind, id, message, text, group, fault, control, seq, time, block, position. " +
          "Mouse: the wheel zooms, Shift and wheel scrolls processes, dragging pans, a click selects.",
      ),
    );
  }

  toggle(): void {
    if (this.root.open) this.root.close();
    else this.root.showModal();
  }

  close(): boolean {
    const { open } = this.root;
    if (open) this.root.close();
    return open;
  }
}
