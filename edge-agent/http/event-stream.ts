import type { Feed, FeedEvent } from '../feed.ts'
import type { Log } from '../log.ts'

/**
 *   feed ──▶ one line of text for each event ──▶ every listener's queue ──▶ its connection
 *
 * Server-sent events for pages and programs (WHATWG HTML §9.2). Each event is written as text once, however many follow.
 */

/** Maximum concurrent listeners of one agent, pages and programs. A shop has a handful of screens. */
export const LISTENER_LIMIT = 32
/** Maximum unread events of one listener. Above it the listener is disconnected; a page reconnects and gets the present state. */
export const BACKLOG_LIMIT = 200

export interface EventStream {
  /**
   * Returns a stream that begins with the present state; undefined above `LISTENER_LIMIT`. `disconnect` cuts its connection;
   * the stream ends with the first event after `mayListen` has become false.
   */
  open(disconnect: () => void, mayListen: () => boolean): Response | undefined
}

/** An event as it is sent: its type and its data. */
interface SentEvent {
  type: string
}

interface Listener {
  controller: ReadableStreamDefaultController<Uint8Array>
  disconnect(): void
  mayListen(): boolean
}

/** Sends the events of the feed, each as `describe` returns it. A new listener first gets `present`. */
export function eventStream(
  feed: Feed,
  describe: (event: FeedEvent) => SentEvent,
  present: () => SentEvent,
  log: Log,
): EventStream {
  const listeners = new Set<Listener>()
  const encoder = new TextEncoder()
  const write = (event: SentEvent) => encoder.encode(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

  async function sendAll(): Promise<void> {
    for await (const event of feed.listen(new AbortController().signal)) {
      if (listeners.size === 0) continue
      const text = write(describe(event))
      for (const listener of listeners) {
        if ((listener.controller.desiredSize ?? 0) > 0 && listener.mayListen()) listener.controller.enqueue(text)
        else drop(listener)
      }
    }
    for (const { controller } of listeners) controller.close()
    listeners.clear()
  }

  /** Closes the connection too: its queue would keep it open. */
  function drop(listener: Listener): void {
    listeners.delete(listener)
    listener.controller.close()
    listener.disconnect()
  }

  sendAll().catch((error: unknown) => log.error({ err: error }, 'pages and programs get no more events'))
  return {
    open(disconnect, mayListen) {
      if (listeners.size >= LISTENER_LIMIT) return undefined
      let own: Listener
      const body = new ReadableStream<Uint8Array>(
        {
          start(controller) {
            own = { controller, disconnect, mayListen }
            listeners.add(own)
            controller.enqueue(write(present()))
          },
          cancel: () => void listeners.delete(own),
        },
        { highWaterMark: BACKLOG_LIMIT },
      )
      return new Response(body, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })
    },
  }
}
