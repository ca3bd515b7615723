// How long drawing takes and how far apart frames are, for measurements.

const MOST_KEPT = 5000;
const WATCH_MILLISECONDS = 250;

export class FrameLog {
  private draws: number[] = [];
  private between: number[] = [];
  private last = -1;
  private watchUntil = 0;
  private watching = false;

  /** Notes a drawing, and watches the frames that follow: a drawing may still be on its way to the screen. */
  drawn(took: number): void {
    if (this.draws.length >= MOST_KEPT) this.draws.shift();
    this.draws.push(took);
    this.watchUntil = performance.now() + WATCH_MILLISECONDS;
    if (this.watching) return;
    this.watching = true;
    this.last = -1;
    requestAnimationFrame((now) => this.watch(now));
  }

  private watch(now: number): void {
    if (this.last >= 0) {
      if (this.between.length >= MOST_KEPT) this.between.shift();
      this.between.push(now - this.last);
    }
    this.last = now;
    this.watching = now < this.watchUntil;
    if (this.watching) requestAnimationFrame((next) => this.watch(next));
  }

  drawTimes(): number[] {
    return [...this.draws];
  }

  frameTimes(): number[] {
    return [...this.between];
  }

  reset(): void {
    this.draws = [];
    this.between = [];
    this.last = -1;
  }
}
