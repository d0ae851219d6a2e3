import { describe, expect, it } from "vitest";
import { z } from "zod";
import chartSchema from "../../../charts/slipway/values.schema.json" with { type: "json" };
import { smtpConfig, smtpIssues, smtpVariables } from "./smtp-environment.ts";

const read = (values: Record<string, string>) => z.object(smtpVariables).parse(values);
const complete = {
  SLIPWAY_SMTP_HOST: "smtp.example.com",
  SLIPWAY_EMAIL_FROM: "slipway@example.com",
  SLIPWAY_EMAIL_PUBLIC_URL: "https://api.example.com/",
};

describe("the settings of mail", () => {
  it("are none without a host, and encrypt unless they say otherwise", () => {
    expect(smtpConfig(read({}))).toBeUndefined();
    expect(smtpIssues(read({}))).toEqual([]);
    expect(smtpIssues(read(complete))).toEqual([]);
    expect(smtpConfig(read(complete))).toMatchObject({
      host: "smtp.example.com",
      port: 587,
      tls: "starttls",
      publicUrl: "https://api.example.com",
    });
  });

  // Shows: docs/email.md#for-operators-of-the-platform: `email.smtp.user`
  it.each([
    [{ SLIPWAY_SMTP_HOST: "smtp.example.com" }, ["SLIPWAY_EMAIL_FROM", "SLIPWAY_EMAIL_PUBLIC_URL"]],
    [{ ...complete, SLIPWAY_SMTP_USER: "u" }, ["SLIPWAY_SMTP_PASSWORD"]],
    [{ ...complete, SLIPWAY_SMTP_PASSWORD: "p" }, ["SLIPWAY_SMTP_PASSWORD"]],
    [
      { ...complete, SLIPWAY_SMTP_USER: "u", SLIPWAY_SMTP_PASSWORD: "p", SLIPWAY_SMTP_TLS: "none" },
      ["SLIPWAY_SMTP_USER"],
    ],
  ])("%j lack %j", (values, names) => {
    expect(smtpIssues(read(values)).map(([name]) => name)).toEqual(names);
  });
});

describe("what the chart takes", () => {
  const { from, publicUrl, smtp } = chartSchema.properties.email.properties;
  const { host } = smtp.properties;
  it.each([
    ["SLIPWAY_SMTP_HOST", host, "smtp.example.com"],
    ["SLIPWAY_SMTP_HOST", host, "10.0.0.1"],
    ["SLIPWAY_SMTP_HOST", host, "2001:db8::1"],
    ["SLIPWAY_SMTP_HOST", host, "https://smtp.example.com"],
    ["SLIPWAY_SMTP_HOST", host, "smtp.example.com:587"],
    ["SLIPWAY_SMTP_HOST", host, "SMTP.example.com"],
    ["SLIPWAY_SMTP_HOST", host, "-smtp"],
    ["SLIPWAY_EMAIL_FROM", from, "slipway+a.b@mail.example.com"],
    ["SLIPWAY_EMAIL_FROM", from, "Slipway <slipway@example.com>"],
    ["SLIPWAY_EMAIL_FROM", from, "slipway@localhost"],
    ["SLIPWAY_EMAIL_FROM", from, "slipway@example_1.com"],
    ["SLIPWAY_EMAIL_FROM", from, "a..b@example.com"],
    ["SLIPWAY_EMAIL_FROM", from, "ä@example.com"],
    ["SLIPWAY_EMAIL_PUBLIC_URL", publicUrl, "https://api.example.com/"],
    ["SLIPWAY_EMAIL_PUBLIC_URL", publicUrl, "http://[2001:db8::1]:8080/slipway"],
    ["SLIPWAY_EMAIL_PUBLIC_URL", publicUrl, "https://api.example.com:99999"],
    ["SLIPWAY_EMAIL_PUBLIC_URL", publicUrl, "https:// api.example.com"],
    ["SLIPWAY_EMAIL_PUBLIC_URL", publicUrl, "ftp://api.example.com"],
  ] as const)("the operator takes, too: %s, %s, %s", (name, { pattern }, value) => {
    expect([value, new RegExp(pattern).test(value)]).toEqual([
      value,
      smtpVariables[name].safeParse(value).success,
    ]);
  });
});
