import type { Cancel, Timers } from '../../policy/platform.ts'
import type { OpenBody } from './serve-http.ts'

const MAX_BUFFERED = 10_000
const KEEPALIVE = '\r\n'

/** The event stream of a simulated Impinj reader: buffers events while no client listens, and sends keepalives. */
export class ImpinjEvents {
  readonly #timers: Timers
  readonly #listeners = new Set<OpenBody>()
  #buffered: string[] = []
  #settings: Record<string, unknown> = {
    eventBufferSize: 1_000,
    eventPerSecondLimit: 0,
    eventAgeLimitMinutes: 60,
    keepAliveIntervalSeconds: 30,
  }
  #cancelKeepalive: Cancel = () => {}
  /** True while the reader must not send anything. */
  isMute = false

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Number of listening clients. */
  get listeners(): number {
    return this.#listeners.size
  }

  get settings(): object {
    return this.#settings
  }

  /** Changes these settings. */
  configure(changes: object): void {
    this.#settings = { ...this.#settings, ...changes }
    this.#scheduleKeepalive()
  }

  /** Adds a client and sends it the buffered events. */
  listen(body: OpenBody): void {
    this.#listeners.add(body)
    for (const line of this.#buffered.splice(0)) void body.write(line)
    this.#scheduleKeepalive()
  }

  leave(body: OpenBody | null): void {
    if (body) this.#listeners.delete(body)
    this.#scheduleKeepalive()
  }

  /** Writes raw text to all clients. */
  writeRaw(text: string): void {
    if (this.isMute) return
    for (const listener of this.#listeners) void listener.write(text)
  }

  /** Sends an event, or buffers the event if no client listens or the reader is mute. */
  send(event: object): void {
    const line = `${JSON.stringify(event)}\r\n`
    if (this.#listeners.size > 0 && !this.isMute) {
      this.writeRaw(line)
      return this.#scheduleKeepalive()
    }
    this.#buffered.push(line)
    if (this.#buffered.length > MAX_BUFFERED) this.#buffered = this.#buffered.slice(-MAX_BUFFERED)
  }

  /** Discards the buffered events. */
  discard(): void {
    this.#buffered = []
  }

  /** Removes all clients. */
  disconnect(): void {
    this.#listeners.clear()
    this.#cancelKeepalive()
  }

  #scheduleKeepalive(): void {
    this.#cancelKeepalive()
    if (this.#listeners.size === 0) return
    const seconds = Number(this.#settings['keepAliveIntervalSeconds'])
    this.#cancelKeepalive = this.#timers.after(seconds * 1_000, () => {
      this.writeRaw(KEEPALIVE)
      this.#scheduleKeepalive()
    })
  }
}
