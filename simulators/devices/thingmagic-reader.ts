import type { Cancel, Platform } from '../../policy/platform.ts'
import { bytesOfHex } from '../../device-drivers/protocols/hex.ts'
import { THINGMAGIC, thingMagicCodec } from '../../device-drivers/protocols/thingmagic/frame.ts'
import type { ThingMagicFrame } from '../../device-drivers/protocols/thingmagic/frame.ts'
import { STILL_READING, TOO_HOT } from '../../device-drivers/protocols/thingmagic/messages.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { answerWithFaults, sendQuietly } from './answer-faults.ts'
import { faultSwitches } from './faults.ts'
import type { FaultSwitches } from './faults.ts'
import type { SimulatedTag } from './m100-pad.ts'

export interface ThingMagicReaderOptions {
  readonly platform: Platform
  /** From one round of reading to the next, ms; default 40. */
  readonly roundMs?: number
  /** Most dBm that it takes; default 27. */
  readonly mostDbm?: number
  /** It begins in its boot loader, as after power on of some models. */
  readonly bootLoader?: boolean
}

/** A simulated ThingMagic reader module. */
export interface ThingMagicReader {
  /** Lays a tag down. At most 1,000. */
  put(tag: SimulatedTag): void
  take(epc: string): void
  readonly reading: boolean
  readonly region: number
  readonly powerDbm: number
  /** Levels of the pins that were made outputs. */
  readonly outputs: ReadonlyMap<number, boolean>
  /** Too hot from now on, or no more. */
  heat(on: boolean): void
  /** By opcode; an `exception` is a status. */
  readonly faults: FaultSwitches
  /** As when its power fails for a moment: everything that was set is forgotten. */
  restart(): void
  /** Answers on this link until it ends. */
  serve(link: ByteLink): Promise<void>
}

const MOST_TAGS = 1_000
const KEEP_ALIVE_MS = 1_000
const OK = 0
const WRONG_COMMAND = 0x0101
const POWER_TOO_HIGH = 0x0103
const NO_REGION = 0x010a
/** M6e Nano, firmware 1.3.1.47. */
const VERSION = bytesOfHex('1412080030000002201503100103014700000010')

