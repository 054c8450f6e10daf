import type { Cancel, Platform } from '../../policy/platform.ts'
import { bytesOfHex } from '../../device-drivers/kit/protocol/hex.ts'
import { THINGMAGIC, thingMagicCodec, type ThingMagicFrame } from '../../device-drivers/thingmagic/protocol/frame.ts'
import { STILL_READING, TOO_HOT } from '../../device-drivers/thingmagic/protocol/messages.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { answerWithFaults, sendQuietly, faultSwitches } from './faults.ts'
import type { SimulatedTag } from './uhf-m100.ts'

interface ThingMagicReaderOptions {
  readonly platform: Platform
  /** Interval of the reading rounds, ms; default 40. */
  readonly roundMs?: number
  /** Maximum power, dBm; default 27. */
  readonly mostDbm?: number
  /** True if the module starts in its boot loader, as some models do. */
  readonly bootLoader?: boolean
}

const MAX_TAGS = 1_000
const KEEP_ALIVE_MS = 1_000
const OK = 0
const WRONG_COMMAND = 0x0101
const POWER_TOO_HIGH = 0x0103
const NO_REGION = 0x010a
/** M6e Nano, firmware 1.3.1.47. */
const VERSION = bytesOfHex('1412080030000002201503100103014700000010')

/** A simulated ThingMagic reader module. */
export class ThingMagicReader {
  readonly #platform: Platform
  readonly #roundMs: number
  readonly #bootLoader: boolean
  readonly #codec = thingMagicCodec('reader')
  /** In a fault, `functions` are opcodes, and `exception` is a status. */
  readonly faults = faultSwitches()
  readonly #tags = new Map<string, SimulatedTag>()
  readonly #links = new Set<ByteLink>()
  /** Levels of the output pins. */
  readonly outputs = new Map<number, boolean>()
  #loading: boolean
  #region = 0
  #centiDbm = 2_000
  #antenna = 1
  #hot = false
  #sinceSign = 0
  #cancelRound: Cancel | null = null
  readonly #answers: Readonly<Record<number, (data: Uint8Array) => ThingMagicFrame>>

  readonly #round = (): void => {
    this.#sinceSign += this.#roundMs
    const silent = this.faults.hitting(0, THINGMAGIC.readMany).some((hit) => hit.kind === 'dead' || hit.kind === 'mute')
    if (!silent) for (const tag of this.#tags.values()) this.#broadcast(this.#tagFrame(tag))
    if (this.#sinceSign >= KEEP_ALIVE_MS) {
      this.#sinceSign = 0
      if (!silent) this.#broadcast(this.#reply(THINGMAGIC.readMany, this.#hot ? TOO_HOT : STILL_READING))
    }
    this.#cancelRound = this.#platform.timers.after(this.#roundMs, this.#round)
  }

