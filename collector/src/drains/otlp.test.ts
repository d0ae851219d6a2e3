import { expect, test } from "vitest";
import { outgoing } from "../../../test/kit/drains/lines.ts";
import { exportRequest, rejectedRecords, retryAfterMs } from "./otlp.ts";

// Shows: docs/log-drains.md#otlp: a resource for each container, a record for each line
test("lines are the JSON encoding of an ExportLogsServiceRequest, by instance and in their order", () => {
  const lines = [
    outgoing({ at: "1795906800123456789", text: "started", level: "info", offset: "100" }),
    outgoing({ at: "1795906800223456789", text: "other", instance: "shop-2", level: null }),
    outgoing({
      at: "1795906800323456789",
      text: "failed ✗",
      level: "error",
      stream: "stderr",
      continues: true,
    }),
  ];
  const text = (key: string, value: string) => ({ key, value: { stringValue: value } });
  const resource = (instance: string) => ({
    attributes: [
      text("service.name", "Shop"),
      text("service.instance.id", instance),
      text("slipway.organization", "o1"),
      text("slipway.project", "p1"),
      text("slipway.instance", instance),
      text("k8s.pod.name", instance),
      text("k8s.container.name", "app"),
    ],
  });
  expect(JSON.parse(exportRequest(lines))).toEqual({
    resourceLogs: [
      {
        resource: resource("shop-1"),
        scopeLogs: [
          {
            scope: { name: "slipway" },
            logRecords: [
              {
                // 64-bit integers are decimal strings in this encoding.
                timeUnixNano: "1795906800123456789",
                observedTimeUnixNano: "1795906801000000000",
                severityNumber: 9,
                severityText: "INFO",
                body: { stringValue: "started" },
                attributes: [text("log.iostream", "stdout"), text("log.record.uid", "0123456789abcdef-100")],
              },
              {
                timeUnixNano: "1795906800323456789",
                observedTimeUnixNano: "1795906801000000000",
                severityNumber: 17,
                severityText: "ERROR",
                body: { stringValue: "failed ✗" },
                attributes: [
                  text("log.iostream", "stderr"),
                  text("log.record.uid", "0123456789abcdef-7"),
                  { key: "slipway.continues", value: { boolValue: true } },
                ],
              },
            ],
          },
        ],
      },
      {
        resource: resource("shop-2"),
        scopeLogs: [
          {
            scope: { name: "slipway" },
            logRecords: [
              {
                timeUnixNano: "1795906800223456789",
                observedTimeUnixNano: "1795906801000000000",
                body: { stringValue: "other" },
                attributes: [text("log.iostream", "stdout"), text("log.record.uid", "0123456789abcdef-7")],
              },
            ],
          },
        ],
      },
    ],
  });
});

test.each([
  ['{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too old"}}', 3],
  ['{"partialSuccess":{"rejectedLogRecords":2}}', 2],
  ["{}", 0],
  ["", 0],
  ["<html>", 0],
  ["null", 0],
  ['{"partialSuccess":{"rejectedLogRecords":"-1"}}', 0],
  ['{"partialSuccess":{"rejectedLogRecords":"1e999"}}', 0],
])("of the answer %s %i records are rejected", (body, count) => {
  expect(rejectedRecords(body)).toBe(count);
});

test.each([
  [undefined, undefined],
  ["30", 30_000],
  ["Sun, 29 Nov 2026 12:01:00 GMT", 60_000],
  ["Sun, 29 Nov 2026 11:00:00 GMT", 0],
  ["soon", undefined],
])("Retry-After %s is %s ms", (header, ms) => {
  expect(retryAfterMs(header, Date.parse("2026-11-29T12:00:00Z"))).toBe(ms);
});
