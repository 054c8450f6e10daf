import { createInterface } from 'node:readline'
import { impinjReader } from '../../simulators/devices/impinj-reader.ts'
import { serveTcp } from '../../simulators/devices/serve.ts'
import type { TcpService } from '../../simulators/devices/serve.ts'
import type { Values } from '../options.ts'
import { realPlatform } from '../platform.ts'
import type { SIMULATE_OPTIONS } from '../settings.ts'

type Settings = Values<typeof SIMULATE_OPTIONS>

const SERVE = { 'impinj-iot': serveImpinj } as const
export type NetworkReaderName = keyof typeof SERVE

/** A reader that speaks HTTP or MQTT; each line of stdin is an EPC that it sees, with an antenna behind it, or a trouble. */
export async function serveNetworkReader(name: NetworkReaderName, settings: Settings): Promise<TcpService> {
  return SERVE[name](settings)
}

const say = (text: string) => void process.stdout.write(`${text}\n`)

/** Reads stdin until the service is closed. */
function byHand(service: TcpService, see: (epc: string, antenna: number) => void, troubles: Readonly<Record<string, () => void>>): TcpService {
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    const text = line.trim()
    const [, epc, antenna = '1'] = /^([0-9A-Fa-f]{4,})(?:\s+(\d{1,3}))?$/.exec(text) ?? []
    if (epc !== undefined) see(epc.toUpperCase(), Number(antenna))
    else if (troubles[text]) troubles[text]()
    else if (text !== '') process.stderr.write(`give an EPC in hex, or one of: ${Object.keys(troubles).join(', ')}\n`)
  })
  return {
    ...service,
    port: service.port,
    close: async () => {
      lines.close()
      await service.close()
    },
  }
}

/** An R700 without TLS; its password is `impinj`, as of every one that is new. */
async function serveImpinj({ host, port }: Settings): Promise<TcpService> {
  const reader = impinjReader({ platform: realPlatform(), password: 'impinj', onChange: ({ gpo, on }) => say(`output ${gpo} ${on ? 'on' : 'off'}`) })
  const service = await serveTcp({ host, port, serve: (link) => reader.serve(link) })
  return byHand(service, (epc, antenna) => reader.see(epc, { antenna }), {
    reboot: reader.reboot,
    cut: service.cut,
    hang: () => reader.mute(true),
    resume: () => reader.mute(false),
    stop: reader.stopReading,
    'clock wrong': () => reader.setClock(-3 * 3_600_000),
    'clock right': () => reader.setClock(0),
  })
}
