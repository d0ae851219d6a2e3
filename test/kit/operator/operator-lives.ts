import type { KubeConfig } from "@kubernetes/client-node";
import { CrashingProcess, type WriteKey } from "./crashing-process.ts";
import { grantedConfig } from "./grant.ts";
import { eventually, startOperator, type TestCluster } from "./harness.ts";

/** One operator after the other on a real apiserver, each of which crashes right after a write that none before it has made. */
export class OperatorLives {
  readonly #cluster: TestCluster;
  readonly #options: Parameters<typeof startOperator>[1];
  #life: CrashingProcess | undefined;
  #count = 0;
  #isOver = false;
  #living: Promise<void> = Promise.resolve();

  private constructor(cluster: TestCluster, options: Parameters<typeof startOperator>[1]) {
    this.#cluster = cluster;
    this.#options = options;
  }

  /** @param options of every one of them */
  static async start(
    cluster: TestCluster,
    options: Parameters<typeof startOperator>[1],
  ): Promise<OperatorLives> {
    const everything = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }];
    const config = await grantedConfig(cluster, "default", { cluster: everything, namespaced: {} });
    const lives = new OperatorLives(cluster, options);
    lives.#living = lives.#live(config);
    return lives;
  }

  /** How many there were so far. */
  get count(): number {
    return this.#count;
  }

  /** Ends the operator of now, and waits for the next one. */
  async kill(): Promise<void> {
    const before = this.#count;
    this.#life?.kill();
    await eventually(async () => this.#count > before);
  }

  /** Ends the last one. */
  async stop(): Promise<void> {
    this.#isOver = true;
    this.#life?.kill();
    await this.#living;
  }

  async #live(config: KubeConfig): Promise<void> {
    const written = new Set<WriteKey>();
    while (!this.#isOver) {
      const process = await CrashingProcess.start(this.#cluster.api.url, written);
      this.#life = process;
      this.#count += 1;
      const clusters = config.clusters.map((one) => ({
        name: one.name,
        server: process.server,
        skipTLSVerify: true,
      }));
      const kubeConfig = Object.assign(Object.create(Object.getPrototypeOf(config)), config, { clusters });
      const operator = await startOperator(this.#cluster, { ...this.#options, kubeConfig });
      await process.ended;
      await operator.stop().catch(() => undefined);
    }
  }
}
