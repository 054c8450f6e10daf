import { Hono } from 'hono'
import type { Platform } from '../policy/platform.ts'
import type { Log } from '../cloud/platform/foundation/log.ts'
import type { MetricsOfProcess } from '../cloud/service/monitoring/metrics.ts'
import { shownHost } from './cloud-broker.ts'
import { listen } from './http-server.ts'
import type { Values } from './options.ts'
import type { CLOUD_OPTIONS } from './settings/cloud.ts'

/** Maximum age of the metrics in a response, ms. Several Prometheus servers may read them. */
const RESULT_LIFE_MS = 1_000

/** A listening server for metrics. */
interface MetricsServer {
  /** Fields of the ready line. */
  readonly ready: { readonly metricsUrl: string }
  close(): Promise<void>
}

/**
 * Serves `/metrics` on a port of its own, so that the public port never shows figures of the installation. Returns
 * undefined without `--metrics-port`. `collect` returns the metrics of all processes of this cloud.
 */
export async function metricsServer(
  { metricsHost: host, metricsPort: port }: Pick<Values<typeof CLOUD_OPTIONS>, 'metricsHost' | 'metricsPort'>,
  platform: Platform,
  { warn }: Pick<Log, 'warn'>,
  collect: () => Promise<readonly MetricsOfProcess[]>,
): Promise<MetricsServer | undefined> {
  if (port === undefined) return undefined
  const { METRICS_TYPE, metricsText } = await import('../cloud/service/monitoring/metrics.ts')
  let latest: { atMs: number; text: Promise<string> } | undefined
  const text = () => {
    const nowMs = platform.clock.elapsed()
    if (latest === undefined || nowMs - latest.atMs >= RESULT_LIFE_MS)
      latest = { atMs: nowMs, text: collect().then(metricsText) }
    return latest.text
  }
  const app = new Hono()
  app.get('/metrics', async (c) => c.body(await text(), 200, { 'content-type': METRICS_TYPE }))
  app.get('/', (c) => c.redirect('/metrics'))
  const server = await listen({ host, port, flag: 'metrics-port', platform, warn })
  server.serve(app)
  return { ready: { metricsUrl: `http://${shownHost(host)}:${server.port}/metrics` }, close: server.close }
}
