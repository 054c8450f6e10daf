import { assert } from '../../policy/assert.ts'
import { deadline, pause, retryDelays, type Platform } from '../../policy/platform.ts'
import type { ByteLink } from './byte-link.ts'
import { linkKey, type AnyLink } from './link-settings.ts'

/** Client of a protocol on one open link. All devices of the link use this client. */
export interface ProtocolClient {
  /** Resolves with the reason when the link has ended. Never rejects. */
  readonly ended: Promise<string>
}

/** Starts a protocol on a link. Devices can share a link only if they use the same protocol object. */
export interface LinkProtocol<S extends ProtocolClient> {
  readonly name: string
  start(link: ByteLink, settings: AnyLink, platform: Platform): S
}

/** The use of an open link by one device. */
export interface Membership<S extends ProtocolClient> {
  readonly client: S
  /** Resolves with the reason when the link is gone. */
  readonly lost: Promise<string>
  /** Call this function when the device has answered. */
  markResponsive(): void
  /**
   * Call this function when the device does not answer. The link ends only if none of its devices answers, because
   * one dead device must not disturb the others.
   */
  markUnresponsive(detail: string): void
  leave(): void
}

type OnFailure = (detail: string) => void

export type OpenLink = (settings: AnyLink, signal: AbortSignal) => Promise<ByteLink>

const OPEN_WITHIN_MS = 5_000
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
/** Time to send the last bytes when a session ends with `inOrder`, ms. */
const FLUSH_WITHIN_MS = 500

interface Session {
  readonly client: ProtocolClient
  readonly link: ByteLink
  readonly lost: Promise<string>
  readonly members: Set<{ silent: boolean }>
  /**
   * Ends the session. With `inOrder`, the link closes after the last bytes were sent, such as the OFF of an output.
   */
  end(reason: string, inOrder?: boolean): void
}

interface Entry {
  readonly protocol: LinkProtocol<ProtocolClient>
  session: Session | null
  opening: { done: Promise<void>; stop: AbortController; waiting: Set<OnFailure> } | null
  delays: Generator<number, never>
  /** Why the last session ended. */
  endReason: string
  /** Resolves when the previous link has released its port. Only then can the port be opened again. */
  closing: Promise<void>
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Opens each link once, for all devices on it. */
export class SharedLinks {
  readonly #open: OpenLink
  readonly #platform: Platform
  readonly #entries = new Map<string, Entry>()

  constructor(open: OpenLink, platform: Platform) {
    this.#open = open
    this.#platform = platform
  }

  /**
   * Joins a link and opens it if necessary. Retries until `signal` aborts, and reports each failure to `onFailure`.
   */
  async join<S extends ProtocolClient>(
    settings: AnyLink,
    protocol: LinkProtocol<S>,
    signal: AbortSignal,
    onFailure: OnFailure,
  ): Promise<Membership<S>> {
    const key = linkKey(settings)
    let entry = this.#entries.get(key)
    if (!entry) {
      entry = {
        protocol,
        session: null,
        opening: null,
        delays: this.#newDelays(),
        endReason: '',
        closing: Promise.resolve(),
      }
      this.#entries.set(key, entry)
    }
    assert(
      entry.protocol === protocol,
      `${key} is used for ${entry.protocol.name} and cannot carry ${protocol.name} too`,
    )
    for (let isRetry = false; ; isRetry = true) {
      if (signal.aborted) throw signal.reason as Error
      if (entry.session) return this.#enter<S>(entry, entry.session)
      // The link was opened, but ended before this device could use it.
      if (isRetry) {
        onFailure(entry.endReason)
        await pause(this.#platform.timers, entry.delays.next().value, signal)
      }
      await this.#waitUntilOpen(entry, settings, signal, onFailure)
    }
  }

  /** Closes all links. */
  async close(): Promise<void> {
    for (const entry of this.#entries.values()) {
      entry.opening?.stop.abort(new DOMException('the links are being closed', 'AbortError'))
      entry.session?.end('the links are being closed', true)
    }
    await Promise.all([...this.#entries.values()].map((entry) => entry.closing))
  }

  #newDelays(): Generator<number, never> {
    return retryDelays(this.#platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }

  async #closeInOrder(link: ByteLink): Promise<void> {
    const limit = deadline(this.#platform.timers, FLUSH_WITHIN_MS)
    await link.close(limit.signal)
    limit.done()
  }

  #begin(entry: Entry, link: ByteLink, settings: AnyLink): void {
    const client = entry.protocol.start(link, settings, this.#platform)
    let over = false
    let resolveLost = (_reason: string) => {}
    const lost = new Promise<string>((resolve) => {
      resolveLost = resolve
    })
    const session: Session = {
      client,
      link,
      lost,
      members: new Set(),
      end: (reason, inOrder = false) => {
        if (over) return
        over = true
        if (entry.session === session) entry.session = null
        entry.endReason = reason
        resolveLost(reason)
        entry.closing = inOrder ? this.#closeInOrder(link) : link.close()
      },
    }
    entry.session = session
    void client.ended.then((reason) => session.end(reason))
  }

  async #openForEver(entry: Entry, settings: AnyLink, signal: AbortSignal): Promise<void> {
    await entry.closing
    for (;;) {
      const limit = deadline(this.#platform.timers, OPEN_WITHIN_MS, signal)
      try {
        const link = await this.#open(settings, limit.signal)
        if (!signal.aborted) return this.#begin(entry, link, settings)
        await link.close()
      } catch (error) {
        for (const onFailure of entry.opening?.waiting ?? []) onFailure(text(error))
      } finally {
        limit.done()
      }
      if (signal.aborted) return
      await pause(this.#platform.timers, entry.delays.next().value, signal).catch(() => {})
    }
  }

  #startOpening(entry: Entry, settings: AnyLink): NonNullable<Entry['opening']> {
    const stop = new AbortController()
    const done = this.#openForEver(entry, settings, stop.signal).finally(() => {
      if (entry.opening === opening) entry.opening = null
    })
    const opening = { done, stop, waiting: new Set<OnFailure>() }
    entry.opening = opening
    return opening
  }

  async #waitUntilOpen(entry: Entry, settings: AnyLink, signal: AbortSignal, onFailure: OnFailure): Promise<void> {
    const opening = entry.opening ?? this.#startOpening(entry, settings)
    let giveUp = () => {}
    const aborted = new Promise<void>((resolve) => {
      giveUp = resolve
    })
    signal.addEventListener('abort', giveUp, { once: true })
    opening.waiting.add(onFailure)
    await Promise.race([opening.done, aborted])
    signal.removeEventListener('abort', giveUp)
    opening.waiting.delete(onFailure)
    if (opening.waiting.size === 0 && !entry.session) {
      opening.stop.abort(new DOMException('no device waits for this link any more', 'AbortError'))
      if (entry.opening === opening) entry.opening = null
    }
  }

  #enter<S extends ProtocolClient>(entry: Entry, session: Session): Membership<S> {
    const member = { silent: false }
    session.members.add(member)
    return {
      // This cast is safe: `join` checked that the caller's protocol object is the one that made this client.
      client: session.client as S,
      lost: session.lost,
      markResponsive: () => {
        member.silent = false
        entry.delays = this.#newDelays()
      },
      markUnresponsive(detail) {
        member.silent = true
        if ([...session.members].every((member) => member.silent)) session.end(detail)
      },
      leave() {
        session.members.delete(member)
        if (session.members.size === 0) session.end('no device uses the link any more', true)
      },
    }
  }
}
