import { onStdinLine } from './stdin-commands.ts'
import { printLine as say, printNote, printReady } from '../output.ts'
import { crowd } from '../../simulators/devices/llrp-crowd.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import type { LlrpReaderOptions } from '../../simulators/devices/llrp.ts'
import { RELAY_BOARD_EX_WORKS, relayBoard } from '../../simulators/devices/modbus.ts'
import type { RelayBoardQuirks } from '../../simulators/devices/modbus.ts'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import { serveTcp, type TcpService } from '../../simulators/devices/serve.ts'
import { WrongUsage, type Values } from '../options.ts'
import { realPlatform } from '../platform.ts'
import { QUIRKS } from '../settings.ts'
import type { Quirk, SIMULATE_OPTIONS, SimulatorName } from '../settings.ts'
import { stopOnSignals } from '../shutdown.ts'
import { runNetworkReader, type NetworkReaderName } from './simulate-readers.ts'
import { serveSerialSimulator, SLOW_MS } from './simulate-serial.ts'

type Settings = Values<typeof SIMULATE_OPTIONS>

const SERVE = {
  'relay-board': serveBoard,
  scanner: serveScanner,
  gate: serveGate,
  'uhf-m100': (settings: Settings) => serveSerialSimulator('uhf-m100', settings),
  osdp: (settings: Settings) => serveSerialSimulator('osdp', settings),
  thingmagic: (settings: Settings) => serveSerialSimulator('thingmagic', settings),
} as const

export async function runSimulate(name: SimulatorName, settings: Settings): Promise<void> {
  const havingIt: readonly SimulatorName[] = QUIRKS[settings.quirk]
  if (!havingIt.includes(name))
    throw new WrongUsage([`--quirk ${settings.quirk} is for ${havingIt.join(', ')}, not for ${name}`])
  if (!(name in SERVE)) {
    const reader = await runNetworkReader(name as NetworkReaderName, settings)
    stopOnSignals(reader.close)
    return void printReady(reader.ready)
  }
  const service = await SERVE[name as keyof typeof SERVE](settings)
  stopOnSignals(service.close)
  printReady({ tcp: `${settings.host}:${service.port}` })
}

const BOARD_QUIRKS: Partial<Record<Quirk, RelayBoardQuirks>> = {
  echo: { echo: true },
  slow: { answerMs: SLOW_MS },
  'silent-01': { silentFunctions: [1] },
  'repeats-unknown': { repeatedFunctions: [1, 2] },
  'reversed-bytes': { size: 32, reversedBytes: true },
  'other-unit': { answersAs: 2 },
}

const GATE_QUIRKS: Partial<Record<Quirk, Partial<LlrpReaderOptions>>> = {
  'foreign-access-spec': { hasForeignAccessSpec: true },
  // A European reader on its third channel.
  'other-channel': { channel: [0, 3] },
  'never-starts': { neverStarts: true },
}

/** A Modbus relay board with one lock. Prints every change of an output. */
async function serveBoard({ host, port, framing, quirk, vendorDefaults, lockOutput, lockInput }: Settings) {
  const board = relayBoard({
    platform: realPlatform(),
    framing,
    ...(vendorDefaults ? RELAY_BOARD_EX_WORKS : {}),
    quirks: BOARD_QUIRKS[quirk] ?? {},
    locks: [{ coil: lockOutput, input: lockInput, openMs: 30, closeMs: 30 }],
    onChange: ({ coil, on }) => say(`output ${coil} ${on ? 'on' : 'off'}`),
  })
  return withInputLines(await serveTcp({ host, port, serve: (link) => board.serve(link) }), board.setInput)
}

const INPUT_LINE = /^input (\d{1,3}) (on|off)$/

/** Sets an input by a line such as `input 5 on`. Returns false for any other line. */
function setInputBy(line: string, setInput: (input: number, on: boolean) => void): boolean {
  const [, input, level] = INPUT_LINE.exec(line) ?? []
  if (input === undefined) return false
  setInput(Number(input), level === 'on')
  return true
}

/** Sets inputs of a board by lines of stdin, such as `input 5 on`. */
function withInputLines(service: TcpService, setInput: (input: number, on: boolean) => void) {
  const stop = onStdinLine((line) => {
    if (!setInputBy(line, setInput)) printNote('type: input NUMBER on, or input NUMBER off')
  })
  return {
    ...service,
    port: service.port,
    close: async () => {
      stop()
      await service.close()
    },
  }
}

/** A scanner. Each line of stdin is one scanned code. */
async function serveScanner({ host, port }: Settings) {
  const scanner = scannerSimulator({ platform: realPlatform() })
  const stop = onStdinLine((code) => {
    if (code !== '') void scanner.scan(code)
  })
  const service = await serveTcp({ host, port, serve: (link) => scanner.serve(link) })
  return {
    ...service,
    port: service.port,
    close: async () => {
      stop()
      await service.close()
    },
  }
}

/**
 * Serves a UHF gate reader and simulates people who walk through. Prints each walk and each change of an output. Lines
 * of stdin cause faults or set inputs.
 */
async function serveGate({ host, port, tags, walkers, vendorDefaults, answerDelay, quirk }: Settings) {
  const platform = realPlatform()
  const reader = llrpReader({
    platform,
    target: vendorDefaults ? 'A' : 'both',
    answerDelayMs: answerDelay,
    ...GATE_QUIRKS[quirk],
    onChange: ({ gpo, on }) => say(`output ${gpo} ${on ? 'on' : 'off'}`),
  })
  const service = await serveTcp({ host, port, serve: (link) => reader.serve(link) })
  const people = crowd({
    platform,
    reader,
    tags,
    walkersPerMinute: walkers,
    onWalk: ({ epcs, direction }) => say(`walker ${direction} ${epcs.join(' ')}`.trimEnd()),
  })
  const faults: Readonly<Record<string, () => void>> = {
    reboot: reader.reboot,
    cut: service.cut,
    hang: () => reader.hang(true),
    resume: () => reader.hang(false),
    stop: () => reader.stopReading(),
    'antenna 2 off': () => reader.setAntenna(2, false),
    'antenna 2 on': () => reader.setAntenna(2, true),
    occupy: () => reader.occupy(true),
    leave: () => reader.occupy(false),
    'clock wrong': () => reader.setClock(-3 * 3_600_000),
    'clock right': () => reader.setClock(0),
  }
  const stop = onStdinLine((line) => {
    const fault = faults[line]
    const [, epcs = '', direction = 'out'] =
      /^walk ((?:[0-9A-Fa-f]{4,64} )*[0-9A-Fa-f]{4,64})(?: (in|out))?$/.exec(line) ?? []
    if (fault) fault()
    else if (epcs !== '')
      void people.walk({ epcs: epcs.toUpperCase().split(' '), direction: direction === 'in' ? 'in' : 'out' })
    else if (!setInputBy(line, reader.setInput))
      printNote(`type one of: ${Object.keys(faults).join(', ')}, input NUMBER on|off, walk EPC… in|out`)
  })
  return {
    ...service,
    port: service.port,
    close: async () => {
      stop()
      people.stop()
      await service.close()
    },
  }
}
