import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { assert } from '../../../policy/assert.ts'
import type { Client } from './client.ts'
import type { Scene } from './scene.ts'
import type { Step } from './history.ts'

/** A server that receives webhooks. */
export interface Receiver {
  readonly url: string
  /** Number of deliveries of each event id. */
  readonly deliveries: ReadonlyMap<string, number>
  close(): void
}

/** Starts a server that accepts every webhook. */
export async function startReceiver(): Promise<Receiver> {
  const deliveries = new Map<string, number>()
  const server = createServer((request: IncomingMessage, response) => {
    const id = String(request.headers['webhook-id'])
    request.resume().on('end', () => {
      deliveries.set(id, (deliveries.get(id) ?? 0) + 1)
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    deliveries,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** A program that follows the protection events of a store by cursors. */
export interface Follower {
  /** Reads one page of events. Returns true if there may be more events. */
  readPage(): Promise<boolean>
  /** Follows to the end, lists all events again, and returns what the follower missed. */
  missed(): Promise<string[]>
}

const PAGE = 7
const LISTED_AT_ONCE = 500

/** Creates a follower of the scene's first store. */
export function newFollower(client: Client, { storeId }: Scene): Follower {
  const seen = new Set<string>()
  let cursor: string | undefined

  async function page(limit: number, after: string | undefined) {
    const body = { storeId, limit, ...(after !== undefined && { cursor: after }) }
    const { answer, outcome } = await client.call('fetchProtectionEvents', body)
    const events = (answer['events'] ?? []) as { eventId: string }[]
    return { isRead: outcome === 'done', ids: events.map(({ eventId }) => eventId), next: answer['nextCursor'] }
  }

  async function readPage(): Promise<boolean> {
    const { ids, next, isRead } = await page(PAGE, cursor)
    for (const id of ids) seen.add(id)
    if (typeof next === 'string') cursor = next
    return typeof next === 'string' || !isRead
  }

  return {
    readPage,
    async missed() {
      while (await readPage());
      const all: string[] = []
      for (let after: string | undefined, isMore = true; isMore;) {
        const { ids, next, isRead } = await page(LISTED_AT_ONCE, after)
        assert(isRead, 'the events cannot be listed')
        all.push(...ids)
        isMore = typeof next === 'string'
        after = isMore ? String(next) : after
      }
      const twice = all.length - new Set(all).size
      const lost = all.filter((id) => !seen.has(id))
      return [
        ...(twice > 0 ? [`the list of protection events has ${twice} events twice`] : []),
        ...(lost.length > 0 ? [`a follower missed ${lost.length} of ${all.length} events: ${lost[0]}`] : []),
      ]
    },
  }
}

/** Rotates token keys, and checks which key signed the tokens of a history. */
export interface KeyRoller {
  rotate(): Promise<void>
  /** Tokens that were signed with a key after the replacement of this key. */
  lateSignatures(steps: readonly Step[]): string[]
}

/** Creates the `KeyRoller` for the account of the client. */
export function newKeyRoller(client: Client, adminKey: string, accountOf: () => Promise<string>): KeyRoller {
  const rotations: { kid: string; to: number }[] = []
  let accountId: string | undefined
  return {
    async rotate() {
      accountId ??= await accountOf()
      const { outcome, answer, to } = await client.call(
        'rotateSigningKey',
        { use: 'token', mode: 'test', accountId },
        { bearer: adminKey },
      )
      if (outcome === 'done') rotations.push({ kid: String(answer['kid']), to })
    },
    lateSignatures(steps) {
      return steps.flatMap(({ answer, from, operation }) => {
        const token = answer['authorizationToken']
        if (operation !== 'verifyProtectedItem' || typeof token !== 'string') return []
        const kid = kidOf(token)
        const n = rotations.findIndex((rotation) => rotation.kid === kid)
        const next = rotations[n + 1]
        const isLate = n >= 0 && next !== undefined && from > next.to
        return isLate ? [`a token was signed by ${kid} at ${from}; ${next.kid} replaced this key at ${next.to}`] : []
      })
    },
  }
}

function kidOf(token: string): string {
  const [header = ''] = token.split('.')
  return (JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }).kid
}
