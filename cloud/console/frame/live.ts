import type { Context, Hono } from 'hono'
import type { Platform } from '../../../policy/platform.ts'
import { tenantOf } from '../../platform/foundation/caller.ts'
import type { ChangeFeed, ChangeFilter } from '../../platform/operations/change-feed.ts'
import type { ConsoleAccess, ConsoleSession } from './access.ts'
import type { ConsolePage } from './page.ts'
import { asMode, asStore } from './preferences.ts'

/** Shortest time between two messages to a page, ms. The first message after a quiet time goes out at once. */
const QUIET_MS = 1_000
/** Time between two comments that keep the connection open through proxies, ms. */
const COMMENT_MS = 20_000
/** Longest time of one stream, ms. The browser then reconnects, so that ended sessions lose their stream. */
const STREAM_MS = 10 * 60_000
/** Maximum number of open streams of one user in a process: some tabs on some devices. */
const STREAMS_OF_USER = 20
const TOPICS_LIMIT = 30

interface LiveParts {
  readonly access: ConsoleAccess
  readonly services: { readonly platform: Platform; readonly changes: ChangeFeed }
}

/**
 * `GET /console/live?mode=…&store=…&topics=…`: server-sent events `changed`, without data. The page then fetches its
 * live parts again. The stream reports only topics of pages that the role opens, in a mode and stores that the user may
 * see. The session is read again before each message. If the session has ended or has other rights, the stream ends.
 * Answers 204 if the user has too many streams: the browser does not reconnect, and the page still reads every 30
 * seconds.
 */
export function liveRoute(app: Hono, { access, services }: LiveParts, pages: readonly ConsolePage[]): void {
  const open = new Map<string, number>()
  app.get('/console/live', async (c) => {
    const session = await access.sessionOf(c)
    const filter = session && filterOf(c, session, pages)
    if (!filter) return c.body(null, 204)
    const { userId } = session.user
    const count = open.get(userId) ?? 0
    if (count >= STREAMS_OF_USER) return c.body(null, 204)
    const mayListen = async () => isSameUser(session, await access.sessionOf(c))
    const stream = changeStream(filter, mayListen, services, () => {
      const left = (open.get(userId) ?? 1) - 1
      if (left === 0) open.delete(userId)
      else open.set(userId, left)
    })
    if (!stream) return c.body(null, 204)
    open.set(userId, count + 1)
    return new Response(stream, {
      headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
    })
  })
}

/** Changes that the stream reports; undefined if the session may not use the mode. */
function filterOf(c: Context, session: ConsoleSession, pages: readonly ConsolePage[]): ChangeFilter | undefined {
  const { accountId, role, storeIds: own } = session.user
  const mode = asMode(c.req.query('mode')) ?? session.mode
  if (mode === 'live' && !session.mayUseLive) return undefined
  const storeId = asStore(c.req.query('store'))
  const wanted = new Set((c.req.query('topics') ?? '').split(',').slice(0, TOPICS_LIMIT))
  const allowed = pages.filter(({ roles }) => roles.includes(role)).flatMap(({ live }) => live ?? [])
  const isOne = storeId !== undefined && storeId !== 'all'
  return {
    tenant: tenantOf(accountId, mode),
    topics: new Set(allowed.filter((topic) => wanted.has(topic))),
    storeIds: isOne ? new Set([storeId].filter((id) => own?.includes(id) ?? true)) : own && new Set(own),
    seesAllStores: own === null,
  }
}

function isSameUser(before: ConsoleSession, now: ConsoleSession | undefined): boolean {
  const rights = ({ user: { userId, role, storeIds }, mayUseLive }: ConsoleSession) =>
    JSON.stringify([userId, role, storeIds, mayUseLive])
  return now !== undefined && rights(now) === rights(before)
}

/** A stream of `changed` messages; undefined if the process has too many listeners. */
function changeStream(
  filter: ChangeFilter,
  mayListen: () => Promise<boolean>,
  { platform, changes }: LiveParts['services'],
  onEnd: () => void,
): ReadableStream<Uint8Array> | undefined {
  const encoder = new TextEncoder()
  const { clock, timers } = platform
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined
  let sentMs = -QUIET_MS
  let isDue = false
  const cancels = new Set<() => void>()

  const after = (ms: number, task: () => void) => {
    const cancel = timers.after(ms, () => {
      cancels.delete(cancel)
      task()
    })
    cancels.add(cancel)
  }
  const write = async (text: string) => {
    if (!(await mayListen().catch(() => false))) return close()
    // Skips a client that does not read: one waiting message has the same effect as many.
    if (sink && (sink.desiredSize ?? 0) > 0) sink.enqueue(encoder.encode(text))
  }
  const send = () => {
    isDue = false
    sentMs = clock.elapsed()
    void write('event: changed\ndata:\n\n')
  }
  const unsubscribe = changes.subscribe(filter, () => {
    if (isDue) return
    isDue = true
    const waitMs = sentMs + QUIET_MS - clock.elapsed()
    if (waitMs <= 0) send()
    else after(waitMs, send)
  })
  if (!unsubscribe) return undefined

  const end = () => {
    if (!cancels.size && !sink) return
    for (const cancel of cancels) cancel()
    cancels.clear()
    sink = undefined
    unsubscribe()
    onEnd()
  }
  const close = () => {
    const ending = sink
    end()
    ending?.close()
  }
  const comment = () => {
    void write(': open\n\n')
    after(COMMENT_MS, comment)
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        sink = controller
        comment()
        after(STREAM_MS, close)
      },
      cancel: end,
    },
    { highWaterMark: 4 },
  )
}