  constructor(options: ThingMagicReaderOptions) {
    this.#platform = options.platform
    this.#roundMs = options.roundMs ?? 40
    const mostDbm = options.mostDbm ?? 27
    this.#bootLoader = options.bootLoader ?? false
    this.#loading = this.#bootLoader
    this.#answers = {
      [THINGMAGIC.version]: () => this.#reply(THINGMAGIC.version, OK, VERSION),
      [THINGMAGIC.currentProgram]: () => this.#reply(THINGMAGIC.currentProgram, OK, [this.#loading ? 0x51 : 0x52]),
      [THINGMAGIC.bootFirmware]: () => {
        this.#loading = false
        return this.#reply(THINGMAGIC.bootFirmware, OK, VERSION)
      },
      [THINGMAGIC.tagOperation]: (data) => this.#onOperation(data),
      [THINGMAGIC.setAntennas]: (data) => {
        this.#antenna = data[1] ?? 1
        return this.#reply(THINGMAGIC.setAntennas, OK)
      },
      [THINGMAGIC.setReadPower]: (data) => {
        const wanted = ((data[0] ?? 0) << 8) | (data[1] ?? 0)
        if (wanted > mostDbm * 100) return this.#reply(THINGMAGIC.setReadPower, POWER_TOO_HIGH)
        this.#centiDbm = wanted
        return this.#reply(THINGMAGIC.setReadPower, OK)
      },
      [THINGMAGIC.setProtocol]: () => this.#reply(THINGMAGIC.setProtocol, OK),
      [THINGMAGIC.setOption]: () => this.#reply(THINGMAGIC.setOption, OK),
      [THINGMAGIC.setRegion]: (data) => {
        this.#region = data[0] ?? 0
        return this.#reply(THINGMAGIC.setRegion, OK)
      },
      [THINGMAGIC.setOutput]: ([first = 0, second = 0, asOutput, level]) => {
        // Four bytes set the direction of a pin. After a start all pins are inputs, which ignore a level and report no
        // error.
        if (asOutput === 1) this.outputs.set(second, level === 1)
        else if (asOutput !== undefined) this.outputs.delete(second)
        else if (this.outputs.has(first)) this.outputs.set(first, second === 1)
        return this.#reply(THINGMAGIC.setOutput, OK)
      },
    }
  }

  /** Adds a tag; at most 1,000 tags. */
  put(tag: SimulatedTag): void {
    if (this.#tags.size >= MAX_TAGS) throw new RangeError(`at most ${MAX_TAGS} tags`)
    this.#tags.set(tag.epc, tag)
  }

  take(epc: string): void {
    void this.#tags.delete(epc)
  }

  get reading(): boolean {
    return this.#cancelRound !== null
  }

  get region(): number {
    return this.#region
  }

  get powerDbm(): number {
    return this.#centiDbm / 100
  }

  /** Simulates overheating, or ends it. */
  heat(on: boolean): void {
    this.#hot = on
  }

  /** Sends the report of a running read with this status. */
  report(status: number, data: readonly number[] = []): void {
    this.#broadcast(this.#reply(THINGMAGIC.readMany, status, data))
  }

  /** Simulates a short power failure: reading stops, and the region and the directions of the pins are lost. */
  readonly restart = (): void => {
    this.#stop()
    this.#loading = this.#bootLoader
    this.#region = 0
    this.outputs.clear()
  }

  /** Serves a link until it ends. An arrow function, because callers pass it as a callback. */
  readonly serve = async (link: ByteLink): Promise<void> => {
    const codec = thingMagicCodec('reader')
    let order: Promise<void> = Promise.resolve()
    this.#links.add(link)
    try {
      for await (const chunk of link.bytes)
        for (const frame of codec.push(chunk)) order = order.then(() => this.#serveOne(link, frame))
    } catch {
      // Ignores the error, because a broken link is like an unplugged reader.
    } finally {
      this.#links.delete(link)
      await link.close()
    }
  }

  #reply(opcode: number, status: number, data: readonly number[] | Uint8Array = []): ThingMagicFrame {
    return {
      opcode,
      status,
      data: Uint8Array.from(data),
    }
  }

  #broadcast(frame: ThingMagicFrame): void {
    for (const link of this.#links) void sendQuietly(link, this.#codec.encode(frame))
  }

  #tagFrame({ epc, rssiDbm = -55 }: SimulatedTag): ThingMagicFrame {
    const bytes = bytesOfHex(epc)
    const pc = ((bytes.length / 2) << 11) & 0xffff
    const bits = (bytes.length + 4) * 8
    const metadata = [
      1,
      rssiDbm & 0xff,
      (this.#antenna << 4) | this.#antenna,
      0x0e,
      0x08,
      0x30,
      0,
      0,
      this.#sinceSign >> 8,
      this.#sinceSign & 0xff,
      0,
      0,
      5,
      0,
      0,
      0x0f,
    ]
    return this.#reply(THINGMAGIC.readMany, OK, [
      0x10,
      0x00,
      0x1b,
      0x01,
      0xff,
      1,
      ...metadata,
      bits >> 8,
      bits & 0xff,
      pc >> 8,
      pc & 0xff,
      ...bytes,
      0x45,
      0xe9,
    ])
  }

  #stop(): void {
    this.#cancelRound?.()
    this.#cancelRound = null
  }

  #onOperation(data: Uint8Array): ThingMagicFrame {
    this.#stop()
    if (data[2] === 2) return this.#reply(THINGMAGIC.tagOperation, OK, [2])
    if (this.#region === 0) return this.#reply(THINGMAGIC.tagOperation, NO_REGION)
    this.#sinceSign = 0
    this.#cancelRound = this.#platform.timers.after(this.#roundMs, this.#round)
    return this.#reply(THINGMAGIC.tagOperation, OK, [1, THINGMAGIC.readMany, 0, 0])
  }

  async #serveOne(link: ByteLink, { opcode, data }: ThingMagicFrame): Promise<void> {
    const hits = this.faults.hitting(0, opcode)
    if (hits.some((hit) => hit.kind === 'dead')) return
    // While the module reads, it accepts only the command to stop.
    if (this.#cancelRound !== null && opcode !== THINGMAGIC.tagOperation) return
    const inLoader = [THINGMAGIC.version, THINGMAGIC.currentProgram, THINGMAGIC.bootFirmware] as number[]
    const exception = hits.find((hit) => hit.kind === 'exception')
    const answer = exception
      ? this.#reply(opcode, exception.code)
      : this.#loading && !inLoader.includes(opcode)
        ? this.#reply(opcode, WRONG_COMMAND)
        : (this.#answers[opcode]?.(data) ?? this.#reply(opcode, WRONG_COMMAND))
    await answerWithFaults({ link, timers: this.#platform.timers, hits, bytes: this.#codec.encode(answer) }, -1)
  }
}