/** Makes a reader without tags. It does nothing until a link is served to it. */
export function thingMagicReader({
  platform,
  roundMs = 40,
  mostDbm = 27,
  bootLoader = false,
}: ThingMagicReaderOptions): ThingMagicReader {
  const codec = thingMagicCodec('reader')
  const faults = faultSwitches()
  const tags = new Map<string, SimulatedTag>()
  const links = new Set<ByteLink>()
  const outputs = new Map<number, boolean>()
  let loading = bootLoader
  let region = 0
  let centiDbm = 2_000
  let antenna = 1
  let hot = false
  let sinceSign = 0
  let cancelRound: Cancel | null = null

  const said = (opcode: number, status: number, data: readonly number[] | Uint8Array = []): ThingMagicFrame => ({
    opcode,
    status,
    data: Uint8Array.from(data),
  })

  function broadcast(frame: ThingMagicFrame): void {
    for (const link of links) void sendQuietly(link, codec.encode(frame))
  }

  function tagFrame({ epc, rssiDbm = -55 }: SimulatedTag): ThingMagicFrame {
    const bytes = bytesOfHex(epc)
    const pc = ((bytes.length / 2) << 11) & 0xffff
    const bits = (bytes.length + 4) * 8
    const metadata = [
      1,
      rssiDbm & 0xff,
      (antenna << 4) | antenna,
      0x0e,
      0x08,
      0x30,
      0,
      0,
      sinceSign >> 8,
      sinceSign & 0xff,
      0,
      0,
      5,
      0,
      0,
      0x0f,
    ]
    return said(THINGMAGIC.readMany, OK, [
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

  function round(): void {
    sinceSign += roundMs
    const silent = faults.hitting(0, THINGMAGIC.readMany).some((hit) => hit.kind === 'dead' || hit.kind === 'mute')
    if (!silent) for (const tag of tags.values()) broadcast(tagFrame(tag))
    if (sinceSign >= KEEP_ALIVE_MS) {
      sinceSign = 0
      if (!silent) broadcast(said(THINGMAGIC.readMany, hot ? TOO_HOT : STILL_READING))
    }
    cancelRound = platform.timers.after(roundMs, round)
  }

  function stop(): void {
    cancelRound?.()
    cancelRound = null
  }

  function onOperation(data: Uint8Array): ThingMagicFrame {
    stop()
    if (data[2] === 2) return said(THINGMAGIC.tagOperation, OK, [2])
    if (region === 0) return said(THINGMAGIC.tagOperation, NO_REGION)
    sinceSign = 0
    cancelRound = platform.timers.after(roundMs, round)
    return said(THINGMAGIC.tagOperation, OK, [1, THINGMAGIC.readMany, 0, 0])
  }

  const answers: Readonly<Record<number, (data: Uint8Array) => ThingMagicFrame>> = {
    [THINGMAGIC.version]: () => said(THINGMAGIC.version, OK, VERSION),
    [THINGMAGIC.currentProgram]: () => said(THINGMAGIC.currentProgram, OK, [loading ? 0x51 : 0x52]),
    [THINGMAGIC.bootFirmware]() {
      loading = false
      return said(THINGMAGIC.bootFirmware, OK, VERSION)
    },
    [THINGMAGIC.tagOperation]: onOperation,
    [THINGMAGIC.setAntennas](data) {
      antenna = data[1] ?? 1
      return said(THINGMAGIC.setAntennas, OK)
    },
    [THINGMAGIC.setReadPower](data) {
      const wanted = ((data[0] ?? 0) << 8) | (data[1] ?? 0)
      if (wanted > mostDbm * 100) return said(THINGMAGIC.setReadPower, POWER_TOO_HIGH)
      centiDbm = wanted
      return said(THINGMAGIC.setReadPower, OK)
    },
    [THINGMAGIC.setProtocol]: () => said(THINGMAGIC.setProtocol, OK),
    [THINGMAGIC.setOption]: () => said(THINGMAGIC.setOption, OK),
    [THINGMAGIC.setRegion](data) {
      region = data[0] ?? 0
      return said(THINGMAGIC.setRegion, OK)
    },
    [THINGMAGIC.setOutput]([first = 0, second = 0, asOutput, level]) {
      // Four bytes set the direction of a pin. As an input, which all are at first, it takes no level and says nothing of it.
      if (asOutput === 1) outputs.set(second, level === 1)
      else if (asOutput !== undefined) outputs.delete(second)
      else if (outputs.has(first)) outputs.set(first, second === 1)
      return said(THINGMAGIC.setOutput, OK)
    },
  }

  async function serveOne(link: ByteLink, { opcode, data }: ThingMagicFrame): Promise<void> {
    const hits = faults.hitting(0, opcode)
    if (hits.some((hit) => hit.kind === 'dead')) return
    // While it reads it only lets itself be stopped.
    if (cancelRound !== null && opcode !== THINGMAGIC.tagOperation) return
    const inLoader = [THINGMAGIC.version, THINGMAGIC.currentProgram, THINGMAGIC.bootFirmware] as number[]
    const exception = hits.find((hit) => hit.kind === 'exception')
    const answer = exception
      ? said(opcode, exception.code)
      : loading && !inLoader.includes(opcode)
        ? said(opcode, WRONG_COMMAND)
        : (answers[opcode]?.(data) ?? said(opcode, WRONG_COMMAND))
    await answerWithFaults({ link, timers: platform.timers, hits, bytes: codec.encode(answer) }, -1)
  }

  return {
    put(tag) {
      if (tags.size >= MOST_TAGS) throw new RangeError(`at most ${MOST_TAGS} tags`)
      tags.set(tag.epc, tag)
    },
    take: (epc) => void tags.delete(epc),
    get reading() {
      return cancelRound !== null
    },
    get region() {
      return region
    },
    get powerDbm() {
      return centiDbm / 100
    },
    outputs,
    heat: (on) => void (hot = on),
    faults,
    restart() {
      stop()
      loading = bootLoader
      region = 0
      outputs.clear()
    },
    async serve(link) {
      const hears = thingMagicCodec('reader')
      let order: Promise<void> = Promise.resolve()
      links.add(link)
      try {
        for await (const chunk of link.bytes)
          for (const frame of hears.push(chunk)) order = order.then(() => serveOne(link, frame))
      } catch {
        // The link broke: that is how a simulated reader is unplugged too.
      } finally {
        links.delete(link)
        await link.close()
      }
    },
  }
}
