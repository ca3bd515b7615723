// The state in the address, kept up to date and followed when it changes.

import { readHash, writeHash } from "../model/state";
import type { App } from "./app";

const SETTLING_MILLISECONDS = 150;
const MOST_COMPLAINTS = 3;

export class AddressKeeper {
  private written = "";
  private timer = 0;

  constructor(
    private readonly app: App,
    private readonly notify: (sentence: string) => void,
  ) {}

  /** Takes over what the address says at the start, then follows it. */
  async begin(): Promise<void> {
    await this.follow();
    window.addEventListener("hashchange", () => void this.follow());
    this.app.listen(() => {
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.write(), SETTLING_MILLISECONDS);
    });
  }

  private async follow(): Promise<void> {
    const hash = location.hash.replace(/^#/, "");
    if (hash === this.written) return;
    this.written = hash;
    const { state, complaints } = readHash(hash, { events: this.app.model.events, processes: this.app.model.processes.length });
    const more = complaints.length > MOST_COMPLAINTS ? ` And ${complaints.length - MOST_COMPLAINTS} more.` : "";
    if (complaints.length > 0) this.notify(complaints.slice(0, MOST_COMPLAINTS).join(" ") + more);
    await this.app.adopt(state);
  }

  /** The address of exactly what is shown now. */
  address(): string {
    return `${location.href.replace(/#.*$/s, "")}#${writeHash(this.app.state)}`;
  }

  private write(): void {
    const hash = writeHash(this.app.state);
    if (hash === this.written) return;
    this.written = hash;
    try {
      history.replaceState(null, "", `#${hash}`);
    } catch {
      // Some embeddings forbid it; the view works without.
    }
  }
}
