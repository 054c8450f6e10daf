import { onStdinLine, runStdinCommands, type StdinCommands } from './edge-access.ts'
import { printLine as say, printNote, printReady } from '../../host/output.ts'
import { crowd } from '../../simulators/devices/llrp-crowd.ts'
import { llrpReader, type LlrpReaderOptions } from '../../simulators/devices/llrp.ts'
import { RELAY_BOARD_EX_WORKS, RelayBoard, type RelayBoardQuirks } from '../../simulators/devices/modbus.ts'
import { scannerSimulator } from '../../simulators/devices/scanner.ts'
import { serveTcp, type TcpService, type TcpServiceOptions } from '../../simulators/devices/serve.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import { QUIRKS, type Quirk, type SIMULATE_OPTIONS, type SimulatorName } from '../../host/settings/tools.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { runNetworkReader, type NetworkReaderName } from './simulate-readers.ts'
import { bytesOfHex } from '../../device-drivers/kit/protocol/hex.ts'
import { M100_EX_WORKS, M100Pad } from '../../simulators/devices/uhf-m100.ts'
import { OSDP_EX_WORKS, OsdpDevice } from '../../simulators/devices/osdp.ts'
import { ThingMagicReader } from '../../simulators/devices/thingmagic.ts'

/** Devices with a serial line. A TCP port simulates the line, as a serial device server does. */
const SERIAL_SIMULATORS = ['uhf-m100', 'osdp', 'thingmagic'] as const
type SerialSimulator = (typeof SERIAL_SIMULATORS)[number]

type Where = Pick<TcpServiceOptions, 'host' | 'port'> & { readonly quirk: Quirk; readonly vendorDefaults: boolean }

/** Time until each answer of a slow device, ms. */
const SLOW_MS = 150

/** Quirks of every serial device. */
const lineQuirks = (quirk: Quirk) => ({ echo: quirk === 'echo', answerMs: quirk === 'slow' ? SLOW_MS : 0 })

const EPC = /^(?:[0-9A-F]{4}){1,31}$/

async function serveWithOrders(
  where: Where,
  serve: TcpServiceOptions['serve'],
  orders: StdinCommands,
): Promise<TcpService> {
  const service = await serveTcp({ ...where, serve })
  const stopOrders = runStdinCommands(orders)
  return {
    ...service,
    port: service.port,
    async close() {
      stopOrders()
      await service.close()
    },
  }
}

const MAKERS: Record<SerialSimulator, (where: Where) => Promise<TcpService>> = {
  /** `put EPC [KILL-PASSWORD]`, `take EPC`, `show EPC`. */
  'uhf-m100': (where) => {
    const isExWorks = where.vendorDefaults || where.quirk === 'select-mode'
    const quirks = { ...(isExWorks ? M100_EX_WORKS.quirks : {}), ...lineQuirks(where.quirk) }
    const pad = new M100Pad({ platform: realPlatform(), quirks })
    return serveWithOrders(where, pad.serve, {
      put: (epc = '', killPassword = '00000000') =>
        EPC.test(epc) ? pad.put({ epc, killPassword }) : say('an EPC is upper-case hex in groups of 4 digits'),
      take: (epc = '') => pad.take(epc),
      show: (epc = '') => say(JSON.stringify(pad.tag(epc))),
    })
  },
  /** `put EPC`, `take EPC`. */
  thingmagic: (where) => {
    const reader = new ThingMagicReader({ platform: realPlatform() })
    return serveWithOrders(where, reader.serve, {
      put: (epc = '') => (EPC.test(epc) ? reader.put({ epc }) : say('an EPC is upper-case hex in groups of 4 digits')),
      take: (epc = '') => reader.take(epc),
    })
  },
  /** Address 0, default key until the panel sets another one. `card HEX`, `input N on|off`, `tamper on|off`. */
  osdp: (where) => {
    const quirks = {
      ...(where.vendorDefaults ? OSDP_EX_WORKS.quirks : {}),
      ...lineQuirks(where.quirk),
      wrongKeyFlag: where.quirk === 'wrong-flag',
    }
    const device = new OsdpDevice({
      platform: realPlatform(),
      quirks,
      onChange: (output, on) => say(`output ${output} ${on ? 'on' : 'off'}`),
    })
    return serveWithOrders(where, device.serve, {
      card: (hex = '') =>
        /^(?:[0-9A-Fa-f]{2}){1,32}$/.test(hex) ? device.card(bytesOfHex(hex)) : say('a card is 1 to 32 bytes in hex'),
      input: (input = '', on = '') => device.setInput(Number(input), on === 'on'),
      tamper: (on = '') => device.tamper(on === 'on'),
    })
  },
}

/** Serves one of these devices until it is closed. */
function serveSerialSimulator(name: SerialSimulator, where: Where): Promise<TcpService> {
  return MAKERS[name](where)
}

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
  const board = new RelayBoard({
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
