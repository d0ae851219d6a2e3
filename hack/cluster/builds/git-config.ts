/** Where the Git server's process finds its folders: see `enter` in git-server.ts. */
export const room = { app: "/mnt/app", conf: "/mnt/conf", data: "/mnt/data" } as const;

/** Made once for a server, and kept for as long as its data. */
export interface GitSecrets {
  /** Encrypts the secrets in the database. */
  secretKey: string;
  /** The server's own hooks show it. A JWT. */
  internalToken: string;
  lfsSecret: string;
  oauthSecret: string;
}

/**
 * Configuration of Gitea: HTTPS on one address, SQLite, no SSH, nothing that a Git server can do without. A push makes
 * a repository that is not there. Its hooks may call this machine and private addresses, where the platform is.
 */
export function gitConfig(address: string, port: number, secrets: GitSecrets): string {
  const url = `https://${address}:${port}/`;
  const sections: Record<string, Record<string, string | number | boolean>> = {
    server: {
      PROTOCOL: "https",
      DOMAIN: address,
      HTTP_ADDR: address,
      HTTP_PORT: port,
      ROOT_URL: url,
      LOCAL_ROOT_URL: url,
      CERT_FILE: `${room.conf}/tls.crt`,
      KEY_FILE: `${room.conf}/tls.key`,
      STATIC_ROOT_PATH: room.app,
      APP_DATA_PATH: room.data,
      DISABLE_SSH: true,
      OFFLINE_MODE: true,
      LANDING_PAGE: "login",
      LFS_START_SERVER: true,
      LFS_JWT_SECRET: secrets.lfsSecret,
    },
    database: {
      DB_TYPE: "sqlite3",
      PATH: `${room.data}/gitea.db`,
      SQLITE_TIMEOUT: 20_000,
      SQLITE_JOURNAL_MODE: "WAL",
      LOG_SQL: false,
    },
    security: { INSTALL_LOCK: true, SECRET_KEY: secrets.secretKey, INTERNAL_TOKEN: secrets.internalToken },
    oauth2: { ENABLED: false, JWT_SECRET: secrets.oauthSecret },
    repository: {
      ROOT: `${room.data}/repositories`,
      DEFAULT_BRANCH: "main",
      ENABLE_PUSH_CREATE_USER: true,
      ENABLE_PUSH_CREATE_ORG: true,
    },
    git: { HOME_PATH: `${room.data}/home` },
    webhook: { ALLOWED_HOST_LIST: "loopback, private", DELIVER_TIMEOUT: 5 },
    service: { DISABLE_REGISTRATION: true, REGISTER_EMAIL_CONFIRM: false },
    openid: { ENABLE_OPENID_SIGNIN: false },
    log: { MODE: "console", LEVEL: "Warn", "logger.router.MODE": "", "logger.access.MODE": "" },
    indexer: { ISSUE_INDEXER_TYPE: "db" },
    session: { PROVIDER: "memory" },
    actions: { ENABLED: false },
    packages: { ENABLED: false },
    mirror: { ENABLED: false },
    "cron.update_checker": { ENABLED: false },
  };
  const general = ["APP_NAME = Slipway", "RUN_MODE = prod", "RUN_USER = git", `WORK_PATH = ${room.data}`];
  const parts = Object.entries(sections).map(([name, settings]) => {
    const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}`);
    return [`[${name}]`, ...lines].join("\n");
  });
  return `${[general.join("\n"), ...parts].join("\n\n")}\n`;
}
