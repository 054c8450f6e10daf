import { printLine as say } from '../output.ts'
import { bytesOfHex } from '../../device-drivers/kit/protocol/hex.ts'
import { M100_EX_WORKS, m100Pad } from '../../simulators/devices/uhf-m100.ts'
import { OSDP_EX_WORKS, osdpDevice } from '../../simulators/devices/osdp.ts'
import { serveTcp, type TcpService, type TcpServiceOptions } from '../../simulators/devices/serve.ts'
import { thingMagicReader } from '../../simulators/devices/thingmagic.ts'
import { realPlatform } from '../platform.ts'
import type { Quirk } from '../settings.ts'
import { runStdinCommands, type StdinCommands } from './stdin-commands.ts'

/** Devices with a serial line. A TCP port simulates the line, as a serial device server does. */
export const SERIAL_SIMULATORS = ['uhf-m100', 'osdp', 'thingmagic'] as const
export type SerialSimulator = (typeof SERIAL_SIMULATORS)[number]

type Where = Pick<TcpServiceOptions, 'host' | 'port'> & { readonly quirk: Quirk; readonly vendorDefaults: boolean }

/** Time until each answer of a slow device, ms. */
export const SLOW_MS = 150

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
    const pad = m100Pad({ platform: realPlatform(), quirks })
    return serveWithOrders(where, pad.serve, {
      put: (epc = '', killPassword = '00000000') =>
        EPC.test(epc) ? pad.put({ epc, killPassword }) : say('an EPC is upper-case hex in groups of 4 digits'),
      take: (epc = '') => pad.take(epc),
      show: (epc = '') => say(JSON.stringify(pad.tag(epc))),
    })
  },
  /** `put EPC`, `take EPC`. */
  thingmagic: (where) => {
    const reader = thingMagicReader({ platform: realPlatform() })
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
    const device = osdpDevice({
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
export function serveSerialSimulator(name: SerialSimulator, where: Where): Promise<TcpService> {
  return MAKERS[name](where)
}
