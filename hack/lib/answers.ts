import { succeeds } from "./exec.ts";

/** Whether an address of this machine answers 2xx to a GET within 2 s, whoever signed its certificate. */
export const answers = (url: string): Promise<boolean> =>
  succeeds("curl", ["-sfk", "--max-time", "2", "-o", "/dev/null", url]);
