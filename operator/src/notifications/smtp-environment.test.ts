import { describe, expect, it } from "vitest";
import { z } from "zod";
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
