import { listen } from '../../host/http-server.ts'
import { outgoingHttp } from '../../host/outgoing-http.ts'
import type { OutgoingHttp } from '../../cloud/platform/outgoing/outgoing-http.ts'
import { simulatedPsp, type SimulatedPsp } from '../../simulators/services/psp.ts'
import type { PspName } from '../../simulators/services/psp-books.ts'
import { virtualPlatform, type VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { startTestCloud, type Json, type TestCloud } from './cloud.ts'
import type { DatabaseKind } from './databases.ts'
import { liveStores } from './live-store.ts'
import { stopInVirtualTime, until } from './receiver.ts'

/** A live store with a simulated payment provider, both on real sockets. */
export interface PaidStore {
  cloud: TestCloud
  platform: VirtualPlatform
  psp: SimulatedPsp
  storeId: string
  key: string
  config: Record<string, string>
  notifyUrl: string
  ok(operation: string, body?: unknown, headers?: Record<string, string>): Promise<Json>
  call: TestCloud['call'] extends (key: string | null, ...rest: infer R) => infer A ? (...rest: R) => A : never
  /** Starts a checkout without paying. */
  start(quantity?: number): Promise<Json>
  /** Id of the session at the provider for a purchase. */
  sessionOf(transactionId: string): Promise<string>
  statusOf(transactionId: string): Promise<string>
  exceptions(kind: string): Promise<Json[]>
  /**
   * Advances virtual time in small steps until the condition holds. Pauses while the provider responds in real time.
   */
  wait(what: string, check: () => boolean | Promise<boolean>, stepMs?: number): Promise<void>
  /** Advances virtual time by `ms`, like `wait`. */
  pass(ms: number, stepMs?: number): Promise<void>
  stop(): Promise<void>
}

export const PRODUCT = { ean: '4012345678901', name: 'Leinenhemd', priceCent: 4_990 }

export async function openPaidStore(kind: DatabaseKind, dialect: PspName = 'custom'): Promise<PaidStore> {
  const platform = virtualPlatform({ startMs: Date.parse('2026-11-20T09:00:00Z') })
  const outgoing = countedHttp()
  const cloud = await startTestCloud(kind, { platform, outgoing, config: { allowPrivateTargets: true } })
  const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
  server.serve(cloud.cloud.app)
  const key = await cloud.key('secret', 'live')
  const [storeId = ''] = await liveStores(cloud, key, { products: [PRODUCT] })
  const notifyUrl = `http://127.0.0.1:${server.port}/api/v1/notify/${dialect}/${storeId}`
  const psp = await simulatedPsp({ dialect, notifyUrl: () => notifyUrl, nowMs: () => platform.clock.wall() })
  const config = psp.config()
  const ok: PaidStore['ok'] = (operation, body, headers) => cloud.ok(key, operation, body, headers)
  const { reads } = cloud.db.database
  await ok('configurePSP', { storeId, provider: dialect, config })
  const wait: PaidStore['wait'] = (what, check, stepMs = 1_000) =>
    until(what, async () => {
      if (await check()) return true
      if (outgoing.underWay > psp.unanswered) return false
      // Skips time at once; due jobs still run.
      platform.sleep(stepMs - 1_000)
      await platform.advance(1_000)
      return false
    })
  return {
    cloud,
    platform,
    psp,
    storeId,
    key,
    config,
    notifyUrl,
    ok,
    call: (...rest) => cloud.call(key, ...rest),
    async start(quantity = 1) {
      const { sessionId } = await ok('checkIn', { storeId })
      return ok('startCheckout', { sessionId, items: [{ ean: PRODUCT.ean, quantity }] })
    },
    async sessionOf(transactionId) {
      const rows = await reads
        .selectFrom('payment')
        .select('provider_ref')
        .where('purchase_id', '=', transactionId)
        .where('provider_ref', 'is not', null)
        .execute()
      return rows[0]?.provider_ref ?? ''
    },
    statusOf: async (transactionId) => (await ok('fetchPurchase', { transactionId })).status,
    exceptions: (exceptionKind) =>
      reads.selectFrom('protection_exception').selectAll().where('kind', '=', exceptionKind).execute(),
    wait,
    pass(ms, stepMs = 30_000) {
      const endMs = platform.clock.wall() + ms
      return wait(`${ms} ms`, () => platform.clock.wall() >= endMs, stepMs)
    },
    async stop() {
      psp.release()
      await server.close()
      await stopInVirtualTime(cloud, platform)
      await psp.close()
    },
  }
}

/** The real HTTP client, which also counts its pending requests. */
function countedHttp(): OutgoingHttp & { readonly underWay: number } {
  const http = outgoingHttp()
  let underWay = 0
  return {
    ...http,
    get underWay() {
      return underWay
    },
    async send(...request) {
      underWay++
      try {
        return await http.send(...request)
      } finally {
        underWay--
      }
    },
  }
}
