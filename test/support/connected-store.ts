import { virtualPlatform, type VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { startTestCloud, type Answer, type Json, type TestCloud } from './cloud.ts'
import type { DatabaseKind } from './databases.ts'
import { liveStores } from './live-store.ts'
import { stopInVirtualTime, until } from './receiver.ts'

/** A live store whose cloud may connect to systems on this machine. Its timers run on virtual time. */
export interface ConnectedStore {
  cloud: TestCloud
  platform: VirtualPlatform
  storeId: string
  key: string
  call(operation: string, body?: Json, headers?: Record<string, string>): Promise<Answer>
  ok(operation: string, body?: Json, headers?: Record<string, string>): Promise<Json>
  events(type: string): Promise<Json[]>
  /** Another store of the same account. */
  newStore(): Promise<string>
  stop(): Promise<void>
}

export async function openConnectedStore(kind: DatabaseKind): Promise<ConnectedStore> {
  const platform = virtualPlatform({ startMs: Date.parse('2026-11-20T09:00:00Z') })
  const cloud = await startTestCloud(kind, { platform, config: { allowPrivateTargets: true } })
  const key = await cloud.key('secret', 'live')
  const newStore = async () => (await liveStores(cloud, key))[0] ?? ''
  const storeId = await newStore()
  const call: ConnectedStore['call'] = async (operation, body = {}, headers = {}) => {
    let answer: Answer | undefined
    let fault: unknown
    cloud.call(key, operation, { storeId, ...body }, headers).then(
      (a) => (answer = a),
      (error: unknown) => (fault = error),
    )
    // Real sockets need real time. While the request makes no progress, virtual time advances.
    let quiet = 0
    await until(operation, async () => {
      if (answer || fault) return true
      if (++quiet % 5 === 0) await platform.advance(1_000)
      return false
    })
    if (!answer) throw fault
    return answer
  }
  return {
    cloud,
    platform,
    storeId,
    key,
    call,
    async ok(operation, body, headers) {
      const answer = await call(operation, body, headers)
      if (answer.status !== 200) throw new Error(`${operation} answered ${answer.status}: ${answer.text}`)
      return answer.body
    },
    async events(type) {
      const rows = await cloud.db.database.reads
        .selectFrom('outbox_event')
        .select('data')
        .where('type', '=', type)
        .execute()
      return rows.map(({ data }) => JSON.parse(data))
    },
    newStore,
    stop: () => stopInVirtualTime(cloud, platform),
  }
}
