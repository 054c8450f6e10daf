import { printLine as say, printNote, printReady } from '../../host/output.ts'
import { readFileSync } from 'node:fs'
import { ImpinjReader, STOCK_PRESET, type ImpinjReaderOptions } from '../../simulators/devices/impinj-iot.ts'
import { mqttBroker } from '../../simulators/devices/mqtt-broker.ts'
import { pushingReader, USUAL_TTL_MS } from '../../simulators/devices/http-ingest.ts'
import { replay } from '../../simulators/devices/replay.ts'
import { serveTcp, type TcpService } from '../../simulators/devices/serve.ts'
import { EVERY_READ, VENDOR_MODE, ZebraReader } from '../../simulators/devices/zebra-iotc.ts'
import { deadline } from '../../policy/platform.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { Quirk, SIMULATE_OPTIONS } from '../../host/settings/tools.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { onStdinLine } from './edge-access.ts'

type Settings = Values<typeof SIMULATE_OPTIONS>

const SERVE = { 'impinj-iot': serveImpinj, 'http-ingest': pushReads, 'zebra-iotc': serveZebra } as const
export type NetworkReaderName = keyof typeof SERVE

/** A running reader with the fields of its ready line. */
interface RunningReader {
  readonly ready: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** Starts a reader with HTTP or MQTT. Each line of stdin is a read EPC with an optional antenna number, or a fault. */
export async function runNetworkReader(name: NetworkReaderName, settings: Settings): Promise<RunningReader> {
  return SERVE[name](settings)
}

/** Reads EPCs and faults for the reader from stdin until the reader is closed. */
function controlByStdin(
  reader: RunningReader,
  see: (epc: string, antenna: number) => void,
  faults: Readonly<Record<string, () => void>>,
): RunningReader {
  const stop = onStdinLine((text) => {
    const [, epc, antenna = '1'] = /^([0-9A-Fa-f]{4,})(?:\s+(\d{1,3}))?$/.exec(text) ?? []
    if (epc !== undefined) see(epc.toUpperCase(), Number(antenna))
    else if (faults[text]) faults[text]()
    else if (text !== '') printNote(`type an EPC in hex, or one of: ${Object.keys(faults).join(', ')}`)
  })
  return {
    ready: reader.ready,
    close: async () => {
      stop()
      await reader.close()
    },
  }
}

const onTcp = (service: TcpService, host: string): RunningReader => ({
  ready: { tcp: `${host}:${service.port}` },
  close: service.close,
})

/** Serves the device's side of a trace that `untag edge --trace` recorded. */
export async function runReplay(file: string, { host, port }: Settings): Promise<void> {
  const device = replay(readFileSync(file, 'utf8'), realPlatform())
  if (device.connections === 0)
    throw new Error(`${file} contains no connection: choose a file that untag edge --trace wrote`)
  const service = await serveTcp({ host, port, serve: (link) => device.serve(link) })
  stopOnSignals(service.close)
  printReady({ tcp: `${host}:${service.port}`, connections: device.connections })
}

/** Time until a slow inventory starts, ms. */
const SLOW_START_MS = 3_000
const IMPINJ_QUIRKS: Partial<Record<Quirk, Partial<ImpinjReaderOptions>>> = {
  'never-starts': { neverStarts: true },
  'slow-start': { startMs: SLOW_START_MS },
  'no-stream-settings': { hasStreamSettings: false },
  'needs-content-length': { needsContentLength: true },
}

/** An R700 without TLS, with the factory password `impinj`. */
async function serveImpinj({ host, port, vendorDefaults, answerDelay, quirk }: Settings): Promise<RunningReader> {
  const reader = new ImpinjReader({
    platform: realPlatform(),
    password: 'impinj',
    answerDelayMs: answerDelay,
    ...(vendorDefaults ? { preset: STOCK_PRESET } : {}),
    ...IMPINJ_QUIRKS[quirk],
    onChange: ({ gpo, on }) => say(`output ${gpo} ${on ? 'on' : 'off'}`),
  })
  const service = await serveTcp({ host, port, serve: (link) => reader.serve(link) })
  return controlByStdin(onTcp(service, host), (epc, antenna) => reader.see(epc, { antenna }), {
    reboot: reader.reboot,
    cut: service.cut,
    hang: () => reader.mute(true),
    resume: () => reader.mute(false),
    'input 1 on': () => reader.setInput(1, true),
    'input 1 off': () => reader.setInput(1, false),
    'input 2 on': () => reader.setInput(2, true),
    'input 2 off': () => reader.setInput(2, false),
    stop: reader.stopReading,
    'other inventory': () => reader.startOther('stock'),
    'antenna 2 off': () => reader.setAntenna(2, false),
    'antenna 2 on': () => reader.setAntenna(2, true),
    'clock wrong': () => reader.setClock(-3 * 3_600_000),
    'clock right': () => reader.setClock(0),
  })
}

/** A reader that posts its reads to an agent. */
async function pushReads({ pushTo, pushSecret, pushFormat, vendorDefaults, tagTtl }: Settings): Promise<RunningReader> {
  if (pushTo === undefined)
    throw new WrongUsage(['--push-to URL is needed, such as http://127.0.0.1:8090/ingest/gate-1'])
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${pushSecret}` }
  const platform = realPlatform()
  const reader = pushingReader({
    platform,
    format: pushFormat,
    ttlMs: vendorDefaults && tagTtl === 0 ? USUAL_TTL_MS : tagTtl,
    async post(body) {
      const limit = deadline(platform.timers, 5_000)
      const answer = await fetch(pushTo, { method: 'POST', headers, body, signal: limit.signal })
        .then(
          (response) => response.status,
          (error: Error) => error.message,
        )
        .finally(limit.done)
      if (answer !== 200) printNote(`the agent did not accept the reads: ${answer}`)
      return answer === 200
    },
  })
  return controlByStdin(
    { ready: { pushTo }, close: async () => reader.stop() },
    (epc, antenna) => reader.see(epc, { antenna }),
    {
      'clock wrong': () => reader.setClock(-3 * 3_600_000),
      'clock right': () => reader.setClock(0),
    },
  )
}

/** An FX9600 with its own MQTT broker for the agent. Topics start with `zebra/FX9600F0F4B5`. */
async function serveZebra({ host, port, vendorDefaults, answerDelay, quirk }: Settings): Promise<RunningReader> {
  const broker = mqttBroker()
  const reader = new ZebraReader({
    platform: realPlatform(),
    bus: broker,
    mode: vendorDefaults ? VENDOR_MODE : EVERY_READ,
    neverStarts: quirk === 'never-starts',
    answerDelayMs: answerDelay,
    onChange: ({ gpo, on }) => say(`output ${gpo} ${on ? 'on' : 'off'}`),
  })
  const service = await serveTcp({ host, port, serve: (link) => broker.serve(link) })
  return controlByStdin(onTcp(service, host), (epc, antenna) => reader.see(epc, { antenna }), {
    reboot: reader.reboot,
    cut: service.cut,
    away: () => reader.disconnect(true),
    back: () => reader.disconnect(false),
    hang: () => reader.mute(true),
    resume: () => reader.mute(false),
    stop: reader.stopReading,
    'factory mode': () => reader.changeMode(VENDOR_MODE),
    'antenna 2 off': () => reader.setAntenna(2, false),
    'antenna 2 on': () => reader.setAntenna(2, true),
    'clock wrong': () => reader.setClock(-3 * 3_600_000),
    'clock right': () => reader.setClock(0),
  })
}
