import { z } from "zod";

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Whether tokens may be trusted by what is fetched from there: HTTPS, or this machine itself. */
function isSafe(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "" || url.hash !== "") {
    return false;
  }
  return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
}

const address = z
  .string()
  .max(1024)
  .refine(isSafe, "must be an https address without user, password and fragment");

const issuers = z
  .array(
    z.strictObject({
      issuer: address.refine((text) => !text.includes("?"), "must not have a query"),
      audience: z
        .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
        .transform((one) => (typeof one === "string" ? [one] : one)),
      jwksUri: address.optional(),
    }),
  )
  .refine((list) => new Set(list.map(({ issuer }) => issuer)).size === list.length, "names an issuer twice");

/** An OpenID Connect issuer whose tokens are accepted as user tokens. */
export interface OidcIssuer {
  /** Exactly the `iss` of its tokens. */
  issuer: string;
  /** A token must be for one of these. */
  audience: string[];
  /** Where its keys are; found by discovery without it. */
  jwksUri?: string | undefined;
}

/** `SLIPWAY_OIDC_ISSUERS`: a JSON array of `{issuer, audience, jwksUri?}`. */
export const oidcIssuers = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.issues.push({ code: "custom", input: text, message: "must be JSON" });
      return z.NEVER;
    }
  })
  .pipe(issuers);
