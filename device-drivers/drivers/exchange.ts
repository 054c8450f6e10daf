import { deadline, pause } from '../../policy/platform.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import type { Noise, ResyncingCodec } from '../protocols/codec.ts'
import type { ByteLink } from '../transports/byte-link.ts'
import type { Speaker } from '../transports/shared-links.ts'

/** One question on a link where one is under way at a time. */
export interface Question<Frame> {
  readonly frame: Frame
  /** Which device is asked, for a person. */
  readonly who: string
  /** How long to wait for the answer, ms. */
  readonly timeoutMs: number
  /** Whether this frame is the answer. Left out: none is waited for. */
  answers?(frame: Frame): boolean
  /** Commands go before polls, so that a siren or the end of a pulse never waits behind them. Default: command. */
  readonly lane?: Lane
  /** Takes the question back while it waits; once its bytes are out it runs to its end. */
  readonly signal?: AbortSignal
  /** Called right before the first byte is handed to the link. */
  readonly onHanded?: () => void
}

export type Lane = 'command' | 'poll'

/** No answer, or none that can be trusted. `handed`: the device may have received the question. */
export interface LostAnswer {
  readonly kind: 'lost'
  readonly handed: boolean
  readonly detail: string
}

/** `answered` without a frame: it was sent and no answer was asked for. */
export type ExchangeAnswer<Frame> =
  | { readonly kind: 'answered'; readonly frame: Frame }
  | { readonly kind: 'sent' }
  | LostAnswer

/**
 * Question and answer on one link, for protocols in which a device speaks when it is asked. Questions
 * wait in line; a frame that answers nothing goes to `onStray`.
 */
export interface Exchange<Frame> extends Speaker {
  /** Never rejects. */
  ask(question: Question<Frame>): Promise<ExchangeAnswer<Frame>>
  /** `listener` is told of bytes that are no answer. */
  onNoise(listener: (noise: Noise) => void): Cancel
}

export interface ExchangeOptions<Frame> {
  readonly codec: ResyncingCodec<Frame>
  /** The line stays quiet for so long between two frames, ms. */
  readonly gapMs: number
  /** After a lost answer the line is left alone for so long, so that a late one cannot pass for the next, ms. */
  readonly quarantineMs: number
  /** A frame that answers nothing: noise to be told, or null when it was expected. */
  onStray(frame: Frame): Noise | null
}

const MOST_WAITING = 64
/** Bytes that stop within a frame for so long will not go on: above what USB adapters hold back (16 ms). */
const SILENCE_MS = 50

interface Job<Frame> {
  readonly question: Question<Frame>
  readonly settle: (answer: ExchangeAnswer<Frame>) => void
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Begins to listen on a link. */
export function startExchange<Frame>(
  options: ExchangeOptions<Frame>,
  link: ByteLink,
  platform: Platform,
): Exchange<Frame> {
  const { codec, gapMs, quarantineMs } = options
  const { clock, timers } = platform
  const lanes: Record<Lane, Job<Frame>[]> = { command: [], poll: [] }
  const listeners = new Set<(noise: Noise) => void>()
  let pending: Job<Frame> | null = null
  let working = false
  let over: string | null = null
  let quietUntil = 0
  let cancelSilence: Cancel = () => {}
  let tellEnded = (_reason: string) => {}
  const ended = new Promise<string>((resolve) => {
    tellEnded = resolve
  })

  function tellNoise(noise: Noise | null): void {
    if (noise) for (const listener of listeners) listener(noise)
  }

  function accept(frame: Frame): void {
    if (pending?.question.answers?.(frame)) pending.settle({ kind: 'answered', frame })
    else tellNoise(options.onStray(frame))
  }

  function silence(): void {
    for (const frame of codec.silence()) accept(frame)
    tellNoise(codec.takeNoise())
  }

  function hear(chunk: Uint8Array): void {
    cancelSilence()
    quietUntil = Math.max(quietUntil, clock.elapsed() + gapMs)
    for (const frame of codec.push(chunk)) accept(frame)
    tellNoise(codec.takeNoise())
    if (codec.held > 0) cancelSilence = timers.after(SILENCE_MS, silence)
  }

  function end(reason: string): void {
    if (over) return
    over = reason
    cancelSilence()
    pending?.settle({ kind: 'lost', handed: true, detail: reason })
    for (const lane of Object.values(lanes))
      for (const job of lane.splice(0)) job.settle({ kind: 'lost', handed: false, detail: reason })
    tellEnded(reason)
  }

  async function listen(): Promise<void> {
    try {
      for await (const chunk of link.bytes) hear(chunk)
      end('the other side closed the link')
    } catch (error) {
      end(text(error))
    }
  }

  async function exchange(question: Question<Frame>): Promise<ExchangeAnswer<Frame>> {
    const wait = quietUntil - clock.elapsed()
    if (wait > 0) await pause(timers, wait)
    if (over) return { kind: 'lost', handed: false, detail: over }
    if (question.signal?.aborted) return { kind: 'lost', handed: false, detail: 'taken back before it was sent' }
    const limit = deadline(timers, question.timeoutMs)
    const answer = await new Promise<ExchangeAnswer<Frame>>((settle) => {
      pending = { question, settle }
      const lost = (detail: string) => settle({ kind: 'lost', handed: true, detail })
      const onTimeout = () => lost(`${question.who} gave no answer within ${question.timeoutMs} ms`)
      limit.signal.addEventListener('abort', onTimeout, { once: true })
      question.onHanded?.()
      link
        .write(codec.encode(question.frame), limit.signal)
        .then(() => {
          if (!question.answers) settle({ kind: 'sent' })
        })
        .catch((error: unknown) => lost(text(error)))
    })
    limit.done()
    pending = null
    if (answer.kind === 'lost' && quarantineMs > 0) {
      silence()
      quietUntil = clock.elapsed() + quarantineMs
    }
    return answer
  }

  async function work(): Promise<void> {
    if (working) return
    working = true
    for (
      let job = lanes.command.shift() ?? lanes.poll.shift();
      job;
      job = lanes.command.shift() ?? lanes.poll.shift()
    ) {
      job.settle(await exchange(job.question))
    }
    working = false
  }

  void listen()
  return {
    ended,
    ask: (question) =>
      new Promise((settle) => {
        const unsent = (detail: string) => settle({ kind: 'lost', handed: false, detail })
        if (over) return unsent(over)
        const lane = lanes[question.lane ?? 'command']
        if (lane.length >= MOST_WAITING) return unsent(`${MOST_WAITING} requests wait for this link already`)
        lane.push({ question, settle })
        void work()
      }),
    onNoise(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
