import { probeReader } from '../device-drivers/drivers/llrp/probe-reader.ts'
import type { ListedReader } from '../device-drivers/drivers/pcsc/list-readers.ts'
import { openTcp } from '../device-drivers/transports/tcp.ts'
import { UNNAMED_DEVICE } from '../edge-agent/setup/config-file.ts'
import type { AttachedDevice, DeviceDiscovery } from '../edge-agent/setup/device-discovery.ts'
import type { Platform } from '../policy/platform.ts'
import { listNfcReaders } from './pcsc-process.ts'
import { findSerialPorts, type FoundSerial } from './serial-ports.ts'

const LLRP_PORT = 5_084

/** Name of a port: vendor and product, or the USB id, or the path. */
export const titleOf = ({ path, vendor, product, usbId }: FoundSerial): string =>
  [vendor, product].filter(Boolean).join(' ') || usbId || path

/** Draft configuration entry for an NFC reader. */
export function readerEntry({ stableName }: ListedReader): Record<string, unknown> {
  return { deviceId: UNNAMED_DEVICE, driver: 'pcsc', link: { pcsc: stableName } }
}

/** Finds attached serial ports and NFC readers, and LLRP readers by address. */
export function deviceDiscovery(pcscdSocket: string, platform: Platform): DeviceDiscovery {
  return {
    async findAttached() {
      const attached = findSerialPorts().map((port): AttachedDevice => ({
        kind: 'serial',
        name: titleOf(port),
        at: port.path,
        ...(port.fix && { fix: port.fix }),
        entry: port.suggestion,
      }))
      const notes: string[] = []
      try {
        for (const reader of await listNfcReaders(pcscdSocket, platform))
          attached.push({
            kind: 'nfc',
            name: reader.name,
            at: process.platform === 'linux' ? pcscdSocket : 'PC/SC',
            entry: readerEntry(reader),
          })
      } catch (error) {
        notes.push((error as Error).message)
      }
      return { attached, notes }
    },
    async findLlrpReader(address) {
      const [host = '', port] = address.split(':')
      const at = `${host}:${port ?? LLRP_PORT}`
      try {
        const refusal = await probeReader((signal) => openTcp(host, Number(port ?? LLRP_PORT), signal), platform)
        const entry = {
          deviceId: UNNAMED_DEVICE,
          driver: 'llrp',
          link: { tcp: at },
          antennas: { inside: [1], outside: [2] },
          siren: { gpo: 1, seconds: 5 },
        }
        return { found: { kind: 'llrp', name: 'LLRP', at, ...(refusal !== null && { fix: refusal }), entry } }
      } catch (error) {
        return { fault: (error as Error).message }
      }
    },
  }
}
