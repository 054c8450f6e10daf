import type { PolicyClaims } from '../../policy/documents/store-documents.ts'
import type { Feed } from '../feed.ts'
import { liveEvent } from './live-event.ts'
import { GATE_LINES } from './model/gate-view.ts'
import type { LiveEvent } from './model/wire.ts'

export type LiveResult = LiveEvent & { type: 'result' }

/** The last results of each device, for pages that open later. */
export interface RecentResults {
  /** Newest first. */
  of(deviceId: string): readonly LiveResult[]
}

export interface RecentResultsParts {
  feed: Pick<Feed, 'listen'>
  /** True for devices of this agent. Programs may send other ids. */
  isOurs(deviceId: string): boolean
  policy(): PolicyClaims | undefined
}

/** Collects results until the agent stops. */
export function recentResults({ feed, isOurs, policy }: RecentResultsParts): RecentResults {
  const results = new Map<string, LiveResult[]>()
  async function listen(): Promise<void> {
    for await (const event of feed.listen(new AbortController().signal)) {
      if (event.type !== 'result' || event.result.kind === 'operator' || !isOurs(event.deviceId)) continue
      const live = liveEvent(event, policy())
      if (live.type === 'result')
        results.set(event.deviceId, [live, ...(results.get(event.deviceId) ?? [])].slice(0, GATE_LINES))
    }
  }
  void listen()
  return { of: (deviceId) => results.get(deviceId) ?? [] }
}
