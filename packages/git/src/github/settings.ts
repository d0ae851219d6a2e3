/** Settings of the installation about its GitHub App. */

import { readFileSync } from "node:fs";
import { z } from "zod";
import type { GithubApp } from "./tokens.ts";

const address = z.url({ protocol: /^https$/ }).transform((url) => url.replace(/\/+$/, ""));

/** Variables of the environment that name the App; without an id there is none. */
export const githubEnvironment = {
  SLIPWAY_GITHUB_APP_ID: z
    .string()
    .regex(/^[A-Za-z0-9.]{1,64}$/, "must be the App's id or its client id")
    .optional(),
  SLIPWAY_GITHUB_KEY_FILE: z.string().min(1).optional(),
  SLIPWAY_GITHUB_API_URL: address.default("https://api.github.com"),
  SLIPWAY_GITHUB_URL: address.default("https://github.com"),
};

/** Where the App's settings are. */
export interface GithubAppConfig extends Omit<GithubApp, "privateKey"> {
  /** PEM file with the App's private key. */
  keyFile: string;
}

/** @returns undefined without an App */
export function githubAppConfig(env: {
  SLIPWAY_GITHUB_APP_ID?: string | undefined;
  SLIPWAY_GITHUB_KEY_FILE?: string | undefined;
  SLIPWAY_GITHUB_API_URL: string;
  SLIPWAY_GITHUB_URL: string;
}): GithubAppConfig | undefined {
  const { SLIPWAY_GITHUB_APP_ID: appId, SLIPWAY_GITHUB_KEY_FILE: keyFile } = env;
  if (appId === undefined || keyFile === undefined) {
    return undefined;
  }
  return { appId, keyFile, apiUrl: env.SLIPWAY_GITHUB_API_URL, cloneUrl: env.SLIPWAY_GITHUB_URL };
}

/** Reads the key for each use: it is replaced without a restart. */
export function mountedGithubApp(config: GithubAppConfig | undefined): () => GithubApp | undefined {
  if (config === undefined) {
    return () => undefined;
  }
  const { keyFile, ...app } = config;
  return () => ({ ...app, privateKey: readFileSync(keyFile, "utf8") });
}
