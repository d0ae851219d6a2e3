import type { OutgoingLine } from "../../../collector/src/drains/receiver.ts";

/** A line on its way to a receiver. */
export function outgoing(overrides: Partial<OutgoingLine> = {}): OutgoingLine {
  return {
    ...{ organization: "o1", project: "p1", projectName: "Shop", instance: "shop-1", container: "app" },
    ...{ storedAt: "1795906801000", at: "1795906800123456789", file: "0123456789abcdef", offset: "7" },
    ...{ stream: "stdout", level: null, text: "hello", continues: false },
    ...overrides,
  };
}
