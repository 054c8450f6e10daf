import type { ResyncingCodec } from '../kit/protocol/codec.ts'
import type { ModbusFrame } from './protocol/frame.ts'
import { decodeAnswer } from './protocol/pdu.ts'

/**
 * Whether the line repeats what the agent sends, as some RS-485 adapters do:
 *
 * - unknown: no request has shown it yet
 * - none: a board answered, and the request was not repeated
 * - suspected: a request was repeated, and no board answered. The board itself may repeat requests that it does not know
 * - present: a board answered after the repeated request
 */
export type LineEcho = 'unknown' | 'none' | 'suspected' | 'present'

/** Echo of a line that cannot repeat requests, or that the settings declare free of echo. */
export const NO_ECHO: LineEcho = 'none'

/** A codec that removes repeated requests. */
export interface EchoFilter extends ResyncingCodec<ModbusFrame> {
  readonly state: LineEcho
  /** True if the line repeated this request. */
  wasRepeated(request: ModbusFrame): boolean
  /** Call this function with the request that a board has answered. */
  noteAnswer(request: ModbusFrame): void
}

/** Wraps the codec of a line that may repeat requests. */
export function echoFilter(codec: ResyncingCodec<ModbusFrame>): EchoFilter {
  return new Filter(codec)
}

/** True if the request could be its own answer, as in Write Single Coil. Only such a request cannot show an echo. */
function equalsItsAnswer({ pdu }: ModbusFrame): boolean {
  const answer = decodeAnswer(pdu)
  return answer !== null && !('exception' in answer) && answer.quantity === 1
}

class Filter implements EchoFilter {
  readonly #codec: ResyncingCodec<ModbusFrame>
  readonly #repeated = new WeakSet<ModbusFrame>()
  #state: LineEcho = 'unknown'
  #request: ModbusFrame | null = null
  #sent: Uint8Array = new Uint8Array(0)
  /** True until the repeated request has arrived, or cannot arrive any more. */
  #isSearching = false
  /** Bytes that may be the begin of the repeated request. */
  #matched: number[] = []

  constructor(codec: ResyncingCodec<ModbusFrame>) {
    this.#codec = codec
  }

  get state(): LineEcho {
    return this.#state
  }

  get held(): number {
    return this.#codec.held + this.#matched.length
  }

  encode(frame: ModbusFrame): Uint8Array {
    this.#sent = this.#codec.encode(frame)
    this.#request = frame
    this.#isSearching = this.#isStripping || !equalsItsAnswer(frame)
    return this.#sent
  }

  push(chunk: Uint8Array): ModbusFrame[] {
    return this.#codec.push(this.#withoutEcho(chunk))
  }

  silence(): ModbusFrame[] {
    const frames = this.#codec.push(Uint8Array.from(this.#matched.splice(0)))
    return [...frames, ...this.#codec.silence()]
  }

  takeNoise(): ReturnType<ResyncingCodec<ModbusFrame>['takeNoise']> {
    return this.#codec.takeNoise()
  }

  wasRepeated(request: ModbusFrame): boolean {
    return this.#repeated.has(request)
  }

  noteAnswer(request: ModbusFrame): void {
    if (this.#repeated.has(request)) this.#state = 'present'
    else if (this.#state !== 'present' && !equalsItsAnswer(request)) this.#state = 'none'
  }

  get #isStripping(): boolean {
    return this.#state === 'suspected' || this.#state === 'present'
  }

  #withoutEcho(chunk: Uint8Array): Uint8Array {
    if (!this.#isSearching && this.#matched.length === 0) return chunk
    const passed: number[] = []
    for (const byte of chunk) {
      this.#matched.push(byte)
      while (this.#matched.length > 0 && !this.#continues()) {
        passed.push(...this.#matched.splice(0, 1))
        // Noise may precede an echo. A line that is not known to echo must not delay the bytes of an answer.
        if (!this.#isStripping) this.#isSearching = false
      }
      if (this.#isSearching && this.#matched.length === this.#sent.length) this.#found()
    }
    return Uint8Array.from(passed)
  }

  #continues(): boolean {
    return this.#isSearching && this.#matched.every((byte, i) => byte === this.#sent[i])
  }

  #found(): void {
    this.#matched = []
    this.#isSearching = false
    if (this.#request) this.#repeated.add(this.#request)
    if (!this.#isStripping) this.#state = 'suspected'
  }
}
