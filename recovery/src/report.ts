/** Reports that a step begins, and how long the one before it took. */
export type Report = (step: string) => void;

/** A report to the standard error, which leaves the standard output to the result. */
export function reportTo(write: (line: string) => void): Report {
  let began = performance.now();
  let running: string | undefined;
  return (step) => {
    const now = performance.now();
    if (running !== undefined) {
      write(`    done in ${((now - began) / 1_000).toFixed(1)} s\n`);
    }
    began = now;
    running = step;
    write(`==> ${step}\n`);
  };
}
