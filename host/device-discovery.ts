import { probeReader } from '../device-drivers/llrp/set-up.ts'
import { type ListedReader, listReaders } from '../device-drivers/pcsc/pcscd.ts'
import { probeBoard } from '../device-drivers/modbus/identify.ts'
import { LinkFault, type ByteLink } from '../device-drivers/transports/byte-link.ts'
import { openTcp } from '../device-drivers/transports/socket-link.ts'
import { UNNAMED_DEVICE } from '../edge-agent/setup/config-file.ts'
import {
  SEARCH_CAUSES,
  type AttachedDevice,
  type DeviceDiscovery,
  type SearchCause,
} from '../edge-agent/setup/device-discovery.ts'
import type { Platform } from '../policy/platform.ts'
import { boardEntry, findSerialPorts, type FoundSerial } from './serial-ports.ts'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { openLink, usesNfcPcsc, type PcscLink } from '../device-drivers/transports/link-settings.ts'
import { openPcscChild } from '../device-drivers/transports/pcsc-library/child-link.ts'

const LLRP_PORT = 5_084
const MODBUS_PORT = 502

/** Name of a port: vendor and product, or the USB id, or the path. */
export const titleOf = ({ path, vendor, product, usbId }: FoundSerial): string =>
  [vendor, product].filter(Boolean).join(' ') || usbId || path

/** Draft configuration entry for an NFC reader. */
export function readerEntry({ stableName }: ListedReader): Record<string, unknown> {
  return { deviceId: UNNAMED_DEVICE, driver: 'pcsc', link: { pcsc: stableName } }
}

/** Finds attached serial ports and NFC readers, and readers and boards in the network by their address. */
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
    findAtAddress: (address) => findAtAddress(address, platform),
  }
}

/** Searches at a given port for a reader, then for a board; without a port, for both at their usual ports at once. */
async function findAtAddress(address: string, platform: Platform): ReturnType<DeviceDiscovery['findAtAddress']> {
  const [host = '', port] = address.split(':')
  const searches = [
    (number = LLRP_PORT) => findReader(host, number, platform),
    (number = MODBUS_PORT) => findBoard(host, number, platform),
  ] as const
  const faults: Error[] = []
  const settled = (search: Promise<AttachedDevice>) =>
    search.catch((error: unknown) => void faults.push(error as Error))
  // Both searches end before the answer: an unhandled rejection would end the agent.
  const found =
    port === undefined
      ? (await Promise.all(searches.map((search) => settled(search())))).find((each) => each !== undefined)
      : ((await settled(searches[0](Number(port)))) ?? (await settled(searches[1](Number(port)))))
  if (found) return { found }
  const causes = new Set(faults.map(causeOf))
  const cause = SEARCH_CAUSES.find((each) => causes.has(each))
  return { fault: [...new Set(faults.map(({ message }) => message))].join('; '), ...(cause && { cause }) }
}

function causeOf(fault: Error): SearchCause {
  if (!(fault instanceof LinkFault)) return 'other_device'
  if (fault.code === 'refused') return 'refused'
  return fault.code === 'missing' ? 'unknown_name' : fault.code === 'unreachable' ? 'unreachable' : 'other_device'
}

async function findReader(host: string, port: number, platform: Platform): Promise<AttachedDevice> {
  const refusal = await probeReader((signal) => openTcp(host, port, signal), platform)
  const at = `${host}:${port}`
  const entry = {
    deviceId: UNNAMED_DEVICE,
    driver: 'llrp',
    link: { tcp: at },
    antennas: { inside: [1], outside: [2] },
    siren: { gpo: 1, seconds: 5 },
  }
  return { kind: 'llrp', name: 'LLRP', at, ...(refusal !== null && { fix: refusal }), entry }
}

async function findBoard(host: string, port: number, platform: Platform): Promise<AttachedDevice> {
  const todo = await probeBoard((signal) => openTcp(host, port, signal), platform)
  const at = `${host}:${port}`
  return { kind: 'board', name: 'Modbus TCP', at, ...(todo !== null && { fix: todo }), entry: boardEntry({ tcp: at }) }
}

const SCRIPT = fileURLToPath(new URL('./pcsc-child.js', import.meta.url))

/**
 * Opens a link to PC/SC: the socket of pcscd, or a child process with the package `nfc-pcsc`. On Linux the package also
 * uses this socket.
 */
export function openPcsc(link: PcscLink, signal: AbortSignal): Promise<ByteLink> {
  if (!usesNfcPcsc(link)) return openLink(link, signal)
  const env = { ...process.env, ...(link.socket !== undefined && { PCSCLITE_CSOCK_NAME: link.socket }) }
  return openPcscChild(() => spawn(process.execPath, [SCRIPT], { env, stdio: 'pipe', windowsHide: true }), signal)
}

/** Lists the NFC readers of this machine. */
export function listNfcReaders(socket: string, platform: Platform): Promise<ListedReader[]> {
  return listReaders((signal) => openPcsc({ pcsc: 'any', socket }, signal), platform)
}
