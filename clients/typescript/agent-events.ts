import type { AgentAnswer } from '../../edge-agent/http/operations.ts'
import { AgentError, asAgentError, errorOfAnswer, UntagError } from './error.ts'
import { exchange, textOf, unreachable } from './exchange.ts'
import type { ClientPlatform } from './platform.ts'

/** Buffers events for one consumer. A full buffer drops its oldest events and counts them. */
interface EventBuffer<E> {
  push(event: E): void
  /** Ends the stream after the buffered events. After these events the stream throws `error`, if there is one. */
  end(error?: unknown): void
  read(): AsyncGenerator<E | Missed, void, undefined>
}

/** Event for the consumer: `count` events before the next event were dropped. */
interface Missed {
  type: 'missed'
  count: number
}

/** Creates a buffer of at most `limit` events. */
export function eventBuffer<E>(limit: number): EventBuffer<E> {
  const waiting: E[] = []
  let missed = 0
  let ended: { error?: unknown } | undefined
  let wake: () => void = () => undefined

  return {
    push(event) {
      if (waiting.length >= limit) {
        waiting.shift()
        missed++
      }
      waiting.push(event)
      wake()
    },
    end(error) {
      ended ??= { error }
      wake()
    },
    async *read() {
      for (;;) {
        if (missed > 0) {
          const count = missed
          missed = 0
          yield { type: 'missed', count }
        }
        const event = waiting.shift()
        if (event !== undefined) yield event
        else if (ended) {
          if (ended.error !== undefined) throw ended.error
          return
        } else await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}

/** Maximum size of one event, characters. */
const EVENT_LIMIT = 1024 * 1024

/** Parses server-sent events (WHATWG HTML §9.2) from text that arrives in chunks. */
interface EventReader {
  /** Adds a chunk and returns the data of the events that are now complete. Throws when an event is too large. */
  read(text: string): string[]
}

/** Creates a reader for a new stream. */
export function eventReader(): EventReader {
  let rest = ''
  let data: string[] = []
  let size = 0

  function line(text: string): string | undefined {
    if (text === '') {
      const event = data.length > 0 ? data.join('\n') : undefined
      data = []
      size = 0
      return event
    }
    const value = /^data(?:: ?(.*))?$/s.exec(text)
    if (value) data.push(value[1] ?? '')
    size += text.length
    return undefined
  }

  return {
    read(text) {
      const events: string[] = []
      // A CR at the end may be the first half of a CRLF.
      const parts = `${rest}${text}`.split(/\r\n|\n|\r(?!$)/)
      rest = parts.pop() ?? ''
      for (const part of parts) {
        const event = line(part)
        if (event !== undefined) events.push(event)
        if (size > EVENT_LIMIT) break
      }
      if (size + rest.length > EVENT_LIMIT) throw new Error('an event is too large')
      return events
    },
  }
}

/** An event of the agent, or of the connection to it. */
export type AgentEvent =
  | AgentAnswer<'events'>
  | { type: 'connected' }
  | { type: 'disconnected'; error: AgentError }
  | Missed

export interface EventOptions {
  /** Ends the stream. */
  signal?: AbortSignal
  /** Maximum events in the buffer; 1,000 by default. */
  bufferLimit?: number
  /** Timeout for the connection, and for the check after silence, ms; 5,000 by default. */
  timeoutMs?: number
  /** Silence after which the client checks the agent, ms; 40,000 by default. */
  silenceMs?: number
}

interface FollowOptions extends EventOptions {
  baseUrl: string
  headers: Readonly<Record<string, string>>
}

const BUFFER_LIMIT = 1_000
const TIMEOUT_MS = 5_000
/** Default of `silenceMs`. An online agent sends events at shorter intervals. */
const SILENCE_MS = 40_000
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 5_000

/** Yields events until the consumer stops, `signal` aborts, or the agent rejects the request. */
export async function* followEvents(
  following: FollowOptions,
  platform: ClientPlatform,
): AsyncGenerator<AgentEvent, void, undefined> {
  const buffer = eventBuffer<AgentEvent>(following.bufferLimit ?? BUFFER_LIMIT)
  const leaving = new AbortController()
  const leave = () => leaving.abort()
  if (following.signal?.aborted === true) return
  following.signal?.addEventListener('abort', leave, { once: true })
  const running = reconnectUntilRefused(following, platform, leaving.signal, buffer.push).then(
    () => buffer.end(),
    (error: unknown) => buffer.end(error),
  )
  try {
    yield* buffer.read()
  } finally {
    leave()
    following.signal?.removeEventListener('abort', leave)
    await running
  }
}

/** Reconnects until the signal aborts, after about 1, 2, 4, then 5 s. Rejects if the agent rejects the request. */
async function reconnectUntilRefused(
  following: FollowOptions,
  platform: ClientPlatform,
  signal: AbortSignal,
  push: (event: AgentEvent) => void,
): Promise<void> {
  let failures = 0
  let isLost = false
  const onEvent = (event: AgentEvent) => {
    // `connected` does not reset the delay, because a failing agent may accept a connection and close it at once.
    if (event.type !== 'connected') failures = 0
    isLost = false
    push(event)
  }
  while (!signal.aborted) {
    const error = asAgentError(await readOnce(following, platform, signal, onEvent).catch((thrown: unknown) => thrown))
    if (signal.aborted) return
    if (!(error instanceof AgentError) || isRefusal(error)) throw error
    if (!isLost) push({ type: 'disconnected', error })
    isLost = true
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures++)
    await pause(waitMs * (0.75 + platform.random() / 2), platform, signal)
  }
}

/**
 * True for errors that a retry cannot fix. Other errors are transient, for example if the agent restarts or has too
 * many listeners.
 */
function isRefusal({ status }: AgentError): boolean {
  return status >= 400 && status < 500 && status !== 429
}

/** Reads one connection until it ends. Returns the reason. */
async function readOnce(
  { baseUrl, headers, timeoutMs = TIMEOUT_MS, silenceMs = SILENCE_MS }: FollowOptions,
  platform: ClientPlatform,
  signal: AbortSignal,
  onEvent: (event: AgentEvent) => void,
): Promise<UntagError> {
  const ending = new AbortController()
  let endReason: UntagError | undefined
  const end = (error?: UntagError) => {
    endReason ??= error
    ending.abort()
  }
  const stop = () => end()
  signal.addEventListener('abort', stop, { once: true })
  let cancel = platform.after(timeoutMs, () =>
    end(new UntagError(`no answer within ${timeoutMs} ms`, { status: 0, code: 'timeout' })),
  )
  /** Detects a connection that broke without a close. */
  const watch = () => {
    cancel()
    if (ending.signal.aborted) return
    cancel = platform.after(silenceMs, () => {
      const statusRequest = {
        url: `${baseUrl}/v1/status`,
        init: { headers },
        baseUrl,
        timeoutMs,
        signal: ending.signal,
      }
      exchange(statusRequest, platform).then(watch, (error: unknown) => end(unreachable(baseUrl, error)))
    })
  }
  try {
    const init = {
      headers: { ...headers, accept: 'text/event-stream' },
      redirect: 'error' as const,
      signal: ending.signal,
    }
    const response = await platform.fetch(`${baseUrl}/v1/events`, init)
    if (!response.ok) {
      const text = await textOf(response, ending.signal)
      throw errorOfAnswer(response.status, response.headers, text, platform.now())
    }
    if (!response.body || !/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? ''))
      throw new UntagError('the answer is no stream of events', { status: response.status, code: 'bad-answer' })
    watch()
    onEvent({ type: 'connected' })
    await readEvents(response.body, ending.signal, onEvent, watch)
    return new UntagError('the agent closed the stream', { status: 0, code: 'network' })
  } catch (error) {
    return endReason ?? (error instanceof UntagError ? error : unreachable(baseUrl, error))
  } finally {
    cancel()
    end()
    signal.removeEventListener('abort', stop)
  }
}

async function readEvents(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  onEvent: (event: AgentEvent) => void,
  onPiece: () => void,
): Promise<void> {
  const decoder = new TextDecoder()
  const events = eventReader()
  const reader = body.getReader()
  // Some `fetch` implementations do not end the body when the signal aborts.
  signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true })
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    onPiece()
    for (const data of events.read(decoder.decode(value, { stream: true }))) onEvent(eventIn(data))
  }
}

function eventIn(data: string): AgentEvent {
  const event = JSON.parse(data) as AgentEvent | null
  if (typeof event?.type !== 'string') throw new Error('an event has no type')
  return event
}

function pause(ms: number, platform: ClientPlatform, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = platform.after(ms, done)
    function done(): void {
      cancel()
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done, { once: true })
  })
}
