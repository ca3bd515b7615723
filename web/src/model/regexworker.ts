// Regular expressions run in a worker, because a single slow match cannot be interrupted where it runs. Without workers
// they run here, in slices.

import { QueryError } from "./query";
import type { RegexTester } from "./search";

const LONGEST_MILLISECONDS = 4000;
const SLICE_MILLISECONDS = 10;

const WORKER = `onmessage = ({ data: [source, flags, texts] }) => {
  const regex = new RegExp(source, flags);
  postMessage(Uint8Array.from(texts, (text) => (regex.test(text) ? 1 : 0)));
};`;

export const testRegex: RegexTester = async (source, flags, texts) => {
  const worker = startWorker();
  return worker ? testInWorker(worker, source, flags, texts) : testInSlices(source, flags, texts);
};

function startWorker(): Worker | null {
  try {
    const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    return worker;
  } catch {
    return null;
  }
}

const tooSlow = () => new QueryError("The regular expression is too slow on these texts and was stopped.");

function testInWorker(worker: Worker, source: string, flags: string, texts: string[]): Promise<Uint8Array> {
  return new Promise<Uint8Array>((resolve, reject) => {
    const timer = setTimeout(() => reject(tooSlow()), LONGEST_MILLISECONDS);
    worker.onmessage = ({ data }) => {
      clearTimeout(timer);
      resolve(data as Uint8Array);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      clearTimeout(timer);
      resolve(testInSlices(source, flags, texts));
    };
    worker.postMessage([source, flags, texts]);
  }).finally(() => worker.terminate());
}

export async function testInSlices(source: string, flags: string, texts: string[]): Promise<Uint8Array> {
  const regex = new RegExp(source, flags);
  const matches = new Uint8Array(texts.length);
  const start = performance.now();
  let sliceEnd = start + SLICE_MILLISECONDS;
  for (let at = 0; at < texts.length; at++) {
    matches[at] = regex.test(texts[at]) ? 1 : 0;
    if (performance.now() > sliceEnd) {
      if (performance.now() - start > LONGEST_MILLISECONDS) throw tooSlow();
      await new Promise((resolve) => setTimeout(resolve));
      sliceEnd = performance.now() + SLICE_MILLISECONDS;
    }
  }
  return matches;
}
